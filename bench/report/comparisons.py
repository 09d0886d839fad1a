"""Every two runs on the same items: who is better, by how much, and whether that is noise."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

import numpy as np

from bench.report.layout import EXACT_MATCH, LOG_SMAPE, Estimate
from bench.report.scores import TaskScores, same_dataset, task_scores
from bench.scoring import ScoredRun
from bench.stats.bootstrap import Bounded
from bench.stats.draws import Matrix
from bench.stats.many import holm, ranks
from bench.stats.mcnemar import Discordance, mcnemar, score_interval, smallest_difference
from bench.stats.normal import ALPHA
from bench.stats.paired import Comparison, Difference, compare
from bench.stats.strata import Stratum
from bench.tasks import TASKS

OVERALL = "overall"
"""Stands for a task where the unweighted mean of all nine is meant."""

BETTER, WORSE, NOT_SHOWN = "better", "worse", "no difference shown"


_LARGEST = 100.0
"""Scores are percent: no two are further apart."""


class Contrast(NamedTuple):
    """Two runs on one task; all figures in percent (points), `found` None without common items.

    first, second: places of the runs. table: whose metric (`log_smape` is the headline one).
    only: items that only the first run has right, and only the second; None for the mean of
    tasks. means: of the two runs on the common items. p_tasks, p_pairs: the p-value after Holm's
    correction over the tasks of this pair, and over all pairs of this task.
    """

    first: int
    second: int
    table: str
    task: str
    found: Difference | None
    only: tuple[int, int] | None = None
    means: tuple[float, float] | None = None
    p_tasks: float | None = None
    p_pairs: float | None = None

    @property
    def verdict(self) -> str:
        """What is shown of the first run, with Holm's correction over the tasks of the pair."""
        return verdict(self.found, self.p_tasks)


class Comparisons(NamedTuple):
    """What the scores of all runs say of each other; runs are named by their places.

    groups: runs on the same dataset; others are not compared. ranks: task → rank, only where
    there is somebody to be ranked with. overall: mean of all nine tasks, None where one lacks.
    """

    groups: list[list[int]]
    contrasts: list[Contrast]
    ranks: list[dict[str, int]]
    overall: list[Estimate | None]

    @property
    def not_compared(self) -> int:
        """How many pairs of runs answer different datasets."""
        runs = len(self.ranks)
        return math.comb(runs, 2) - sum(math.comb(len(group), 2) for group in self.groups)


def verdict(found: Difference | None, p: float | None) -> str:
    """better or worse where p ≤ 0.05 and the interval leaves out 0."""
    if found is None or p is None or p > ALPHA or found.low <= 0 <= found.high:
        return NOT_SHOWN
    return BETTER if found.difference > 0 else WORSE


def compare_runs(runs: Sequence[ScoredRun]) -> Comparisons:
    """Compare every two runs that answer the same dataset, the earlier one with the later."""
    groups = same_dataset(runs)
    contrasts: list[Contrast] = []
    overall: list[Estimate | None] = [None] * len(runs)
    ranked: list[dict[str, int]] = [{} for _ in runs]
    for group in groups:
        scores = task_scores([runs[place] for place in group])
        if not scores:
            continue
        pairs = list(combinations(range(len(group)), 2))
        strata = [Stratum(task, own.headline) for task, own in scores.items()]
        found = compare(strata, pairs, _LARGEST)
        if set(scores) == set(TASKS):
            for place, estimate in zip(group, _estimates(found.means), strict=True):
                overall[place] = estimate
        own = _corrected(_contrasts(scores, pairs, found))
        for task, members in _ranks(own).items():
            for member, rank in members.items():
                ranked[group[member]][task] = rank
        contrasts += [c._replace(first=group[c.first], second=group[c.second]) for c in own]
    return Comparisons(groups, contrasts, ranked, overall)


def _estimates(found: Bounded) -> list[Estimate | None]:
    rows = zip(*(column.tolist() for column in found), strict=True)
    return [None if math.isnan(mean) else Estimate(mean, low, high) for mean, low, high in rows]


def _contrasts(
    scores: dict[str, TaskScores], pairs: Sequence[tuple[int, int]], found: Comparison
) -> list[Contrast]:
    """By pair, then by table and task; p-values not yet corrected."""
    return [
        contrast
        for place, pair in enumerate(pairs)
        for contrast in _of_pair(
            pair, scores, [task[place] for task in found.strata], found.overall[place]
        )
    ]


def _of_pair(
    pair: tuple[int, int],
    scores: dict[str, TaskScores],
    by_task: Sequence[Difference | None],
    overall: Difference | None,
) -> list[Contrast]:
    headline = [
        _of_task(pair, task, table, difference)
        for (task, table), difference in zip(scores.items(), by_task, strict=True)
    ]
    matches = [
        _of_matches(pair, EXACT_MATCH.name, task, scores[task])
        for _, task in EXACT_MATCH.columns
        if task in scores
    ]
    if set(scores) != set(TASKS):
        return headline + matches
    means = None
    if overall:
        first, second = zip(*(c.means for c in headline if c.means), strict=True)
        means = (fmean(first), fmean(second))
    return [*headline, Contrast(*pair, LOG_SMAPE.name, OVERALL, overall, None, means), *matches]


def _of_task(
    pair: tuple[int, int], task: str, scores: TaskScores, difference: Difference | None
) -> Contrast:
    matches = _of_matches(pair, LOG_SMAPE.name, task, scores)
    if TASKS[task].metric != "log_smape" or difference is None:
        return matches
    return matches._replace(found=difference, means=_means(scores.headline[:, pair]))


def _of_matches(pair: tuple[int, int], table: str, task: str, scores: TaskScores) -> Contrast:
    both = scores.matches[:, pair]
    known = both[~np.isnan(both).any(axis=1)] > 0
    if not len(known):
        return Contrast(*pair, table, task, None)
    counts = Discordance(
        int(np.count_nonzero(known[:, 0] & ~known[:, 1])),
        int(np.count_nonzero(known[:, 1] & ~known[:, 0])),
        len(known),
    )
    low, high = score_interval(counts)
    smallest = smallest_difference(counts)
    found = Difference(
        n=counts.n,
        difference=100 * counts.difference,
        low=100 * low,
        high=100 * high,
        p=mcnemar(counts.first_only, counts.second_only),
        smallest=None if smallest is None else 100 * smallest,
    )
    only = (counts.first_only, counts.second_only)
    return Contrast(*pair, table, task, found, only, _means(both))


def _means(both: Matrix) -> tuple[float, float]:
    """Of two columns, over the rows in which both are known."""
    first, second = both[~np.isnan(both).any(axis=1)].mean(axis=0).tolist()
    return first, second


def _corrected(contrasts: Sequence[Contrast]) -> list[Contrast]:
    tasks = _holm(contrasts, lambda c: (c.first, c.second, c.table))
    pairs = _holm(contrasts, lambda c: (c.table, c.task))
    return [
        contrast._replace(p_tasks=tasks.get(place), p_pairs=pairs.get(place))
        for place, contrast in enumerate(contrasts)
    ]


def _holm(
    contrasts: Sequence[Contrast], family: Callable[[Contrast], Hashable]
) -> dict[int, float]:
    """Place → adjusted p-value, each family of tests for itself."""
    families: dict[Hashable, list[tuple[int, float]]] = defaultdict(list)
    for place, contrast in enumerate(contrasts):
        if contrast.found:
            families[family(contrast)].append((place, contrast.found.p))
    return {
        place: adjusted
        for tests in families.values()
        for (place, _), adjusted in zip(tests, holm([p for _, p in tests]), strict=True)
    }


def _ranks(contrasts: Sequence[Contrast]) -> dict[str, dict[int, int]]:
    """Task → run → rank, on the headline metric."""
    members: dict[str, dict[int, None]] = defaultdict(dict)
    beaten: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for contrast in contrasts:
        if contrast.table != LOG_SMAPE.name or contrast.found is None:
            continue
        pair = (contrast.first, contrast.second)
        members[contrast.task].update(dict.fromkeys(pair))
        shown = verdict(contrast.found, contrast.p_pairs)
        if shown != NOT_SHOWN:
            beaten[contrast.task].append(pair if shown == WORSE else (pair[1], pair[0]))
    return {task: ranks(list(runs), beaten[task]) for task, runs in members.items()}
