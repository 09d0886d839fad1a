"""Coverage: the status of every item, and warnings about missing, failed or excluded ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, get_args

from numbench.records import Status, is_cached
from numbench.reporting.answer_formats import FormatScores
from numbench.reporting.entries import MeasuredRun, dataset_label
from numbench.reporting.report_warnings import ReportWarning
from numbench.reporting.table_model import RowGroup, format_value
from numbench.reporting.table_spec import TableContent, TableSpec
from numbench.scoring import paper_protocol
from numbench.scoring.scored_run import counted_rows
from numbench.scoring.taxonomy import UNANSWERED_STATUSES
from numbench.served_models import drift_warnings
from numbench.tasks import TASKS
from numbench.tasks.prompts import changed_prompts
from numbench.transforms import NO_TRANSFORM

if TYPE_CHECKING:
    from numbench.reporting.report_data import ReportData

STATUSES: tuple[Status, ...] = get_args(Status)
COVERAGE_HEADER = (
    "Model",
    "Reasoning",
    "Dataset",
    "Task",
    "n",
    "counted",
    *STATUSES,
    "compliance",
    "exact",
    "lenient",
    "tokens unknown",
    "tool mentioned",
)
COVERAGE_CAPTION = (
    "n: items in the run; counted: items included in the means; then items per status (in a run "
    "with several samples per item: samples); format compliance, exact match, and exact match if "
    "answers in other formats are read too (protocol lenient), in percent; responses without a "
    "token count, and responses whose reasoning mentions a calculator, code or search."
)
_BASELINE_PREFIX = "baseline/"
"""Prefix of the models that compute answers without generating tokens."""


def coverage_rows(runs: Iterable[MeasuredRun]) -> list[list[str]]:
    """Return one row per run and task, for `COVERAGE_HEADER`."""
    return [
        [
            run.entry.name,
            run.entry.reasoning,
            dataset_label(run.scored),
            TASKS[task].display,
            str(cell.n),
            str(cell.counted),
            *(str(cell.statuses.get(status, 0)) for status in STATUSES),
            format_value(cell.compliance, 1),
            *_format_cells(run.formats.get(task)),
            str(cell.tokens_unknown),
            str(run.tool_mentions[task]),
        ]
        for run in runs
        for task, cell in run.cells.items()
    ]


def _format_cells(scores: FormatScores | None) -> tuple[str, str]:
    if scores is None:
        return "", ""
    return format_value(scores.exact, 1), format_value(scores.lenient, 1)


def coverage_warnings(runs: Sequence[MeasuredRun]) -> list[ReportWarning]:
    """Return one line for each fact that affects how the scores can be read."""
    warnings = [ReportWarning(text) for text in _mixed_input_warnings(runs)]
    for run in runs:
        warnings += [ReportWarning(f"{run.label}: {text}") for text in _score_warnings(run)]
        texts = [f"{run.label}: {text}" for text in _information(run)]
        warnings += [ReportWarning(text, "information") for text in texts]
    return warnings


def _mixed_input_warnings(runs: Sequence[MeasuredRun]) -> Iterator[str]:
    datasets = dict.fromkeys(dataset_label(run.scored) for run in runs)
    if len(datasets) > 1:
        yield f"The runs use different datasets: {', '.join(datasets)}."
    prompts = [run.scored.info.prompt for run in runs]
    if any(changed_prompts(prompts[0], prompt) for prompt in prompts[1:]):
        names = ", ".join(sorted({f"{prompt.name}@{prompt.sha256[:6]}" for prompt in prompts}))
        yield f"The runs use different prompts: {names}."
    forms = dict.fromkeys(run.scored.info.transform or NO_TRANSFORM for run in runs)
    if len(forms) > 1:
        yield f"The runs ask the items in different forms: {', '.join(forms)}."


def _score_warnings(run: MeasuredRun) -> Iterator[str]:
    """Yield what changes the meaning of the scores: items, prompts, models, lost answers."""
    missing = [TASKS[task].display for task in run.scored.dataset.tasks if task not in run.cells]
    if missing:
        yield f"no results for {', '.join(missing)}."
    yield from _item_limit_warnings(run)
    yield from _route_warnings(run)
    for status in STATUSES:
        if status == "ok":
            continue
        counts = {task: cell.statuses.get(status, 0) for task, cell in run.cells.items()}
        if any(counts.values()):
            yield f"{_status_warning(run, status)} ({_per_task(counts)})."


def _information(run: MeasuredRun) -> Iterator[str]:
    yield from _format_warnings(run)
    truncated = {task: _count_truncated_but_parsed(run, task) for task in run.cells}
    if any(truncated.values()):
        yield f"truncated at the token limit but scored ({_per_task(truncated)})."
    yield from _cache_warnings(run)
    if any(run.tool_mentions.values()):
        yield f"reasoning mentions a calculator, code or search ({_per_task(run.tool_mentions)})."
    if not run.scored.info.model.startswith(_BASELINE_PREFIX):
        yield from _token_warnings(run)


def _route_warnings(run: MeasuredRun) -> Iterator[str]:
    """Yield warnings if a route changed the messages, or the model behind it changed."""
    if run.scored.info.settings.get("altered_messages"):
        yield "the route changed the messages (see requests.jsonl of the run)."
    rows = (row for task in run.cells for row in run.scored.rows[task])
    for warning in drift_warnings(row.response for row in rows if row.response is not None):
        yield f"{warning}."


def _format_warnings(run: MeasuredRun) -> Iterator[str]:
    counts = {task: result.only_lenient for task, result in run.formats.items()}
    if not any(counts.values()):
        return
    changes = ", ".join(
        f"{TASKS[task].display} {format_value(result.lenient, 1)} instead of "
        f"{format_value(result.exact, 1)}"
        for task, result in run.formats.items()
        if result.lenient != result.exact
    )
    consequence = "scored as incorrect" if run.scored.protocol == "exact" else "read nevertheless"
    yield (
        f"answers that only the protocol lenient reads, {consequence} ({_per_task(counts)})"
        + (f"; with them, exact match is {changes}." if changes else ".")
    )


def _cache_warnings(run: MeasuredRun) -> Iterator[str]:
    counts = {
        task: sum(row.response is not None and is_cached(row.response) for row in rows)
        for task, rows in run.scored.rows.items()
    }
    if any(counts.values()):
        yield f"answers from the response cache, without cost and latency ({_per_task(counts)})."


def _token_warnings(run: MeasuredRun) -> Iterator[str]:
    unknown = {task: cell.tokens_unknown for task, cell in run.cells.items()}
    if sum(unknown.values()) == sum(len(counted_rows(run.scored, task)) for task in unknown) > 0:
        yield "token counts are not available."
    elif any(unknown.values()):
        excluded = ""
        if run.scored.protocol == "paper":
            excluded = " or with one that the study excluded"
        yield f"responses without a token count{excluded} ({_per_task(unknown)})."


def _count_truncated_but_parsed(run: MeasuredRun, task: str) -> int:
    return sum(
        row.score.status == "ok"
        and row.response is not None
        and row.response.finish_reason == "length"
        for row in run.scored.rows[task]
    )


def _item_limit_warnings(run: MeasuredRun) -> Iterator[str]:
    limit, shard = run.scored.info.limit, run.scored.info.shard
    if limit is not None and any(
        len(items) > limit for items in run.scored.dataset.by_task.values()
    ):
        yield f"includes only the first {limit} items per task."
    if shard is not None:
        yield f"includes only shard {shard} of these items; `numbench merge` joins the shards."
    if run.scored.protocol == "paper" and any(
        cell.n > paper_protocol.ITEMS_PER_TASK for cell in run.cells.values()
    ):
        items = paper_protocol.ITEMS_PER_TASK
        yield f"only the first {items} items per task are counted, as in the paper."


def _status_warning(run: MeasuredRun, status: Status) -> str:
    is_excluded = run.scored.protocol != "paper" and status in UNANSWERED_STATUSES
    consequence = "excluded from the means" if is_excluded else "scored as incorrect"
    unit = "items" if run.scored.info.samples == 1 else "samples"
    nouns = {"missing": f"{unit} without a response", "error": "failed requests"}
    return f"{nouns.get(status, f'{status} responses')} {consequence}"


def _per_task(counts: dict[str, int]) -> str:
    parts = [f"{TASKS[task].display} {count}" for task, count in counts.items() if count]
    return f"{sum(counts.values())}: {', '.join(parts)}"


def _coverage(data: ReportData) -> TableContent:
    groups = [RowGroup(data.heading, coverage_rows(data.runs))]
    return TableContent(COVERAGE_HEADER, groups, text_columns=4)


COVERAGE = TableSpec("coverage", "Coverage", COVERAGE_CAPTION, _coverage, on_page=False)
