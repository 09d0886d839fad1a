"""Other computations that wrong answers equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numbench.forensics.answers import MAX_ANSWERS
from numbench.forensics.computations import COMPUTATIONS
from numbench.records import Estimate
from numbench.reporting.data import ReportData
from numbench.reporting.tables.model import TASK_COLUMNS, Cell, Column, Row, Table, task_row


def _rows(data: ReportData) -> Iterator[Row]:
    for index, known in data.findings:
        for count in known.significant:
            low, high = (100 * bound for bound in count.share)
            cells: dict[str, Cell] = {
                "computation": COMPUTATIONS[count.alternative],
                "answers": count.matches,
                "of": count.decidable,
                "share": Estimate(100 * count.matches / count.decidable, low, high),
                "expected": count.expected,
                "p": count.adjusted,
            }
            yield task_row(data, index, count.task, cells)


def _notes(data: ReportData) -> Sequence[str]:
    return [
        f"{data.runs[index].label}: {known.sentence}"
        for index, known in data.findings
        if known.is_noteworthy
    ]


TABLE = Table(
    "findings",
    "What wrong answers are equal to",
    "Computations that wrong answers equal, in every digit that they give, more often than by "
    "chance (p of at most 0.05, adjusted by Holm's method over all counts of the run): another "
    "power of ten, the sample deviation, float64 arithmetic and others. Of: wrong answers that "
    f"can be told from the computation, of at most {MAX_ANSWERS} random ones per task; share: in "
    "percent, with its 95% interval; expected: matches by chance. A warning about another "
    "convention counts more answers than this table: all within 0.1% of its value. A "
    "match does not prove how a model computed.",
    (
        *TASK_COLUMNS,
        Column("computation", "Equal to"),
        Column("answers", "Answers", "count"),
        Column("of", "Of", "count"),
        Column("share", "Share, %", ".1f"),
        Column("expected", "Expected", ".2g"),
        Column("p", "Holm p", "p"),
    ),
    _rows,
    _notes,
)
