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
            result = row.result
            is_mean = row.task not in TASKS
            yield Row(
                {
                    "model": one_line(outcome.display),
                    "level": one_line(outcome.registration.reasoning),
                    "task": task_name(ALL if is_mean else row.task),
                    "pairs": result.n if result else 0,
                    "frozen": row.frozen,
                    "fresh": row.fresh,
                    "difference": result and Estimate(result.difference, result.low, result.high),
                    "at_least": result.at_least if result else None,
                    "at_most": result.at_most if result else None,
                    "p": row.p,
                    "margin": outcome.registration.rule.margin if is_mean else None,
                    "verdict": (outcome.verdict or "none") if is_mean else None,
                },
                f"{one_line(outcome.label)}: {outcome.verdict or 'no verdict'}",
                task="" if is_mean else row.task,
            )


def memory_sentence(outcome: Outcome) -> str:
    """Return what a memory test shows."""
    name, dataset = one_line(outcome.label), outcome.registration.dataset.name
    row, result = outcome.overall, outcome.overall.result
    if result is None:
        return f"{name}: no verdict on {dataset}; {outcome.reason}."
    means = (
        f"{row.frozen:.1f}% correct on {dataset}, {row.fresh:.1f}% on fresh questions of the same "
        f"difficulty: {result.difference:+.1f} points (95% interval {result.low:+.1f} to "
        f"{result.high:+.1f}, {result.n:,} pairs)"
    )
    if outcome.verdict is None:
        return f"{name}: {means}. No verdict: {outcome.reason}."
    return f"{name}: {means}. Verdict: {_explanation(outcome)}"


def _explanation(outcome: Outcome) -> str:
    dataset, margin = outcome.registration.dataset.name, outcome.registration.rule.margin
    share = outcome.detectable
    known = (
        "no share of memorized questions" if share is None else f"memorizing {share:.0%} of them"
    )
    detectable = f"{known} would have been detected with 80% power."
    reasons = {
        "memory": f"The model does better on {dataset} than its ability explains.",
        "frozen harder": f"The model does worse on {dataset} than on fresh questions, which memory "
        "does not explain.",
        "equivalent": f"A difference of {margin:g} points or more is excluded; {detectable}",
        "inconclusive": f"No difference is shown, and one of {margin:g} points is not excluded; "
        f"{detectable}",
    }
    verdict = outcome.verdict if outcome.verdict in reasons else "inconclusive"
    return f"{verdict}. {reasons[verdict or 'inconclusive']}"


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
