"""The comparisons of runs as tables: every pair, ranks, and the mean of all tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from statistics import median
from typing import NamedTuple

from bench.report.comparisons import NOT_SHOWN, OVERALL, Comparisons, Contrast
from bench.report.grid import Block, Grid, to_csv, to_latex, to_markdown
from bench.report.layout import LOG_SMAPE, shown
from bench.report.measured import Measured, dataset_label
from bench.report.tables import Context
from bench.stats.mcnemar import fewest_discordant
from bench.tasks import TASKS

OVERALL_NAME = "Mean of tasks"
_RANKED = (*LOG_SMAPE.columns, (OVERALL_NAME, OVERALL))

COMPARISONS_HEADER = (
    "A", "A reasoning", "B", "B reasoning", "Dataset", "Task", "Measure", "Items", "A score",
    "B score", "Only A right", "Only B right", "Difference", "Low", "High", "p", "p over tasks",
    "p over pairs", "Smallest", "Verdict",
)  # fmt: skip
_COMPARISONS_READ = (
    "Task", "Measure", "Items", "A", "B", "Only A", "Only B", "A - B", "p", "p tasks", "p pairs",
    "Smallest", "A is",
)  # fmt: skip
_COMPARISONS_CAPTION = (
    "Every two runs, A and B, on the items that count for both: scores in percent, items that one "
    "alone has right, the difference in points with 95 % bounds, and p-values: as they are, with "
    "Holm's correction over the tasks of the pair, and over all pairs of the task. Matches: exact "
    "McNemar test, Tango's interval; log-sMAPE: paired bootstrap over items, randomisation test. "
    "Smallest: the true difference that such items show with a power of 80 %, before Holm's "
    "correction; empty where they show none or do not tell. Verdict: A is better "
    "or worse where p over tasks is at most 0.05 and the bounds leave out 0; a dash: no difference "
    "shown."
)
_RANKS_CAPTION = (
    "Rank on each task: 1 plus the number of runs on the same dataset that are shown to be better "
    "(p over pairs at most 0.05, bounds leave out 0). Runs that noise could exchange may share a "
    "rank; a shared rank does not prove them equal."
)
_OVERALL_CAPTION = (
    "Unweighted mean of all nine tasks in percent (log-sMAPE; MinMax, Interval and Sort: exact "
    "match) with 95 % bounds, bootstrapped over items within each task, and the rank. Empty for a "
    "run that has not answered all nine."
)


class Smallest(NamedTuple):
    """Smallest differences on one task, in points: the least, median and most of all pairs."""

    least: float
    median: float
    most: float


def write_comparisons(
    runs: Sequence[Measured], found: Comparisons, context: Context
) -> Iterator[tuple[str, str]]:
    """File name and content of the tables comparisons, ranks and overall."""
    yield "comparisons.csv", to_csv(COMPARISONS_HEADER, list(_comparison_rows(runs, found)))
    yield from _for_reading(comparisons_grid(runs, found, context))
    for grid in (ranks_grid(runs, found, context), overall_grid(runs, found, context)):
        yield f"{grid.name}.csv", to_csv(grid.header, [row for b in grid.blocks for row in b.rows])
        yield from _for_reading(grid)


def _for_reading(grid: Grid) -> Iterator[tuple[str, str]]:
    yield f"{grid.name}.md", to_markdown(grid)
    yield f"{grid.name}.tex", to_latex(grid)


def comparisons_grid(runs: Sequence[Measured], found: Comparisons, context: Context) -> Grid:
    """One block per pair of runs."""
    by_pair = groupby(found.contrasts, key=lambda c: (c.first, c.second))
    blocks = [
        Block(
            f"A: {runs[first].label}; B: {runs[second].label}",
            [_read(contrast) for contrast in contrasts],
        )
        for (first, second), contrasts in by_pair
    ]
    notes = [_COMPARISONS_CAPTION, *_not_compared(found), *context.notes]
    return Grid("comparisons", "Comparisons", _COMPARISONS_READ, 2, blocks, notes)


def ranks_grid(runs: Sequence[Measured], found: Comparisons, context: Context) -> Grid:
    """One row per run; an empty cell where it has nobody to be ranked with."""
    header = ["Model", "Reasoning", "Dataset", *(name for name, _ in _RANKED)]
    rows = [
        [*_names(run), *(str(ranks.get(task, "")) for _, task in _RANKED)]
        for run, ranks in zip(runs, found.ranks, strict=True)
    ]
    notes = [_RANKS_CAPTION, *_not_compared(found), *context.notes]
    return Grid("ranks", "Ranks", header, 3, [Block(context.heading, rows)], notes)


def overall_grid(runs: Sequence[Measured], found: Comparisons, context: Context) -> Grid:
    """One row per run."""
    header = ("Model", "Reasoning", "Dataset", "Tasks", OVERALL_NAME, "Low", "High", "Rank")
    rows = [
        [
            *_names(run),
            f"{sum(cell.score is not None for cell in run.cells.values())} of {len(TASKS)}",
            *(shown(value, 1) for value in estimate or (None, None, None)),
            str(ranks.get(OVERALL, "")),
        ]
        for run, estimate, ranks in zip(runs, found.overall, found.ranks, strict=True)
    ]
    notes = [_OVERALL_CAPTION, *_not_compared(found), *context.notes]
    return Grid("overall", OVERALL_NAME, header, 3, [Block(context.heading, rows)], notes)


def smallest_note(runs: Sequence[Measured], found: Comparisons) -> str:
    """What difference the items can show at all; for every caption."""
    sizes = {cell.counted for run in runs for cell in run.cells.values() if cell.counted}
    if not sizes:
        return ""
    fewest, items = fewest_discordant(), max(sizes)
    if items < fewest:
        return (
            "Of a task no difference can be shown on so few items: at most "
            f"{items}, and {fewest} are needed."
        )
    note = (
        f"On {items} items a difference of fewer than {fewest} right answers "
        f"({100 * fewest / items:.1f} points) never shows"
    )
    smallest = smallest_differences(found.contrasts)
    medians = [one.median for task, one in smallest.items() if task != OVERALL]
    if not medians:
        return f"{note}."
    return (
        f"{note}; two of these runs show a true difference (power 80 %, before Holm's correction) "
        f"from {min(medians):.1f} to {max(medians):.1f} points by task, the median over pairs."
    )


def smallest_differences(contrasts: Iterable[Contrast]) -> dict[str, Smallest]:
    """Task → smallest differences of its headline metric, for tasks where a pair tells."""
    by_task: dict[str, list[float]] = {}
    for contrast in contrasts:
        if contrast.table == LOG_SMAPE.name and contrast.found and contrast.found.smallest:
            by_task.setdefault(contrast.task, []).append(contrast.found.smallest)
    return {task: Smallest(min(all_), median(all_), max(all_)) for task, all_ in by_task.items()}


def too_few_items(contrasts: Iterable[Contrast]) -> list[str]:
    """The tasks that have items in common, but so few that no difference could be shown."""
    return [
        contrast.task
        for contrast in contrasts
        if contrast.table == LOG_SMAPE.name
        and contrast.task != OVERALL
        and (test := contrast.found)
        and test.smallest is None
        # With enough items it is unknown where all scores are equal, which is no lack of items.
        and (test.n < fewest_discordant() or test.low < test.high)
    ]


def task_name(task: str) -> str:
    """The display name of a task, or of the mean of all."""
    return OVERALL_NAME if task == OVERALL else TASKS[task].display


def p_shown(p: float | None) -> str:
    """Two significant digits, empty where there is no test."""
    return "" if p is None else f"{p:.2g}"


def difference_shown(contrast: Contrast) -> str:
    """`-7.1 [-9.0, -5.1]`, in points; empty without common items."""
    if contrast.found is None:
        return ""
    _, *values = contrast.found[:4]
    difference, low, high = (shown(value, 1) for value in values)
    return f"{difference} [{low}, {high}]"


def _names(run: Measured) -> tuple[str, str, str]:
    return run.entry.name, run.entry.reasoning, dataset_label(run.run)


def _measure(contrast: Contrast) -> str:
    if contrast.task == OVERALL:
        return "mean"
    is_number = TASKS[contrast.task].metric == "log_smape"
    return "log-sMAPE" if is_number and contrast.table == LOG_SMAPE.name else "exact match"


def _comparison_rows(runs: Sequence[Measured], found: Comparisons) -> Iterator[list[str]]:
    for contrast in found.contrasts:
        first, second = runs[contrast.first], runs[contrast.second]
        test = contrast.found
        bounds = (test.difference, test.low, test.high) if test else (None, None, None)
        yield [
            first.entry.name,
            first.entry.reasoning,
            second.entry.name,
            second.entry.reasoning,
            dataset_label(first.run),
            task_name(contrast.task),
            _measure(contrast),
            str(test.n if test else 0),
            *(shown(mean, 2) for mean in contrast.means or (None, None)),
            *(str(count) for count in contrast.only or ("", "")),
            *(shown(value, 2) for value in bounds),
            *(p_shown(p) for p in _p_values(contrast)),
            shown(test.smallest if test else None, 2),
            contrast.verdict,
        ]


def _read(contrast: Contrast) -> list[str]:
    test = contrast.found
    return [
        task_name(contrast.task),
        _measure(contrast),
        str(test.n if test else 0),
        *(shown(mean, 1) for mean in contrast.means or (None, None)),
        *(str(count) for count in contrast.only or ("", "")),
        difference_shown(contrast),
        *(p_shown(p) for p in _p_values(contrast)),
        shown(test.smallest if test else None, 1),
        "-" if contrast.verdict == NOT_SHOWN else contrast.verdict,
    ]


def _p_values(contrast: Contrast) -> tuple[float | None, float | None, float | None]:
    return contrast.found.p if contrast.found else None, contrast.p_tasks, contrast.p_pairs


def _not_compared(found: Comparisons) -> list[str]:
    count = found.not_compared
    if not count:
        return []
    pairs = "1 pair of runs answers" if count == 1 else f"{count} pairs of runs answer"
    return [f"{pairs} different datasets: not compared, and not ranked with each other."]
