"""The page: a template, filled with what was worked out. The same study gives the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench import __version__
from bench.report.coverage import warnings
from bench.report.escape import markdown
from bench.report.layout import Entry, TableSpec
from bench.report.published import published_entries
from bench.rescore import tables
from bench.rescore.claims import TESTS, claims, judgement
from bench.rescore.study import Study, config_of, shown
from bench.tasks import TASKS

TITLES = {"log_smape": "log-sMAPE (comparison tasks: exact match)", "exact_match": "Exact match"}
_METRICS = {"log_smape": "log-sMAPE", "exact_match": "exact match"}
_FEW = 3


def render(study: Study) -> str:
    """The page of a study."""
    # What is foreign is escaped where a table or line is made: this is Markdown, not HTML.
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template("page.md.j2").render(
        summary=list(_summary(study)),
        files=_files(study),
        configs=tables.configs(study) if study.exact else "",
        missing=_missing(study),
        notes=[markdown(note) for note in study.notes],
        labels=tables.labels(study),
        at_ceiling=_at_ceiling(study),
        examples=tables.examples(study.labels),
        unreproduced=_unreproduced(study),
        scores=[_scores(study, spec) for spec in _specs(study)],
        steps=[_steps(study, spec) for spec in _specs(study)],
        claims=list(_claims(study)),
        orders=[_orders(study, spec) for spec in _specs(study)],
        warnings=[markdown(warning) for warning in warnings(study.exact)],
        signature=_signature(study),
    )


def reproduced(study: Study) -> tuple[int, int]:
    """Of the scores that the paper prints, how many come out to the digit; and how many it does."""
    known = [score.reproduced for score in study.scores if score.reproduced is not None]
    return sum(known), len(known)


def _specs(study: Study) -> list[TableSpec]:
    return [spec for spec in tables.TABLES if study.of_table(spec.name)]


def _summary(study: Study) -> Iterator[str]:
    faulty = [found for found in study.labels if found.wrong]
    parts = [f"{TASKS[f.task].display} {len(f.wrong)} of {f.n}" for f in faulty]
    checked = sum(found.n for found in study.labels)
    wrong = sum(len(found.wrong) for found in study.labels)
    which = f": {', '.join(parts)}" if parts else ""
    yield f"**Labels.** {wrong:,} of {checked:,} published labels are wrong{which}."
    if faulty:
        ceilings = [f"{TASKS[f.task].display} {shown(f.ceiling.exact_match)}" for f in faulty]
        yield f"**Ceilings.** A perfect oracle would get, in exact match: {', '.join(ceilings)}."
    if touched := tables.at_ceiling(study.labels):
        scores = "; ".join(
            f"{task}: {name} {theirs} of {value}" for task, name, theirs, value in touched
        )
        yield f"**At the ceiling** (*published*): {scores}."
    if not study.scores:
        return
    right, printed = reproduced(study)
    yield (
        f"**Reproduced.** {right} of {printed} published scores of these configurations come out "
        "of the study's files to the printed digit, by the study's own scoring."
    )
    yield from _moves(study)
    if study.orders:
        yield _order_line(study)


def _moves(study: Study) -> Iterator[str]:
    """Per metric the tasks on which a score moves by a point or more, and how far."""
    for metric, title in _METRICS.items():
        moves = []
        for task in TASKS:
            own = [
                s.ladder for s in study.scores if (s.ladder.task, s.ladder.metric) == (task, metric)
            ]
            whole = [ladder.exact - ladder.published for ladder in own]
            if whole and max(map(abs, whole)) >= 1:
                ends = f"{shown(min(whole), True)} to {shown(max(whole), True)}"
                moves.append(f"{TASKS[task].display} {ends}")
        if moves:
            yield f"**Under exact truth**, {title} moves by (points): {', '.join(moves)}."


def _order_line(study: Study) -> str:
    change = Counter(order.change for order in study.orders)
    text = (
        f"**Orders.** Of {len(study.orders)} comparisons of two configurations on a task and "
        f"metric, {change['lost']} are no longer told apart, {change['gained']} are so now, and "
        f"{change['reversed']} {'is' if change['reversed'] == 1 else 'are'} reversed"
    )
    turned = [order for order in study.orders if order.change == "reversed"]
    if not turned or len(turned) > _FEW:
        return f"{text}."
    names = "; ".join(
        f"{TASKS[o.task].display}, {markdown(o.first)} less {markdown(o.second)}: "
        f"{shown(o.before, True)} → {shown(o.after, True)} points"
        for o in turned
    )
    return f"{text} ({names})."


def _files(study: Study) -> str:
    benchmark = sum(file.source.model is None for file in study.files)
    responses = len(study.files) - benchmark
    runs = len(study.exact)
    counted = f"{benchmark} {_plural('benchmark file', benchmark)}"
    answers = f"{responses} {_plural('file', responses)} of responses"
    if runs:
        answers += f", of {runs} {_plural('configuration', runs)}"
    return (
        f"{counted} and {answers}. Names, sizes and SHA-256 stand in `files.csv`; the dataset that "
        f"they hold is `{study.dataset.name}@{study.dataset.manifest.sha256[:6]}`."
    )


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _missing(study: Study) -> str:
    lacking = [config_of(e) for e in published_entries() if config_of(e) not in study.configs]
    if not lacking:
        return "No configuration of the paper is missing."
    names = ", ".join(tables.named(config) for config in lacking)
    return (
        f"Not among these files, and hence not re-scored, are {len(lacking)} of the paper's "
        f"{len(published_entries())} configurations: {names}."
    )


def _at_ceiling(study: Study) -> str:
    rows = tables.at_ceiling(study.labels)
    header = ("Score", "Configuration", "*Published*", "Ceiling")
    return tables.table(header, rows, 2) if rows else ""


def _unreproduced(study: Study) -> str:
    found = [
        f"{tables.named(score.config)}, {TASKS[score.ladder.task].display}, "
        f"{_METRICS[score.ladder.metric]}: "
        f"*{score.printed}* against {shown(score.ladder.published)}"
        for score in study.scores
        if score.reproduced is False
    ]
    return "; ".join(found)


def _scores(study: Study, spec: TableSpec) -> dict[str, object]:
    return {
        "title": TITLES[spec.name],
        "parts": tables.scores(study, spec),
        "figure": f"scores_{spec.name}",
    }


def _steps(study: Study, spec: TableSpec) -> dict[str, str]:
    return {
        "title": TITLES[spec.name],
        "mean": tables.mean_steps(study, spec),
        "every": tables.every_step(study, spec),
        "figure": f"steps_{spec.name}",
    }


def _orders(study: Study, spec: TableSpec) -> dict[str, str]:
    return {
        "title": TITLES[spec.name],
        "counts": tables.order_counts(study.orders, spec),
        "changed": tables.changed_orders(study.orders, spec),
    }


def _claims(study: Study) -> Iterator[dict[str, str]]:
    published = published_entries()
    sets: list[tuple[str, Sequence[Entry]]] = [
        (f"*published, all {len(published)}*", published),
        (f"study's scoring, {len(study.paper)} at hand", [run.entry for run in study.paper]),
        (f"exact truth, {len(study.exact)} at hand", [run.entry for run in study.exact]),
    ]
    for name, claim in claims().items():
        findings = [(on, TESTS[name](entries)) for on, entries in sets]
        yield {
            "quote": markdown(claim.quote),
            "section": markdown(claim.section),
            "reading": markdown(claim.reading),
            "judgement": judgement(findings[1][1], findings[2][1]),
            "table": tables.claim(claim, findings),
        }


def _signature(study: Study) -> str:
    """What the signatures of all scores share."""
    data = f"{study.dataset.name}@{study.dataset.manifest.sha256[:6]}"
    prompts = dict.fromkeys(run.run.info.prompt.name for run in study.exact)
    parts = (f"numbench:{__version__}", f"data:{data}", *(f"prompt:{name}" for name in prompts))
    return "|".join((*parts, "protocol:exact"))
