"""The answer of a report in a few sentences: how good, how sure, against whom, at what price."""

from __future__ import annotations

from typing import NamedTuple

from numbench.reporting.comparisons import NOT_SIGNIFICANT
from numbench.reporting.data import Configuration, DatasetGroup, ReportData
from numbench.reporting.references import DATASET
from numbench.reporting.tables.model import Estimate

BASELINE_PREFIX = "baseline/"
"""Prefix of the models that compute answers in this process, without generating tokens."""


class Answer(NamedTuple):
    """What a report says about a run. run: its index in `ReportData.runs`."""

    group: DatasetGroup
    run: int
    sentences: tuple[str, ...]


def answers(data: ReportData) -> tuple[Answer, ...]:
    """Return the answer about the best run on each dataset."""
    return tuple(
        Answer(group, index, answer(data, index))
        for group in data.datasets
        if (index := best_run(data, group)) is not None
    )


def best_run(data: ReportData, group: DatasetGroup) -> int | None:
    """Return the first run of a dataset in the order of the tables; None without a mean."""
    return next((index for index in group.runs if data.mean(data.runs[index])), None)


def answer(data: ReportData, index: int) -> tuple[str, ...]:
    """Return at most three sentences about a run: its rank, its neighbors and its price."""
    run = data.runs[index]
    group = data.group_of(run)
    sentences = (_rank(data, group, index), _neighbors(data, group, run), _price(data, run))
    return tuple(filter(None, sentences))


def how_to_compare(data: ReportData) -> str:
    """Say how to compare runs with the published configurations, if none is on their questions."""
    on_paper = (
        group.references or group.label.startswith(f"{DATASET}@") for group in data.datasets
    )
    if not data.runs or any(on_paper):
        return ""
    return (
        "To compare a model with published ones on the same questions: numbench run "
        f"--dataset {DATASET}"
    )


def _rank(data: ReportData, group: DatasetGroup, index: int) -> str:
    run, ranks = data.runs[index], data.ranks()
    mean = data.mean(run)
    assert mean
    count = len(run.tasks)
    what = f"mean of {count} tasks" if count > 1 else "one task"
    text = f"{run.label} scores {_with_interval(mean, '.1f')} ({what})"
    if index in ranks:
        best, worst = ranks[index]
        position = f"{best}" if best == worst else f"{best} to {worst}"
        ranked = len(data.ranked_members(group))
        others = len(group.members) - ranked
        note = f"; {others} without scores on every task have none" if others else ""
        where = f"has rank {position} of {ranked} on {group.label}"
        return f"{text} and {where} (95% confidence{note})."
    if count < len(group.tasks):
        return f"{text}; it has no rank, because it lacks {len(group.tasks) - count} tasks."
    return f"{text} on {group.label}."


def _neighbors(data: ReportData, group: DatasetGroup, run: Configuration) -> str:
    """Return the configurations whose means are the nearest, by their paired differences."""
    known = [
        (other, difference)
        for member in group.members
        if (other := data.configurations[member]) is not run
        and data.has_all_values(member, run.tasks)
        and (difference := data.difference(other, run))
    ]
    parts = []
    for name, where in (("better", "ahead"), ("worse", "behind")):
        sides = [pair for pair in known if (pair[1].difference > 0) == (where == "ahead")]
        if sides:
            other, one = min(sides, key=lambda pair: abs(pair[1].difference))
            ends = (one.low, one.high) if where == "ahead" else (-one.high, -one.low)
            points = f"{abs(one.difference):.1f} points {where} [{ends[0]:z.1f}, {ends[1]:z.1f}]"
            doubt = f", {NOT_SIGNIFICANT}" if one.verdict == NOT_SIGNIFICANT else ""
            if doubt and ends[0] * ends[1] > 0:
                doubt += " after correction for several comparisons"
            parts.append(f"nearest {name}: {other.label}, {points}{doubt}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _price(data: ReportData, run: Configuration) -> str:
    tokens, cost = data.mean(run, "generated_tokens"), data.cost(run)
    parts = []
    if tokens and not (run.scored and run.scored.info.model.startswith(BASELINE_PREFIX)):
        text = f"{_with_interval(tokens, ',.0f')} tokens per answer"
        if run.runaway:
            text += f" (median {data.median_tokens(run):,.0f})"
        parts.append(text)
    if cost:
        parts.append(f"USD {_with_interval(cost, ',.2f')} per 1,000 questions")
    return f"It takes {' and '.join(parts)}." if parts else ""


def _with_interval(estimate: Estimate, form: str) -> str:
    """Return a number with its interval, unless both ends are the number as it is shown."""
    text, *ends = (format(x, form) for x in estimate if x is not None)
    return f"{text} [{', '.join(ends)}]" if {text} != set(ends) and ends else text
