"""The responses behind each score, and what they score if other formats are read too."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import NamedTuple, get_args

from numbench.records import Status
from numbench.reporting.data import ReportData
from numbench.reporting.tables.model import TASK_COLUMNS, Cell, Column, Row, Table, task_row
from numbench.scoring import score_lenient
from numbench.scoring.scored_run import (
    ScoredItem,
    ScoredRun,
    counted_rows,
    item_groups,
    item_means,
)

STATUSES: tuple[Status, ...] = get_args(Status)


class FormatScores(NamedTuple):
    """Exact match of one run on one task under the protocols `exact` and `lenient`, 0 to 100.

    only_lenient: answers that only `lenient` reads.
    """

    exact: float
    lenient: float
    only_lenient: int


def format_scores(run: ScoredRun, task: str) -> FormatScores | None:
    """Return the exact match under both protocols; None under `paper` and without counted items."""
    rows = counted_rows(run, task)
    if run.protocol == "paper" or not rows:
        return None
    groups = item_groups(rows)
    lenient = {
        id(row): score_lenient(row.item, row.response)
        for row in rows
        if row.score.rule in (None, "lenient")
    }

    def is_exact(row: ScoredItem) -> bool:
        return id(row) not in lenient and row.score.exact_match

    def is_lenient(row: ScoredItem) -> bool:
        return lenient.get(id(row), row.score).exact_match

    return FormatScores(
        100 * fmean(item_means(groups, is_exact)),
        100 * fmean(item_means(groups, is_lenient)),
        sum(score.status == "ok" for score in lenient.values()),
    )


def _rows(data: ReportData) -> Iterator[Row]:
    for index, run in enumerate(data.runs):
        for task, cell in run.cells.items():
            formats = data.formats(run).get(task)
            cells: dict[str, Cell] = {
                "questions": cell.n,
                "counted": cell.counted,
                **{status: cell.statuses.get(status, 0) for status in STATUSES},
                "compliance": cell.compliance,
                "lenient": formats and formats.lenient,
                "tokens_unknown": cell.tokens_unknown,
                "tool_mentioned": data.tool_mentions(run)[task],
            }
            yield task_row(data, index, task, cells)


TABLE = Table(
    "coverage",
    "Coverage",
    "Questions: in the run; counted: included in the means; then samples by status; answers in "
    "the requested format, and exact match if answers in other formats are read too (protocol "
    "lenient), in percent; responses without a token count, and responses whose reasoning "
    "mentions a calculator, code or search.",
    (
        *TASK_COLUMNS,
        Column("questions", "Questions", "count"),
        Column("counted", "Counted", "count"),
        *(Column(status, status.capitalize(), "count") for status in STATUSES),
        Column("compliance", "In format", ".1f"),
        Column("lenient", "Lenient", ".1f"),
        Column("tokens_unknown", "Tokens unknown", "count"),
        Column("tool_mentioned", "Tool mentioned", "count"),
    ),
    _rows,
    on_page=False,
)
