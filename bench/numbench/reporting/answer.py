"""The answer of a report in a few sentences: how good, how sure, against whom, at what price."""

from __future__ import annotations

from typing import NamedTuple

from numbench.models.baseline import BASELINE_PREFIX
from numbench.reporting.comparisons import ALL, NOT_SIGNIFICANT, PairDifference
from numbench.reporting.data import Configuration, DatasetGroup, ReportData
from numbench.reporting.estimate import Estimate
from numbench.reporting.references import DATASET
from numbench.stats.intervals import ALPHA


class Answer(NamedTuple):
    """What a report says about the best run on a dataset."""

    group: DatasetGroup
    sentences: tuple[str, ...]


def answers(data: ReportData) -> tuple[Answer, ...]:
    """Return the answer about the best run on each dataset."""
    return tuple(
        Answer(group, answer(data, index))
        for group in data.datasets
        if (index := best_run(data, group)) is not None
    )


def best_run(data: ReportData, group: DatasetGroup) -> int | None:
    """Return the first run of a dataset in the order of the tables; None without a mean."""
    return next((index for index in group.runs if data.estimate(data.runs[index])), None)


def answer(data: ReportData, index: int) -> tuple[str, ...]:
    """Return at most three sentences about a run: its rank, its neighbors and its price."""
    run = data.runs[index]
    group = data.group_of(run)
    sentences = (_rank(data, group, index), _neighbors(data, group, index), _price(data, run))
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
    run, ranks = data.runs[index], data.ranks[ALL]
    mean = data.estimate(run)
    assert mean
    count = len(run.tasks)
    what = f"mean of {count} tasks" if count > 1 else "one task"
    text = f"{run.label} scores {_with_interval(mean, '.1f')} ({what})"
    if index in ranks:
        best, worst = ranks[index]
        position = f"{best}" if best == worst else f"{best} to {worst}"
        ranked = len(data.ranked_members(group))
        others = len(group.members) - ranked
        note = f"; {others} without responses to every task are not ranked" if others else ""
        where = f"has rank {position} of {ranked} on {group.label}"
        return f"{text} and {where} (95% confidence{note})."
    if count < len(group.tasks):
        return f"{text}; it has no rank, because it lacks {len(group.tasks) - count} tasks."
    return f"{text} on {group.label}."


def nearest(data: ReportData, group: DatasetGroup, index: int) -> dict[str, PairDifference]:
    """Return the configurations with the nearest means, by their paired differences from a run.

    `better`, `equal` (to one digit after the point) or `worse` → the configuration minus the run.
    """
    run = data.configurations[index]
    found: dict[str, PairDifference] = {}
    for member in group.members:
        other = data.configurations[member]
        if member == index or not data.has_all_values(member, run.tasks):
            continue
        if one := data.difference(other, run):
            points = round(one.difference, 1)
            side = "better" if points > 0 else "worse" if points < 0 else "equal"
            best = found.setdefault(side, one)
            found[side] = min(best, one, key=lambda known: abs(known.difference))
    return found


def _neighbors(data: ReportData, group: DatasetGroup, index: int) -> str:
    answered = sum(len(values.score) for values in data.runs[index].values.tasks.values())
    known = nearest(data, group, index)
    parts = []
    for side in ("better", "equal", "worse"):
        if one := known.get(side):
            name = "equal" if side == "equal" else f"nearest {side}"
            common = f" on the {one.items:,} questions both answered"
            other = data.configurations[one.left].label
            parts.append(f"{name}: {other}, {_distance(side, one)}")
            parts[-1] += common if one.items < answered else ""
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _distance(side: str, one: PairDifference) -> str:
    """Return how far a configuration is ahead or behind, and whether this is significant."""
    low, high = (-one.high, -one.low) if side == "worse" else (one.low, one.high)
    interval = f"[{low:z.1f}, {high:z.1f}]"
    if side == "equal":
        return f"difference 0.0 {interval}"
    text = (
        f"{abs(one.difference):.1f} points {'ahead' if side == 'better' else 'behind'} {interval}"
    )
    if one.verdict != NOT_SIGNIFICANT:
        return text
    why = ""
    if low * high > 0:
        corrected = " after correction for several comparisons"
        why = corrected if one.p <= ALPHA else " by the paired test"
    return f"{text}, {NOT_SIGNIFICANT}{why}"


def _price(data: ReportData, run: Configuration) -> str:
    tokens, cost = data.estimate(run, "generated_tokens"), data.cost(run)
    parts = []
    if tokens and not (run.scored and run.scored.info.model.startswith(BASELINE_PREFIX)):
        median = "" if run.median_tokens is None else f" (median {run.median_tokens:,.0f})"
        parts.append(f"{_with_interval(tokens, ',.0f')} tokens per answer{median}")
    if cost:
        parts.append(f"USD {_with_interval(cost, ',.2f')} per 1,000 questions")
    return f"It takes {' and '.join(parts)}." if parts else ""


def _with_interval(estimate: Estimate, form: str) -> str:
    """Return a number with its interval, unless both ends are the number as it is shown."""
    text, *ends = (format(x, form) for x in estimate if x is not None)
    return f"{text} [{', '.join(ends)}]" if {text} != set(ends) and ends else text
