"""The table of memory tests, and what each shows in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from numbench.memory_test.outcome import Outcome
from numbench.records import Estimate
from numbench.reporting.comparisons import ALL, task_name
from numbench.reporting.data import ReportData
from numbench.reporting.names import one_line
from numbench.reporting.tables.model import Row, declared_table
from numbench.tasks import TASKS


def _rows(data: ReportData) -> Iterator[Row]:
    for outcome in data.memory_tests:
        for row in outcome.rows:
            result, is_mean = row.result, row.task not in TASKS
            # Some columns have the names of the fields of a result.
            cells = {
                **(result._asdict() if result else {}),
                "model": one_line(outcome.display),
                "level": one_line(outcome.registration.reasoning),
                "task": task_name(ALL if is_mean else row.task),
                "pairs": result.n if result else 0,
                "frozen": row.frozen,
                "fresh": row.fresh,
                "difference": result and Estimate(result.difference, result.low, result.high),
                "p": row.p,
            }
            if is_mean:
                cells["margin"] = outcome.registration.rule.margin
                cells["verdict"] = outcome.verdict or "none"
            heading = f"{one_line(outcome.label)}: {outcome.verdict or 'no verdict'}"
            yield Row(cells, heading, task="" if is_mean else row.task)


def memory_sentence(outcome: Outcome) -> str:
    """Return what a memory test shows."""
    registered, row, result = outcome.registration, outcome.overall, outcome.overall.result
    name, dataset = one_line(outcome.label), registered.dataset.name
    if result is None:
        return f"{name}: no verdict on {dataset}; {outcome.reason}."
    means = TABLE.text("means", row=row, dataset=dataset, result=result)
    if outcome.verdict is None:
        return f"{name}: {means}. No verdict: {outcome.reason}."
    power = "undetectable" if outcome.detectable is None else "detectable"
    detectable = TABLE.text(power, share=outcome.detectable)
    margin = registered.rule.margin
    reason = TABLE.text(outcome.verdict, dataset=dataset, margin=margin, detectable=detectable)
    return f"{name}: {means}. Verdict: {outcome.verdict}. {reason}"


def memory_warnings(data: ReportData) -> list[str]:
    """Return a sentence for each memory test that shows memory, or that is not valid."""
    return [
        memory_sentence(outcome)
        for outcome in data.memory_tests
        if outcome.verdict == "memory"
        or (outcome.verdict is None and outcome.registration.seed is not None)
    ]


TABLE = declared_table(
    "memory_tests",
    _rows,
    lambda data: [memory_sentence(outcome) for outcome in data.memory_tests],
)
