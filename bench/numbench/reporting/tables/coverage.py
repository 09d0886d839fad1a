"""The responses behind each score, and what they score if other formats are read too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from numbench.records import Status
from numbench.reporting.data import ReportData
from numbench.reporting.tables.model import TASK_COLUMNS, Cell, Column, Row, Table, task_row

STATUSES: tuple[Status, ...] = get_args(Status)


def _rows(data: ReportData) -> Iterator[Row]:
    for index, run in enumerate(data.runs):
        for task, cell in run.cells.items():
            formats = run.formats.get(task)
            cells: dict[str, Cell] = {
                "questions": cell.n,
                "counted": cell.counted,
                **{status: cell.statuses.get(status, 0) for status in STATUSES},
                "compliance": cell.compliance,
                "lenient": formats and formats.lenient,
                "tokens_unknown": cell.tokens_unknown,
                "tool_mentioned": run.tool_mentions[task],
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
)
