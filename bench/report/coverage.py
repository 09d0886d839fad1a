"""What became of every item: nothing that a mean leaves out or counts as wrong goes unsaid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

from bench.records import Status
from bench.report.grid import Block, Grid
from bench.report.layout import shown
from bench.report.measured import Measured, dataset_label
from bench.report.tables import Context
from bench.scoring import paper
from bench.scoring.evidence import tool_mentions
from bench.scoring.run import NOT_ANSWERED
from bench.tasks import TASKS

STATUSES: tuple[Status, ...] = get_args(Status)
HEADER = (
    "Model",
    "Reasoning",
    "Dataset",
    "Task",
    "n",
    "counted",
    *STATUSES,
    "compliance",
    "tokens unknown",
    "tool mentioned",
)
_CAPTION = (
    "Items asked (n), items in the means (counted), what became of them, format compliance in "
    "percent, responses whose token count is not known, and responses whose reasoning speaks of a "
    "calculator, code or a search."
)


def coverage_rows(runs: Iterable[Measured]) -> list[list[str]]:
    """One row per run and task, under `HEADER`."""
    return [
        [
            run.entry.name,
            run.entry.reasoning,
            dataset_label(run.run),
            TASKS[task].display,
            str(cell.n),
            str(cell.counted),
            *(str(cell.statuses.get(status, 0)) for status in STATUSES),
            shown(cell.compliance, 1),
            str(cell.tokens_unknown),
            str(tools_mentioned(run, task)),
        ]
        for run in runs
        for task, cell in run.cells.items()
    ]


def tools_mentioned(run: Measured, task: str) -> int:
    """Responses of a task whose reasoning speaks of a tool as if it were used."""
    responses = (row.response for row in run.run.rows[task])
    return sum(bool(r is not None and tool_mentions(r.reasoning_text)) for r in responses)


def coverage_grid(runs: Sequence[Measured], context: Context) -> Grid:
    """The coverage table with its caption."""
    block = Block(context.heading, coverage_rows(runs))
    return Grid("coverage", "Coverage", HEADER, 4, [block], (_CAPTION, *context.notes))


def warnings(runs: Sequence[Measured]) -> tuple[str, ...]:
    """One line for each fact that a reader of the tables must know."""
    lines = list(_differences(runs))
    for run in runs:
        for fact in _facts(run):
            lines.append(f"{run.label}: {fact}")
    return tuple(lines)


def _differences(runs: Sequence[Measured]) -> Iterator[str]:
    datasets = dict.fromkeys(dataset_label(run.run) for run in runs)
    if len(datasets) > 1:
        yield f"The runs answer different datasets: {', '.join(datasets)}."
    prompts = {(run.run.info.prompt.name, run.run.info.prompt.sha256[:6]) for run in runs}
    if len(prompts) > 1:
        names = ", ".join(f"{name}@{sha}" for name, sha in sorted(prompts))
        yield f"The runs used different prompts: {names}."


def _facts(run: Measured) -> Iterator[str]:
    lacking = [task.display for name, task in TASKS.items() if name not in run.cells]
    if lacking:
        yield f"has no data for {', '.join(lacking)}."
    yield from _size(run)
    for status in STATUSES:
        if status == "ok":
            continue
        found = {task: cell.statuses.get(status, 0) for task, cell in run.cells.items()}
        if any(found.values()):
            yield f"{_consequence(run, status)} ({_per_task(found)})."
    cut_off = {task: _read_though_cut_off(run, task) for task in run.cells}
    if any(cut_off.values()):
        yield f"answers cut off at the token limit, read as they stand ({_per_task(cut_off)})."
    tools = {task: tools_mentioned(run, task) for task in run.cells}
    if any(tools.values()):
        yield f"reasoning that speaks of a calculator, code or a search ({_per_task(tools)})."
    unknown = {task: cell.tokens_unknown for task, cell in run.cells.items()}
    if sum(unknown.values()) == sum(cell.counted for cell in run.cells.values()) > 0:
        yield "no response has a known token count."
    elif any(unknown.values()):
        left_out = " or with one the study left out" if run.run.protocol == "paper" else ""
        yield f"responses without a known token count{left_out} ({_per_task(unknown)})."


def _read_though_cut_off(run: Measured, task: str) -> int:
    return sum(
        row.score.status == "ok"
        and row.response is not None
        and row.response.finish_reason == "length"
        for row in run.run.rows[task]
    )


def _size(run: Measured) -> Iterator[str]:
    limit = run.run.info.limit
    if limit is not None and any(len(items) > limit for items in run.run.dataset.by_task.values()):
        yield f"asked only the first {limit} items per task."
    if run.run.protocol == "paper" and any(cell.n > paper.ITEMS for cell in run.cells.values()):
        yield f"only the first {paper.ITEMS} items per task are counted, as in the paper."


def _consequence(run: Measured, status: Status) -> str:
    left_out = run.run.protocol == "exact" and status in NOT_ANSWERED
    treated = "left out of the means" if left_out else "counted as wrong"
    nouns = {"missing": "items without a response", "error": "failed requests"}
    return f"{nouns.get(status, f'{status} responses')} {treated}"


def _per_task(counts: dict[str, int]) -> str:
    parts = [f"{TASKS[task].display} {count}" for task, count in counts.items() if count]
    return f"{sum(counts.values())}: {', '.join(parts)}"
