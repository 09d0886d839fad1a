"""What affects how the numbers of a report can be read, each fact once, with what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean

import numpy as np

from numbench.core.texts import Sentences
from numbench.journal.identity import find_difference
from numbench.models.baseline import BASELINE_PREFIX
from numbench.reporting.data import MAX_TASK_COLUMNS, ReportData
from numbench.reporting.horizon_runs import CONTROL, HorizonRun
from numbench.reporting.tables.memory import memory_warnings
from numbench.reporting.values import RunConfiguration
from numbench.scoring import paper_protocol
from numbench.scoring.error_kinds import UNANSWERED_STATUSES, score_with_conventions
from numbench.scoring.scored_run import counted_rows
from numbench.tasks import TASKS
from numbench.tasks.prompts import changed_prompts
from numbench.transforms import NO_TRANSFORM

AFFECTS_SCORES = "What affects the scores"
INFORMATION = "Further information"
"""Headings of facts that change what the scores mean, and of those that only help to read them."""

_MAX_CONVENTION_GAIN = 1.0
"""A score depends on a convention if accepting another adds more than this many points."""

_text = Sentences(__file__)


def report_warnings(data: ReportData) -> dict[str, list[str]]:
    """Return heading → what affects how the numbers can be read, the most severe first.

    Each is one sentence. Without empty headings. They are computed once.
    """
    return data.once("warnings", lambda: _warnings(data))


def _warnings(data: ReportData) -> dict[str, list[str]]:
    scores = [*data.skipped, *_mixed_runs(data)]
    scores += [f"{run.label}: {text}" for run in data.runs for text in _score_texts(run)]
    scores += memory_warnings(data)
    scores += [f"{run.label}: {text}" for run in data.horizons for text in _horizon_texts(run)]
    information = [f"{run.label}: {text}" for run in data.runs for text in _information(run)]
    texts = {AFFECTS_SCORES: scores, INFORMATION: information}
    return {heading: list(dict.fromkeys(known)) for heading, known in texts.items() if known}


def _mixed_runs(data: ReportData) -> Iterator[str]:
    """Yield in what the runs on one dataset differ, beside the model."""
    for group in data.datasets:
        infos = [data.runs[index].scored.info for index in group.runs]
        prompts = [info.prompt for info in infos]
        if any(changed_prompts(prompts[0], prompt) for prompt in prompts[1:]):
            names = ", ".join(sorted({f"{prompt.name}@{prompt.sha256[:6]}" for prompt in prompts}))
            yield _text("wordings", dataset=group.label, names=names)
        notations = dict.fromkeys(info.transform or NO_TRANSFORM for info in infos)
        if len(notations) > 1:
            yield _text("notations", dataset=group.label, names=", ".join(notations))
    runs = [(run.label, run.scored.info) for run in data.runs]
    for label, info in runs:
        wholes = [
            name for name, other in runs if not other.shard and not find_difference(info, other)
        ]
        if info.shard and wholes:
            yield _text("repeated_shard", run=label, whole=wholes[0])


def _score_texts(run: RunConfiguration) -> Iterator[str]:
    """Yield what changes the meaning of the scores: questions, models, lost answers."""
    scored = run.scored
    info, is_paper = scored.info, scored.protocol == "paper"
    most = max((len(items) for items in scored.dataset.by_task.values()), default=0)
    if info.limit is not None and most > info.limit:
        yield _text("limit", limit=info.limit)
    if info.shard is not None:
        yield _text("shard", shard=info.shard)
    count = paper_protocol.ITEMS_PER_TASK
    if is_paper and any(cell.n > count for cell in run.cells.values()):
        yield _text("paper_items", count=count)
    yield from (f"{warning}." for warning in scored.served.warnings)
    retried = {task: int(rows.columns["is_retried"].sum()) for task, rows in scored.rows.items()}
    yield from _counted("retried", retried)
    unit = "questions" if info.samples == 1 else "samples"
    for status, noun in _text.texts["statuses"].items():
        counts = {task: cell.statuses.get(status, 0) for task, cell in run.cells.items()}
        is_excluded = not is_paper and status in UNANSWERED_STATUSES
        consequence = "not in the means" if is_excluded else "scored as incorrect"
        to_do = "" if info.source == "imported" else _text.texts["to_do"].get(status, "")
        noun = noun.format(unit=unit)
        yield from _counted("status", counts, noun=noun, consequence=consequence, to_do=to_do)
    counts = {task: result.only_lenient for task, result in run.formats.items()}
    if scored.protocol == "exact" and any(counts.values()):
        strict = fmean(float(run.values.tasks[task].score.mean()) for task in counts)
        score = fmean(result.score for result in run.formats.values())
        change = f"for a score of {score:.1f} instead of {strict:.1f}"
        if score - strict < 0.05:
            change = "without a change of the score"
        yield from _counted("other_formats", counts, change=change)
    if not is_paper:
        yield from _convention_texts(run)


def _convention_texts(run: RunConfiguration) -> Iterator[str]:
    """Yield the tasks whose score depends on a convention that the question leaves open."""
    for task in run.tasks:
        if not TASKS[task].conventions:
            continue
        rows = counted_rows(run.scored, task)
        scores = [score_with_conventions(item, score) for item, _, score in rows]
        accepted = 100 * fmean(rows.item_means(np.array([score.log_smape for score in scores])))
        strict = float(run.values.tasks[task].score.mean())
        if accepted - strict > _MAX_CONVENTION_GAIN:
            names = " or ".join(convention.display for convention in TASKS[task].conventions)
            followed = sum(score.follows for score in scores)
            display = TASKS[task].display
            yield _text(
                "convention", task=display, accepted=accepted, strict=strict, names=names,
                followed=followed, answers=int(rows.is_read.sum()),
            )  # fmt: skip


def _information(run: RunConfiguration) -> Iterator[str]:
    scored = run.scored
    is_lenient = scored.protocol == "lenient"
    other = {task: result.only_lenient * is_lenient for task, result in run.formats.items()}
    stopped = {
        task: int((rows.is_read & rows.columns["is_cut_off"]).sum())
        for task, rows in scored.rows.items()
    }
    yield from _counted("formats_read", other)
    yield from _counted("stopped", stopped)
    for origin, count in scored.late_prices.items():
        yield _text("late_price", count=count, origin=origin)
    unknown = {task: cell.tokens_unknown for task, cell in run.cells.items()}
    if scored.info.model.startswith(BASELINE_PREFIX) or not any(unknown.values()):
        return
    if sum(unknown.values()) == sum(len(counted_rows(scored, task)) for task in unknown):
        yield _text("no_tokens")
    else:
        excluded = " or with one that the paper excluded" if scored.protocol == "paper" else ""
        yield from _counted("some_tokens", unknown, excluded=excluded)


def _counted(name: str, counts: Mapping[str, int], **values: object) -> Iterator[str]:
    """Yield a text about responses, with their number by task, if there are any."""
    if any(counts.values()):
        yield _text(name, counts=_per_task(counts), **values)


def _per_task(counts: Mapping[str, int]) -> str:
    parts = [f"{TASKS[task].display} {count}" for task, count in counts.items() if count]
    more = len(parts) - MAX_TASK_COLUMNS
    tail = [f"and {more} more tasks"] if more > 0 else []
    return f"{sum(counts.values())}: {', '.join(parts[:MAX_TASK_COLUMNS] + tail)}"


def _horizon_texts(run: HorizonRun) -> Iterator[str]:
    """Yield what to know before using the horizons of a run."""
    yield from (f"{warning}." for warning in run.warnings)
    answered = [horizon for horizon in run.horizons.values() if horizon.items]
    names = {task: TASKS[task].display for task in run.horizons}
    if silent := [names[task] for task, known in run.horizons.items() if not known.items]:
        yield _text("silent", tasks=", ".join(silent))
    for known in answered:
        if known.is_doubtful or not known.fits:
            level, crossing = f"{known.level(known.h50.value):.0%}", known.isotonic
            instead = _text("no_crossing", level=level)
            if crossing is not None:
                size, other = known.text(crossing), known.level(crossing)
                instead = _text("crossing", level=other, size=size, unit=known.unit)
            verdict = "it is doubtful whether a curve fits" if known.fits else "no curve fits"
            yield _text(
                "fit", task=names[known.task], verdict=verdict, p=known.fit_p, instead=instead,
                level=level, size=known.text(known.h50.value),
            )  # fmt: skip
    yield from _counted("truncated", {known.task: known.truncated for known in answered})
    limited = []
    for known in answered:
        axis = TASKS[known.task].sizes
        if axis and known.h50.high >= known.largest < axis.maximum:
            limited.append(f"{names[known.task]} {known.largest:,}")
    if limited:
        yield _text("sizes", sizes=", ".join(limited))
    if unfinished := [names[task] for task, known in run.horizons.items() if known.stop is None]:
        listed = "all tasks" if len(unfinished) == len(run.horizons) else ", ".join(unfinished)
        yield _text("unfinished", tasks=listed)
    if run.control is None:
        yield _text("no_control", control=CONTROL)
