"""The answer of a report in a few sentences: which run is better, how sure, at what price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from numbench.models.baseline import BASELINE_PREFIX
from numbench.reporting.comparisons import NOT_SIGNIFICANT, PairDifference
from numbench.reporting.data import DatasetGroup, ReportData
from numbench.reporting.estimate import Estimate
from numbench.reporting.references import DATASET
from numbench.stats.intervals import ALPHA

_MAX_COMPARED = 3
"""The best run is compared with at most so many others in words."""


class Answer(NamedTuple):
    """What a report says about the runs on a dataset: one run against the others first."""

    group: DatasetGroup
    sentences: tuple[str, ...]


def answers(data: ReportData) -> tuple[Answer, ...]:
    """Return the answer about the runs on each dataset."""
    return tuple(
        Answer(group, answer(data, group, index))
        for group in data.datasets
        if (index := best_run(data, group)) is not None
    )


def best_run(data: ReportData, group: DatasetGroup) -> int | None:
    """Return the first run of a dataset in the order of the tables; None without a mean."""
    return next((index for index in group.runs if data.estimate(data.runs[index])), None)


def answer(data: ReportData, group: DatasetGroup, index: int) -> tuple[str, ...]:
    """Return at most four sentences: the score, other runs, the price, published models."""
    others = [
        known for other in group.runs if other != index and (known := _against(data, index, other))
    ]
    sentences = (
        _score(data, group, index),
        _other_runs(data, others),
        _price(data, [index, *(one.left for one in others)]),
        _references(data, group, index),
    )
    return tuple(filter(None, sentences))


def how_to_compare(data: ReportData) -> str:
    """Say how to compare runs with the published configurations, if none is compared."""
    on_paper = [group.label.startswith(f"{DATASET}@") for group in data.datasets]
    if not data.runs or any(group.references for group in data.datasets):
        return ""
    if any(on_paper):
        is_exact = data.protocol == "exact"
        return "" if is_exact else "Published models are compared under --protocol exact only."
    return (
        "To compare a model with published ones on the same questions: numbench run "
        f"--dataset {DATASET}"
    )


def _against(data: ReportData, index: int, other: int) -> PairDifference | None:
    """Return another configuration minus a run, on the questions that both answer."""
    return data.difference(data.configurations[other], data.runs[index])


def nearest(data: ReportData, group: DatasetGroup, index: int) -> PairDifference | None:
    """Return the published configuration with the nearest mean, minus a run."""
    known = [one for other in group.references if (one := _against(data, index, other))]
    return min(known, key=lambda one: abs(one.difference), default=None)


def _score(data: ReportData, group: DatasetGroup, index: int) -> str:
    run = data.runs[index]
    mean = data.estimate(run)
    assert mean
    count = len(run.tasks)
    what = f"mean of {count} tasks" if count > 1 else "one task"
    what += f", without {len(group.tasks) - count}" if count < len(group.tasks) else ""
    peers = sum(data.runs[other].tasks == run.tasks for other in group.runs)
    alike = " with the same tasks" if peers < len(group.runs) else ""
    where = f", the highest of {peers} runs{alike}" if peers > 1 else ""
    return f"{run.label} scores {_with_interval(mean, '.1f')} ({what}){where} on {group.label}."


def _other_runs(data: ReportData, others: Sequence[PairDifference]) -> str:
    """Return how far other runs are from the best one, the first of the tables first."""
    if not others:
        return ""
    parts = [f"{_label(data, one)}, {_distance(data, one)}" for one in others[:_MAX_COMPARED]]
    more = len(others) - len(parts)
    tail = f"; {more} more: table Comparisons" if more else ""
    return f"Compared with it: {'; '.join(parts)}{tail}."


def _references(data: ReportData, group: DatasetGroup, index: int) -> str:
    """Return how many published configurations are better, and the nearest one."""
    verdicts: Counter[str] = Counter(
        one.verdict for other in group.references if (one := _against(data, index, other))
    )
    closest = nearest(data, group, index)
    if closest is None:
        return ""
    parts = [
        f"{verdicts[verdict]} {text}"
        for verdict, text in (
            ("better", "better"),
            (NOT_SIGNIFICANT, NOT_SIGNIFICANT),
            ("worse", "worse"),
        )
        if verdicts[verdict]
    ]
    count = verdicts.total()
    what = f"Of {count} published configurations" if count > 1 else "Of one published configuration"
    distance = _distance(data, closest)
    return f"{what}: {', '.join(parts)}. The nearest is {_label(data, closest)}, {distance}."


def _label(data: ReportData, one: PairDifference) -> str:
    return data.configurations[one.left].label


def _distance(data: ReportData, one: PairDifference) -> str:
    """Return how far a configuration is ahead or behind, on what, and if this is significant."""
    points = round(one.difference, 1)
    low, high = (-one.high, -one.low) if points < 0 else (one.low, one.high)
    interval = f"[{low:z.1f}, {high:z.1f}]"
    if not points:
        text = f"equal: difference 0.0 {interval}"
    else:
        side = "ahead" if points > 0 else "behind"
        text = f"{abs(one.difference):.1f} points {side} {interval}"
    if points and one.verdict == NOT_SIGNIFICANT:
        why = ""
        if low * high > 0:
            corrected = " after correction for several comparisons"
            why = corrected if one.p <= ALPHA else " by the paired test"
        text += f", {NOT_SIGNIFICANT}{why}"
    return text + _on_what(data, one)


def _on_what(data: ReportData, one: PairDifference) -> str:
    """Return the common tasks or questions, if the means beside are over more."""
    other, run = data.configurations[one.left], data.configurations[one.right]
    common = data.common_tasks(one)
    if common < max(len(run.tasks), len(other.tasks)):
        return f" on the {common} tasks both answered" if common > 1 else " on the common task"
    answered = sum(len(values.score) for values in run.values.tasks.values())
    return f" on the {one.items:,} questions both answered" if one.items < answered else ""


def _price(data: ReportData, indices: Sequence[int]) -> str:
    """Return the tokens and dollars of the first two of some runs, the best one first."""
    parts = []
    for index in indices[:2]:
        run = data.runs[index]
        tokens, cost = data.estimate(run, "generated_tokens"), data.cost(run)
        amounts = []
        if tokens and not (run.scored and run.scored.info.model.startswith(BASELINE_PREFIX)):
            amounts.append(f"{_with_interval(tokens, ',.0f')} tokens per answer")
        if cost:
            amounts.append(f"USD {_with_interval(cost, ',.2f')} per 1,000 questions")
        if amounts:
            name = f"{run.label} " if len(indices) > 1 else ""
            parts.append(f"{name}{' and '.join(amounts)}")
    return f"Price: {'; '.join(parts)}." if parts else ""


def _with_interval(estimate: Estimate, form: str) -> str:
    """Return a number with its interval, unless both ends are the number as it is shown."""
    text, *ends = (format(x, form) for x in estimate if x is not None)
    return f"{text} [{', '.join(ends)}]" if {text} != set(ends) and ends else text
