"""The table of differences between runs, and between runs and references."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numbench.reporting.comparisons import ALL
from numbench.reporting.data import ReportData
from numbench.reporting.tables.model import (
    TASK_COLUMNS,
    Cell,
    Column,
    Estimate,
    Row,
    Table,
    task_row,
)


def _rows(data: ReportData) -> Iterator[Row]:
    """Yield the differences in the headline metric, those of the means first."""
    order = {task: number for number, task in enumerate((ALL, *data.tasks))}
    known = data.comparisons.differences
    for one in sorted(known, key=lambda one: (one.left, order[one.task])):
        right = data.configurations[one.right]
        cells: dict[str, Cell] = {
            "other": right.label,
            "questions": one.items,
            "score": one.means[0],
            "other_score": one.means[1],
            "difference": Estimate(one.difference, one.low, one.high),
            "p": one.p_adjusted,
            "verdict": one.verdict,
        }
        row = task_row(data, one.left, one.task, cells)
        yield row if right.scored else row._replace(kind="reference")


def _notes(data: ReportData) -> Sequence[str]:
    least = [
        one.detectable
        for one in data.comparisons.differences
        if one.task == ALL and one.detectable is not None
    ]
    if not least:
        return ()
    low, high = f"{min(least):.1f}", f"{max(least):.1f}"
    points = low if low == high else f"{low} to {high}"
    return (
        f"Minimum detectable difference of the means (80% power, 5% level, pair by pair): {points} "
        "points.",
    )


TABLE = Table(
    "comparisons",
    "Comparisons",
    "Score of a run minus that of another run or reference, on the questions that both "
    "answer, in points with its 95% interval. All: mean over the tasks that both include. p: "
    "paired test with Holm's correction over the tasks of the pair.",
    (
        *TASK_COLUMNS[:2],
        Column("other", "Compared with"),
        TASK_COLUMNS[2],
        Column("questions", "Questions", "count"),
        Column("score", "Score", ".1f"),
        Column("other_score", "Other score", ".1f"),
        Column("difference", "Difference", "+.1f"),
        Column("p", "Holm p", "p"),
        Column("verdict", "Verdict"),
    ),
    _rows,
    _notes,
)
