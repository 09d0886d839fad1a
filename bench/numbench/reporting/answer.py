"""The answer of a report in a few sentences: which run is better, how sure, at what price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from numbench.core.texts import text_template
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
    runs, index = [data.runs[i] for i in order], order[0]
    run, is_incomplete = runs[0], _is_incomplete(runs[0], task)
    others = [one for i in order[1:] if (one := _against(data, index, i, task))]
    references = [one for i in group.references if (one := _against(data, index, i, task))]
    counts = Counter(one.verdict for one in references)
    verdicts = (f"{counts[each]} {text}" for each, text in _VERDICTS.items() if counts[each])
    alike = [one for one in runs if task != ALL or one.tasks == run.tasks]
    peers = [one for one in alike if _is_incomplete(one, task) == is_incomplete]
    means = [data.estimate(each, "score", task) or Estimate(0) for each in peers]
    # The first run is the first of its peers.
    shown = [format_number(mean.value, ".1f") for mean in means]
    is_graded = task != ALL and TASKS[task].metric == "log_smape"
    text = text_template(Path(__file__).with_suffix(".txt.j2")).render(
        data=data,
        group=group,
        run=run,
        runs=runs,
        alike=alike,
        peers=peers,
        ties=shown.count(shown[0]),
        is_incomplete=is_incomplete,
        task="" if task == ALL else task_name(task),
        score=_with_interval(means[0], ".1f"),
        exact=data.estimate(run, "exact_match", task) if is_graded else None,
        others=others,
        most=_MAX_COMPARED,
        price=_price(data, [index, *(one.left for one in others)], task),
        references=references,
        verdicts=", ".join(verdicts),
        nearest=nearest(data, group, index, task),
        alpha=ALPHA,
        on_what=_on_what,
    )
    return tuple(filter(None, (" ".join(line.split()) for line in text.split("\n"))))


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


def _on_what(data: ReportData, one: PairDifference) -> str:
    """Return the common tasks or questions, if the means beside are over more."""
    other, run = data.configurations[one.left], data.configurations[one.right]
    common = data.common_tasks(one)
    if one.task == ALL and common < max(len(run.tasks), len(other.tasks)):
        return f", on the {common} tasks both answered"
    counts = (
        sum(
            len(known.score) for task, known in each.values.tasks.items() if one.task in (ALL, task)
        )
        for each in (run, other)
    )
    return f", on the {one.items:,} questions both answered" if one.items < max(counts) else ""


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
