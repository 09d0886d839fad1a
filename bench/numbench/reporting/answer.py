"""The answer of a report in a few sentences: which run is better, how sure, at what price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from numbench.models.baseline import BASELINE_PREFIX
from numbench.records import Estimate
from numbench.reporting.comparisons import ALL, NOT_SIGNIFICANT, PairDifference, task_name
from numbench.reporting.data import DatasetGroup, ReportData
from numbench.reporting.references import DATASET
from numbench.reporting.tables.render import format_number
from numbench.reporting.values import Configuration
from numbench.stats.intervals import ALPHA
from numbench.tasks import TASKS

_MAX_COMPARED = 3
"""The best run is compared with at most so many others in words."""


_VERDICTS = {
    "better": "significantly higher",
    NOT_SIGNIFICANT: NOT_SIGNIFICANT,
    "worse": "significantly lower",
}


class Answer(NamedTuple):
    """What a report says about the runs on a dataset: one run against the others first."""

    group: DatasetGroup
    sentences: tuple[str, ...]


def answers(data: ReportData, task: str = ALL) -> tuple[Answer, ...]:
    """Return the answer about the runs on each dataset, or on a task of it."""
    return tuple(
        Answer(group, _sentences(data, group, order, task))
        for group in data.datasets
        if (order := _order(data, group, task))
    )


def best_run(data: ReportData, group: DatasetGroup) -> int | None:
    """Return the first run of a dataset in the order of the tables; None without a mean."""
    return next(iter(_order(data, group, ALL)), None)


def _order(data: ReportData, group: DatasetGroup, task: str) -> list[int]:
    """Return the runs with a score in the order of the tables, or complete ones first by score."""
    known = {i: one for i in group.runs if (one := data.estimate(data.runs[i], "score", task))}
    if task == ALL:
        return list(known)
    return sorted(known, key=lambda i: (_is_incomplete(data.runs[i], task), -known[i].value))


def _is_incomplete(run: Configuration, task: str) -> bool:
    return bool(run.incomplete_tasks if task == ALL else task in run.incomplete_tasks)


def _sentences(
    data: ReportData, group: DatasetGroup, order: Sequence[int], task: str
) -> tuple[str, ...]:
    """Return at most four sentences: the score, other runs, the price, published models."""
    index = order[0]
    others = [one for i in order[1:] if (one := _against(data, index, i, task))]
    sentences = (
        _score(data, group, order, task),
        _other_runs(data, others),
        _price(data, [index, *(one.left for one in others)], task),
        _references(data, group, index, task),
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


def _against(data: ReportData, index: int, other: int, task: str) -> PairDifference | None:
    """Return another configuration minus a run, on the questions that both answer."""
    return data.difference(data.configurations[other], data.runs[index], task)


def nearest(
    data: ReportData, group: DatasetGroup, index: int, task: str = ALL
) -> PairDifference | None:
    """Return the reference with the nearest mean, minus a run."""
    known = [one for other in group.references if (one := _against(data, index, other, task))]
    return min(known, key=lambda one: abs(one.difference), default=None)


def _score(data: ReportData, group: DatasetGroup, order: Sequence[int], task: str) -> str:
    score_of = partial(data.estimate, measure="score", task=task)
    run = data.runs[order[0]]
    mean = score_of(run)
    assert mean
    count = len(run.tasks)
    of = f" of {len(group.tasks)}" if count < len(group.tasks) else ""
    what = f"mean of {count}{of} tasks" if count > 1 else f"one task{of}"
    runs = [data.runs[index] for index in order]
    alike = runs if task != ALL else [one for one in runs if one.tasks == run.tasks]
    is_incomplete = _is_incomplete(run, task)
    what += f", {run.completeness} answered" if is_incomplete else ""
    peers = [one for one in alike if _is_incomplete(one, task) == is_incomplete]
    same = " with the same tasks" if len(alike) < len(runs) else ""
    kind = "complete run" if len(peers) < len(alike) else "run"
    where = f", the only {kind}{same}" if len(alike) > 1 else ""
    if len(peers) > 1:
        shown = [format_number(one.value, ".1f") for one in map(score_of, peers) if one]
        ties = shown.count(format_number(mean.value, ".1f"))
        highest = f"one of {ties} tied for highest" if ties > 1 else "the highest"
        where = f", {highest} of {len(peers)} {kind}s{same}"
    start = f"{task_name(task)}: " if task != ALL else ""
    exact = data.estimate(run, "exact_match", task)
    if task != ALL:
        is_graded = exact and TASKS[task].metric == "log_smape"
        what = f"log-sMAPE; {exact.value:.1f}% exactly correct" if is_graded and exact else ""
    what = f" ({what})" if what else ""
    score = _with_interval(mean, ".1f")
    return f"{start}{run.label} scores {score}{what}{where} on {group.label}."


def _other_runs(data: ReportData, others: Sequence[PairDifference]) -> str:
    """Return how far other runs are from the best one, the first of the tables first."""
    if not others:
        return ""
    parts = [f"{_label(data, one)}, {_distance(data, one)}" for one in others[:_MAX_COMPARED]]
    more = len(others) - len(parts)
    tail = f"; {more} more: table Comparisons" if more else ""
    return f"Compared with it: {'; '.join(parts)}{tail}."


def _references(data: ReportData, group: DatasetGroup, index: int, task: str) -> str:
    """Return how many references are better, and the nearest one."""
    verdicts: Counter[str] = Counter(
        one.verdict for other in group.references if (one := _against(data, index, other, task))
    )
    closest = nearest(data, group, index, task)
    if closest is None:
        return ""
    texts = [f"{verdicts[each]} {text}" for each, text in _VERDICTS.items() if verdicts[each]]
    count = verdicts.total()
    what = f"{count} {data.reference_noun}{'s' * (count > 1)}"
    distance = _distance(data, closest)
    return f"{what}: {', '.join(texts)}. The nearest is {_label(data, closest)}, {distance}."


def _label(data: ReportData, one: PairDifference) -> str:
    return data.configurations[one.left].label


def _distance(data: ReportData, one: PairDifference) -> str:
    """Return how far a configuration is ahead or behind, on what, and if this is significant."""
    points = round(one.difference, 1)
    low, high = (-one.high, -one.low) if points < 0 else (one.low, one.high)
    interval = f"[{low:z.1f}, {high:z.1f}]"
    if not points:
        text = f"0.0 points apart {interval}"
    else:
        side = "ahead" if points > 0 else "behind"
        text = f"{abs(one.difference):.1f} points {side} {interval}"
    if one.verdict == NOT_SIGNIFICANT:
        why = ""
        if low * high > 0:
            corrected = " after correction for several comparisons"
            why = corrected if one.p <= ALPHA else " by the paired test"
        text += f", {NOT_SIGNIFICANT}{why}"
    else:
        text += ", significantly different"
    return text + _on_what(data, one)


def _on_what(data: ReportData, one: PairDifference) -> str:
    """Return the common tasks or questions, if the means beside are over more."""
    other, run = data.configurations[one.left], data.configurations[one.right]
    common = data.common_tasks(one)
    if one.task == ALL and common < max(len(run.tasks), len(other.tasks)):
        return f", on the {common} tasks both answered"
    answered = max(
        sum(
            len(known.score) for task, known in each.values.tasks.items() if one.task in (ALL, task)
        )
        for each in (run, other)
    )
    return f", on the {one.items:,} questions both answered" if one.items < answered else ""


def _price(data: ReportData, indices: Sequence[int], task: str) -> str:
    """Return the tokens and dollars of the first two of some runs, the best one first."""
    parts = []
    for index in indices[:2]:
        run = data.runs[index]
        tokens, cost = data.estimate(run, "generated_tokens", task), data.cost(run, task)
        amounts = []
        if tokens and not run.scored.info.model.startswith(BASELINE_PREFIX):
            amounts.append(f"{_with_interval(tokens, ',.0f')} tokens per answer")
        if cost:
            amounts.append(f"USD {_with_interval(cost, 'price')} per 1,000 questions")
        if amounts:
            name = f"{run.label} " if len(indices) > 1 else ""
            parts.append(f"{name}{' and '.join(amounts)}")
    return f"Price: {'; '.join(parts)}." if parts else ""


def _with_interval(estimate: Estimate, form: str) -> str:
    """Return a number with its interval, unless both ends are the number as it is shown."""
    text, *ends = (format_number(x, form) for x in estimate if x is not None)
    return f"{text} [{', '.join(ends)}]" if {text} != set(ends) and ends else text
