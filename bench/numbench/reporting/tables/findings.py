"""Other computations that wrong answers equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numbench.forensics.answers import MAX_ANSWERS
from numbench.forensics.computations import COMPUTATIONS
from numbench.records import Estimate
from numbench.reporting.data import ReportData
from numbench.reporting.tables.model import Cell, Row, declared_table, task_row


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
        if known.significant or known.evidence.is_flagged
    ]


TABLE = declared_table("findings", _rows, _notes, answers=MAX_ANSWERS)
