"""Pairwise comparison of runs on the same items: differences and verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from numbench.reporting.values import RunValues, TaskValues, make_stratum, run_values
from numbench.scoring import ScoredRun
from numbench.stats.design import Stratum
from numbench.stats.intervals import ALPHA
from numbench.stats.multiple_testing import holm
from numbench.stats.paired import compare
from numbench.tasks import TASKS

ALL = "all"
"""Name, in place of a task, of the unweighted mean over the tasks that both runs include."""

Metric = Literal["score", "exact_match"]
Verdict = Literal["better", "worse", "not significantly different"]
NOT_SIGNIFICANT: Verdict = "not significantly different"

_MAXIMUM = 100.0


class PairDifference(NamedTuple):
    """The left run minus the right run on the items that count for both, in points.

    left, right: indices of the runs. task: may be `ALL`. means: of both runs over these items.
    items: their number. low, high: 95% interval. p: of a single test. detectable: the true
    difference of which 80% of samples would show a verdict, None if it is unknown. at_least,
    at_most: one-sided 95% bounds, infinite unless they were asked for. p_adjusted: after Holm's
    correction over the tasks of this pair.
    """

    left: int
    right: int
    task: str
    means: tuple[float, float]
    items: int
    difference: float
    low: float
    high: float
    p: float
    detectable: float | None
    at_least: float
    at_most: float
    p_adjusted: float

    @property
    def verdict(self) -> Verdict:
        """The verdict on the left run: significant by `p_adjusted` and the interval."""
        if self.p_adjusted > ALPHA or self.low <= 0 <= self.high:
            return NOT_SIGNIFICANT
        return "better" if self.difference > 0 else "worse"

    def reversed(self) -> PairDifference:
        """Return the right run minus the left run."""
        return self._replace(
            left=self.right,
            right=self.left,
            means=(self.means[1], self.means[0]),
            difference=0.0 - self.difference,
            low=-self.high,
            high=-self.low,
            at_least=-self.at_most,
            at_most=-self.at_least,
        )


@dataclass(frozen=True)
class Comparisons:
    """Comparisons of runs, which are given by their indices.

    by_pair: pair → task → difference of every two runs on the same dataset with common items, the
    earlier run on the left: tasks in the order of the registry, then `ALL`. A pair with one common
    task has no `ALL`.
    """

    by_pair: Mapping[tuple[int, int], Mapping[str, PairDifference]]

    @cached_property
    def differences(self) -> tuple[PairDifference, ...]:
        """All differences, pair by pair."""
        return tuple(one for tasks in self.by_pair.values() for one in tasks.values())

    def of(self, left: int, right: int, task: str = ALL) -> PairDifference | None:
        """Return the left run minus the right run, in whichever order they were compared.

        None without common items. `ALL` of a pair with one common task is that task.
        """
        known = self.tasks_of(left, right)
        if task == ALL and len(known) == 1:
            (task,) = known
        one = known.get(task)
        return one if one is None or one.left == left else one.reversed()

    def tasks_of(self, left: int, right: int) -> Mapping[str, PairDifference]:
        """Return the differences of a pair by task; with several tasks, one is `ALL`."""
        return self.by_pair.get((left, right)) or self.by_pair.get((right, left), {})


def task_name(task: str) -> str:
    """Return the display name of a task or of the mean over tasks."""
    return "All" if task == ALL else TASKS[task].display


def compare_runs(runs: Sequence[ScoredRun], metric: Metric = "score") -> Comparisons:
    """Compare every two runs on the same dataset; see `compare_values`."""
    return compare_values([run_values(run) for run in runs], metric=metric)


def compare_values(
    runs: Sequence[RunValues],
    pairs: Sequence[tuple[int, int]] | None = None,
    one_sided: bool = False,
    metric: Metric = "score",
    decisive: int = 1,
) -> Comparisons:
    """Compare runs and references; by default every two on the same dataset, the earlier first.

    pairs: the pairs to compare instead. metric: `score` is the headline metric.
    one_sided: whether to compute the one-sided bounds, which takes longer than all the rest.
    decisive: how many tests decide together; the detectable difference depends on it.
    """
    wanted = list(combinations(range(len(runs)), 2) if pairs is None else pairs)
    groups: dict[tuple[str, tuple[str, ...]], list[tuple[int, int]]] = defaultdict(list)
    for left, right in wanted:
        if runs[left].dataset == runs[right].dataset:
            common = tuple(task for task in TASKS if _share_items(runs[left], runs[right], task))
            if common:
                groups[runs[left].dataset, common].append((left, right))
    by_pair: dict[tuple[int, int], dict[str, PairDifference]] = {pair: {} for pair in wanted}
    for (_, tasks), members in groups.items():
        indices = sorted({index for pair in members for index in pair})
        columns = [(indices.index(left), indices.index(right)) for left, right in members]
        strata = [_stratum([runs[i].tasks[task] for i in indices], metric) for task in tasks]
        comparison = compare(strata, columns, _MAXIMUM, one_sided, decisive)
        for number, (left, right) in enumerate(members):
            results = [of_task[number] for of_task in comparison.strata]
            means = [_means(stratum, columns[number]) for stratum in strata]
            if len(tasks) > 1:
                results.append(comparison.overall[number])
                means.append(tuple(np.mean(means, axis=0).tolist()))
            known = [one for one in zip((*tasks, ALL), means, results, strict=False) if one[2]]
            adjusted = holm([result.p for _, _, result in known if result])
            for (task, mean, result), p in zip(known, adjusted, strict=True):
                assert result
                by_pair[left, right][task] = PairDifference(left, right, task, mean, *result, p)
    return Comparisons(by_pair)


def _share_items(left: RunValues, right: RunValues, task: str) -> bool:
    if task not in left.tasks or task not in right.tasks:
        return False
    return bool(len(np.intersect1d(left.tasks[task].index, right.tasks[task].index)))


def _stratum(values: Sequence[TaskValues], metric: Metric) -> Stratum:
    """Return one column per run, with the items that any of them includes."""
    # The random numbers of an item depend on its row, so its row depends on the dataset only.
    rows = 1 + max((int(one.index[-1]) for one in values if len(one.index)), default=-1)
    matrix = np.full((rows, len(values)), np.nan)
    difficulty = np.zeros(rows)
    operands: list[Hashable] = [None] * rows
    for column, one in enumerate(values):
        matrix[one.index, column] = getattr(one, metric)
        difficulty[one.index] = one.difficulty
        for row, key in zip(one.index.tolist(), one.operands.tolist(), strict=True):
            operands[row] = key
    return make_stratum(values[0].task, matrix, difficulty, operands, values[0].share_per_item)


def _means(stratum: Stratum, pair: tuple[int, int]) -> tuple[float, float]:
    both = stratum.values[:, pair]
    both = both[~np.isnan(both).any(axis=1)]
    left, right = both.mean(axis=0).tolist()
    return left, right
