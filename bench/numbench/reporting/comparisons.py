"""Pairwise comparison of runs on the same items: differences, tests, verdicts and ranks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations
from statistics import fmean, median
from typing import NamedTuple

import numpy as np

from numbench.reporting.table_model import EXACT_MATCH, LOG_SMAPE, Estimate
from numbench.reporting.task_scores import ScoreMatrices, group_by_dataset, score_matrices
from numbench.scoring import ScoredRun
from numbench.stats.bootstrap import MeanIntervals
from numbench.stats.mcnemar import (
    ALPHA,
    DiscordantCounts,
    mcnemar,
    min_significant_discordant,
    minimum_detectable_difference,
    tango_interval,
)
from numbench.stats.multiple_testing import holm, significance_ranks
from numbench.stats.paired import Comparison, Difference, compare
from numbench.stats.resampling import Matrix, Stratum
from numbench.tasks import TASKS

OVERALL = "overall"
"""Name, in place of a task, of the unweighted mean over all tasks of the dataset."""

BETTER, WORSE, NOT_SIGNIFICANT = "better", "worse", "no difference shown"
"""Verdicts, as CSV and JSON files contain them."""

_MAX_SCORE_DIFFERENCE = 100.0
"""Scores are in percent, so no two differ by more."""


class Contrast(NamedTuple):
    """Two runs on one task, with scores in percent and differences in points.

    first, second: indices of the runs. table: whose metric (`log_smape` for the headline one).
    result: None without common items. discordant: numbers of items that only the first and only
    the second run has correct; None for `OVERALL` and with several samples per item. means: of
    both runs over the common items. p_tasks, p_pairs: p-value after Holm's correction over the
    tasks of this pair, and over all pairs of this task.
    """

    first: int
    second: int
    table: str
    task: str
    result: Difference | None
    discordant: tuple[int, int] | None = None
    means: tuple[float, float] | None = None
    p_tasks: float | None = None
    p_pairs: float | None = None

    @property
    def verdict(self) -> str:
        """The verdict on the first run, with Holm's correction over the tasks of the pair."""
        return verdict(self.result, self.p_tasks)


class Comparisons(NamedTuple):
    """Comparisons of all runs, which are given by their indices.

    groups: runs on the same dataset; only those are compared. ranks: per run, task → rank, for
    tasks with at least two runs. overall: per run, the mean over all tasks of its dataset, None
    unless the run includes all of them.
    """

    groups: list[list[int]]
    contrasts: list[Contrast]
    ranks: list[dict[str, int]]
    overall: list[Estimate | None]

    @property
    def not_compared(self) -> int:
        """The number of pairs of runs that use different datasets."""
        runs = len(self.ranks)
        return math.comb(runs, 2) - sum(math.comb(len(group), 2) for group in self.groups)


class DetectableDifference(NamedTuple):
    """Minimum detectable differences on one task, in points: extremes and median over pairs."""

    least: float
    median: float
    most: float


def verdict(difference: Difference | None, p: float | None) -> str:
    """Return better or worse if p ≤ 0.05 and the interval excludes 0."""
    if difference is None or p is None or p > ALPHA or difference.low <= 0 <= difference.high:
        return NOT_SIGNIFICANT
    return BETTER if difference.difference > 0 else WORSE


def compare_runs(runs: Sequence[ScoredRun]) -> Comparisons:
    """Compare every two runs on the same dataset, the earlier one with the later."""
    groups = group_by_dataset(runs)
    contrasts: list[Contrast] = []
    overall: list[Estimate | None] = [None] * len(runs)
    ranks: list[dict[str, int]] = [{} for _ in runs]
    for group in groups:
        scores = score_matrices([runs[index] for index in group])
        if not scores:
            continue
        pairs = list(combinations(range(len(group)), 2))
        strata = [Stratum(task, matrices.headline) for task, matrices in scores.items()]
        comparison = compare(strata, pairs, _MAX_SCORE_DIFFERENCE)
        has_all_tasks = set(scores) == set(runs[group[0]].dataset.tasks)
        if has_all_tasks:
            for index, estimate in zip(group, _estimates(comparison.means), strict=True):
                overall[index] = estimate
        # The mean over a single task would be the same test a second time.
        include_overall = has_all_tasks and len(scores) > 1
        of_pairs = _contrasts(scores, pairs, comparison, include_overall)
        of_group = _add_corrected_p_values(_with_repeated_samples(of_pairs, scores, pairs))
        for task, ranks_of_task in _ranks(of_group).items():
            for member, rank in ranks_of_task.items():
                ranks[group[member]][task] = rank
        contrasts += [c._replace(first=group[c.first], second=group[c.second]) for c in of_group]
    return Comparisons(groups, contrasts, ranks, overall)


def _estimates(means: MeanIntervals) -> list[Estimate | None]:
    rows = zip(*(column.tolist() for column in means), strict=True)
    return [None if math.isnan(mean) else Estimate(mean, low, high) for mean, low, high in rows]


def _contrasts(
    scores: dict[str, ScoreMatrices],
    pairs: Sequence[tuple[int, int]],
    comparison: Comparison,
    include_overall: bool,
) -> list[Contrast]:
    """Return the contrasts by pair, then by table and task, with uncorrected p-values."""
    contrasts = []
    for index, pair in enumerate(pairs):
        headline = [
            _task_contrast(pair, task, matrices, differences[index])
            for (task, matrices), differences in zip(scores.items(), comparison.strata, strict=True)
        ]
        contrasts += headline
        if include_overall:
            contrasts.append(_overall_contrast(pair, headline, comparison.overall[index]))
        contrasts += [
            _exact_match_contrast(pair, EXACT_MATCH.name, task, matrices)
            for task, matrices in scores.items()
            if TASKS[task].metric == "log_smape"
        ]
    return contrasts


def _overall_contrast(
    pair: tuple[int, int], headline: Sequence[Contrast], difference: Difference | None
) -> Contrast:
    means = None
    if difference:
        first, second = zip(*(c.means for c in headline if c.means), strict=True)
        means = (fmean(first), fmean(second))
    return Contrast(*pair, LOG_SMAPE.name, OVERALL, difference, None, means)


def _task_contrast(
    pair: tuple[int, int], task: str, scores: ScoreMatrices, difference: Difference | None
) -> Contrast:
    """Compare two runs in the task's headline metric."""
    matches = _exact_match_contrast(pair, LOG_SMAPE.name, task, scores)
    if TASKS[task].metric != "log_smape" or difference is None:
        return matches
    return matches._replace(result=difference, means=_means(scores.headline[:, pair]))


def _exact_match_contrast(
    pair: tuple[int, int], table: str, task: str, scores: ScoreMatrices
) -> Contrast:
    both = scores.matches[:, pair]
    known = both[~np.isnan(both).any(axis=1)] > 0
    if not len(known):
        return Contrast(*pair, table, task, None)
    counts = DiscordantCounts(
        int(np.count_nonzero(known[:, 0] & ~known[:, 1])),
        int(np.count_nonzero(known[:, 1] & ~known[:, 0])),
        len(known),
    )
    low, high = tango_interval(counts)
    detectable = minimum_detectable_difference(counts)
    difference = Difference(
        n=counts.n,
        difference=100 * counts.difference,
        low=100 * low,
        high=100 * high,
        p=mcnemar(counts.first_only, counts.second_only),
        minimum_detectable=None if detectable is None else 100 * detectable,
    )
    discordant = (counts.first_only, counts.second_only)
    return Contrast(*pair, table, task, difference, discordant, _means(both))


def _with_repeated_samples(
    contrasts: Sequence[Contrast],
    scores: dict[str, ScoreMatrices],
    pairs: Sequence[tuple[int, int]],
) -> list[Contrast]:
    """Compare exact matches as means where a run has several samples per item.

    The mean over the samples of an item is neither 0 nor 1, so that there are no discordant items
    to count: the differences are compared as those of log-sMAPE are.
    """
    repeated = {
        task: matrices.matches
        for task, matrices in scores.items()
        if not _is_all_or_nothing(matrices.matches)
    }
    if not repeated:
        return list(contrasts)
    strata = [Stratum(task, matches) for task, matches in repeated.items()]
    comparison = compare(strata, pairs, _MAX_SCORE_DIFFERENCE)
    differences = dict(zip(repeated, comparison.strata, strict=True))
    result = []
    for contrast in contrasts:
        task, pair = contrast.task, (contrast.first, contrast.second)
        if task in repeated and not _is_all_or_nothing(repeated[task][:, pair]):
            contrast = contrast._replace(discordant=None)
            if contrast.table == EXACT_MATCH.name or TASKS[task].metric != "log_smape":
                contrast = contrast._replace(result=differences[task][pairs.index(pair)])
        result.append(contrast)
    return result


def _is_all_or_nothing(matches: Matrix) -> bool:
    """Return whether all known values are 0 or 100."""
    return bool((np.isnan(matches) | np.isin(matches, (0.0, 100.0))).all())


def _means(both: Matrix) -> tuple[float, float]:
    """Return the means of two columns over the rows in which both are known."""
    first, second = both[~np.isnan(both).any(axis=1)].mean(axis=0).tolist()
    return first, second


def _add_corrected_p_values(contrasts: Sequence[Contrast]) -> list[Contrast]:
    tasks = _holm(contrasts, lambda c: (c.first, c.second, c.table))
    pairs = _holm(contrasts, lambda c: (c.table, c.task))
    return [
        contrast._replace(p_tasks=tasks.get(index), p_pairs=pairs.get(index))
        for index, contrast in enumerate(contrasts)
    ]


def _holm(
    contrasts: Sequence[Contrast], family: Callable[[Contrast], Hashable]
) -> dict[int, float]:
    """Return index → adjusted p-value, with a separate correction per family."""
    families: dict[Hashable, list[tuple[int, float]]] = defaultdict(list)
    for index, contrast in enumerate(contrasts):
        if contrast.result:
            families[family(contrast)].append((index, contrast.result.p))
    return {
        index: adjusted
        for tests in families.values()
        for (index, _), adjusted in zip(tests, holm([p for _, p in tests]), strict=True)
    }


def _ranks(contrasts: Sequence[Contrast]) -> dict[str, dict[int, int]]:
    """Return task → run → rank, in the headline metric."""
    members: dict[str, dict[int, None]] = defaultdict(dict)
    worse_than: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for contrast in contrasts:
        if contrast.table != LOG_SMAPE.name or contrast.result is None:
            continue
        pair = (contrast.first, contrast.second)
        members[contrast.task].update(dict.fromkeys(pair))
        result = verdict(contrast.result, contrast.p_pairs)
        if result != NOT_SIGNIFICANT:
            worse_than[contrast.task].append(pair if result == WORSE else (pair[1], pair[0]))
    return {
        task: significance_ranks(list(runs), worse_than[task]) for task, runs in members.items()
    }


def detectable_differences(contrasts: Iterable[Contrast]) -> dict[str, DetectableDifference]:
    """Return task → minimum detectable differences of its headline metric, if any is known."""
    by_task: dict[str, list[float]] = {}
    for contrast in contrasts:
        result = contrast.result
        if contrast.table == LOG_SMAPE.name and result and result.minimum_detectable:
            by_task.setdefault(contrast.task, []).append(result.minimum_detectable)
    return {
        task: DetectableDifference(min(values), median(values), max(values))
        for task, values in by_task.items()
    }


def too_few_items(contrasts: Iterable[Contrast]) -> list[str]:
    """Return the tasks with so few common items that no difference is detectable."""
    return [
        contrast.task
        for contrast in contrasts
        if contrast.table == LOG_SMAPE.name
        and contrast.task != OVERALL
        and (result := contrast.result)
        and result.minimum_detectable is None
        # With enough items it is also None if all scores are equal.
        and (result.n < min_significant_discordant() or result.low < result.high)
    ]


def detectable_difference_note(items: int, contrasts: Sequence[Contrast]) -> str:
    """Describe which differences can be detected with `items` items per task.

    Returns an empty string without items.
    """
    fewest = min_significant_discordant()
    if not items:
        return ""
    if items < fewest:
        return (
            f"No difference on a single task can be detected: {items} counted items per task, "
            f"but at least {fewest} are needed."
        )
    note = (
        f"With {items} items per task, differences of fewer than {fewest} correct answers "
        f"({100 * fewest / items:.1f} points) cannot be detected"
    )
    by_task = detectable_differences(contrasts)
    medians = [detectable.median for task, detectable in by_task.items() if task != OVERALL]
    if not medians:
        return f"{note}."
    return (
        f"{note}; minimum detectable difference between two of these runs (80 % power, before "
        f"Holm's correction): {min(medians):.1f} to {max(medians):.1f} points by task (median "
        "over pairs)."
    )
