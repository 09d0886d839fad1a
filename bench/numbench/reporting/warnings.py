"""What affects how the numbers of a report can be read, each fact once, with what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from numbench.records import Status, is_cached
from numbench.reporting.horizon_runs import CONTROL, HorizonRun
from numbench.reporting.tables.memory import memory_warnings
from numbench.scoring import ScoredItem, ScoredRun, paper_protocol
from numbench.scoring.error_kinds import score_with_conventions
from numbench.scoring.scored_run import counted_rows, item_groups
from numbench.scoring.taxonomy import UNANSWERED_STATUSES
from numbench.served_models import drift_warnings
from numbench.tasks import TASKS
from numbench.tasks.prompts import changed_prompts
from numbench.transforms import NO_TRANSFORM

if TYPE_CHECKING:
    from numbench.horizon.estimate import TaskHorizon
    from numbench.reporting.data import Configuration, ReportData

Severity = Literal["scores", "information"]
"""Whether a fact changes what the scores mean, or only helps to read them."""

HEADINGS: dict[Severity, str] = {
    "scores": "What affects the scores",
    "information": "Further information",
}

_BASELINE_PREFIX = "baseline/"
"""Prefix of the models that compute answers without generating tokens."""

_MAX_CONVENTION_GAIN = 1.0
"""A score depends on a convention if accepting another adds more than this many points."""


class ReportWarning(NamedTuple):
    """One sentence about runs or tables."""

    text: str
    severity: Severity = "scores"


def report_warnings(data: ReportData) -> tuple[ReportWarning, ...]:
    """Return the warnings of a report, the most severe ones first."""
    found = [ReportWarning(text) for text in (*data.skipped, *data.failures, *_mixed_runs(data))]
    for index, run in enumerate(data.runs):
        found += [ReportWarning(f"{run.label}: {text}") for text in _runaway_texts(data, index)]
    for run in data.runs:
        assert run.scored
        found += [ReportWarning(f"{run.label}: {text}") for text in _score_texts(run, run.scored)]
        found += [
            ReportWarning(f"{run.label}: {text}", "information")
            for text in _information(data, run, run.scored)
        ]
    found += map(ReportWarning, memory_warnings(data))
    found += [
        ReportWarning(f"{run.label}: {text}")
        for run in data.horizons
        for text in _horizon_texts(run)
    ]
    severities = list(HEADINGS)
    unique = dict.fromkeys(sorted(found, key=lambda known: severities.index(known.severity)))
    return tuple(unique)


def _mixed_runs(data: ReportData) -> Iterator[str]:
    """Yield in what the runs on one dataset differ, beside the model."""
    for group in data.datasets:
        infos = [run.scored.info for index in group.runs if (run := data.runs[index]).scored]
        prompts = [info.prompt for info in infos]
        if any(changed_prompts(prompts[0], prompt) for prompt in prompts[1:]):
            names = ", ".join(sorted({f"{prompt.name}@{prompt.sha256[:6]}" for prompt in prompts}))
            yield f"{group.label}: the runs use different wordings ({names})."
        forms = dict.fromkeys(info.transform or NO_TRANSFORM for info in infos)
        if len(forms) > 1:
            yield f"{group.label}: the runs ask in different forms ({', '.join(forms)})."


def _score_texts(run: Configuration, scored: ScoredRun) -> Iterator[str]:
    """Yield what changes the meaning of the scores: questions, models, lost answers."""
    limit, shard = scored.info.limit, scored.info.shard
    if limit is not None and any(len(items) > limit for items in scored.dataset.by_task.values()):
        yield f"includes only the first {limit} questions per task (--limit)."
    if shard is not None:
        yield f"includes only shard {shard} of the questions; `numbench merge` joins the shards."
    if scored.protocol == "paper" and any(
        cell.n > paper_protocol.ITEMS_PER_TASK for cell in run.cells.values()
    ):
        count = paper_protocol.ITEMS_PER_TASK
        yield f"only the first {count} questions per task count, as in the paper."
    if scored.info.settings.get("altered_messages"):
        yield "the route changed the messages (see requests.jsonl of the run)."
    rows = (row for task in run.cells for row in scored.rows[task])
    for warning in drift_warnings(row.response for row in rows if row.response is not None):
        yield f"{warning}."
    for status in get_args(Status):
        counts = {task: cell.statuses.get(status, 0) for task, cell in run.cells.items()}
        if status != "ok" and any(counts.values()):
            yield f"{_status_text(scored, status)} ({_per_task(counts)})."
    yield from _convention_texts(run, scored)


def _status_text(run: ScoredRun, status: Status) -> str:
    unit = "questions" if run.info.samples == 1 else "samples"
    nouns = {
        "missing": f"{unit} without an answer yet",
        "error": "failed requests",
        "unparseable": "answers in which no number could be read",
        "empty": "empty answers",
        "truncated": "answers cut off at the token limit",
        "refused": "refused answers",
    }
    is_excluded = run.protocol != "paper" and status in UNANSWERED_STATUSES
    consequence = "not in the means" if is_excluded else "scored as incorrect"
    todo = (
        {}
        if run.info.source == "imported"
        else {
            "missing": "; the command of the run resumes it",
            "error": "; numbench run --retry error asks them again",
        }
    )
    return f"{nouns.get(status, status)}, {consequence}{todo.get(status, '')}"


def _convention_texts(run: Configuration, scored: ScoredRun) -> Iterator[str]:
    """Yield the tasks whose score depends on a convention that the question leaves open."""
    if scored.protocol == "paper":
        return
    for task in run.tasks:
        if not TASKS[task].conventions:
            continue
        rows = counted_rows(scored, task)
        scores = {id(row): score_with_conventions(row.item, row.score) for row in rows}
        accepted = 100 * fmean(
            fmean(scores[id(row)].log_smape for row in group) for group in item_groups(rows)
        )
        strict = float(run.values.tasks[task].score.mean())
        if accepted - strict > _MAX_CONVENTION_GAIN:
            names = " or ".join(convention.display for convention in TASKS[task].conventions)
            followed = sum(score.follows for score in scores.values())
            answers = sum(row.score.status == "ok" for row in rows)
            yield (
                f"{TASKS[task].display} would score {accepted:.1f} instead of {strict:.1f} if the "
                f"{names} were accepted too: {followed} of {answers} answers are within 0.1% of it."
            )


def _runaway_texts(data: ReportData, index: int) -> Iterator[str]:
    known = data.runaways.get(index)
    if known:
        yield (
            f"{known.answers} of {known.of:,} answers have {known.share:.0%} of all generated "
            f"tokens ({known.least:,} or more each): the mean is {known.mean:,.0f} tokens, the "
            f"median {known.median:,.0f}. A token limit (--max-tokens) bounds such answers."
        )


def _information(data: ReportData, run: Configuration, scored: ScoredRun) -> Iterator[str]:
    formats = data.formats(run)
    counts = {task: result.only_lenient for task, result in formats.items()}
    if any(counts.values()):
        changes = ", ".join(
            f"{TASKS[task].display} {result.lenient:.1f} instead of {result.exact:.1f}"
            for task, result in formats.items()
            if result.lenient != result.exact
        )
        then = f"; with them, exact match is {changes}" if changes else ""
        what = "scored as incorrect" if scored.protocol == "exact" else "read nevertheless"
        yield (
            f"answers in other formats than requested, {what}; --protocol lenient reads them "
            f"({_per_task(counts)}){then}."
        )
    counts = {task: sum(map(_is_cut_but_read, rows)) for task, rows in scored.rows.items()}
    if any(counts.values()):
        yield f"answers that stop at the token limit, but could be read ({_per_task(counts)})."
    counts = {
        task: sum(row.response is not None and is_cached(row.response) for row in rows)
        for task, rows in scored.rows.items()
    }
    if any(counts.values()):
        yield f"answers from the response cache, without cost and latency ({_per_task(counts)})."
    mentions = data.tool_mentions(run)
    if any(mentions.values()):
        yield f"reasoning mentions a calculator, code or search ({_per_task(mentions)})."
    if not scored.info.model.startswith(_BASELINE_PREFIX):
        yield from _token_texts(run, scored)


def _token_texts(run: Configuration, scored: ScoredRun) -> Iterator[str]:
    unknown = {task: cell.tokens_unknown for task, cell in run.cells.items()}
    if sum(unknown.values()) == sum(len(counted_rows(scored, task)) for task in unknown) > 0:
        yield "token counts are not available."
    elif any(unknown.values()):
        excluded = " or with one that the paper excluded" if scored.protocol == "paper" else ""
        yield f"responses without a token count{excluded} ({_per_task(unknown)})."


def _is_cut_but_read(row: ScoredItem) -> bool:
    return (
        row.score.status == "ok"
        and row.response is not None
        and row.response.finish_reason == "length"
    )


def _per_task(counts: Mapping[str, int]) -> str:
    parts = [f"{TASKS[task].display} {count}" for task, count in counts.items() if count]
    return f"{sum(counts.values())}: {', '.join(parts)}"


def _horizon_texts(run: HorizonRun) -> Iterator[str]:
    """Yield what to know before using the horizons of a run."""
    answered = [horizon for horizon in run.horizons.values() if horizon.items]
    names = {task: TASKS[task].display for task in run.horizons}
    if silent := [names[task] for task, known in run.horizons.items() if not known.items]:
        yield f"no question of {', '.join(silent)} was answered; nothing is known of these sizes."
    for known in answered:
        if known.is_doubtful or not known.fits:
            level = f"{known.level(known.h50.value):.0%}"
            instead = (
                f"without a curve, the answers do not cross {level}"
                if known.isotonic is None
                else f"without a curve, the answers cross {known.level(known.isotonic):.0%} at "
                f"{known.text(known.isotonic)} {known.unit}"
            )
            verdict = "it is doubtful whether a curve fits" if known.fits else "no curve fits"
            yield (
                f"{names[known.task]}: {verdict} the answers (p = {known.fit_p:.2g}); {instead}, "
                f"the curve crosses {level} at {known.text(known.h50.value)}."
            )
    if truncated := [known for known in answered if known.truncated]:
        counts = {known.task: known.truncated for known in truncated}
        yield f"answers cut off at the token limit count as incorrect ({_per_task(counts)})."
    if limited := [known for known in answered if known.h50.high >= known.largest < _most(known)]:
        listed = ", ".join(f"{names[known.task]} {known.largest:,}" for known in limited)
        yield (
            "the measured sizes end before h50, at the token limit, at --max-size, or because "
            f"larger ones are rejected ({listed})."
        )
    if unfinished := [names[task] for task, known in run.horizons.items() if known.stop is None]:
        listed = "all tasks" if len(unfinished) == len(run.horizons) else ", ".join(unfinished)
        yield (
            f"unfinished, with wider intervals than requested ({listed}); the same numbench "
            "horizon command resumes it."
        )
    if run.control is None:
        yield (
            f"without the control task {CONTROL}, a size may be that of reading and writing digits."
        )


def _most(known: TaskHorizon) -> int:
    axis = TASKS[known.task].sizes
    assert axis is not None
    return axis.maximum
