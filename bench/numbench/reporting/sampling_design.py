"""How the items of a task were drawn, and the intervals that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np

from numbench.dataset.settings import POOL_SIZE, strata_share_per_item
from numbench.dataset.store import Dataset
from numbench.records import Item
from numbench.scoring import ScoredItem, ScoredRun
from numbench.scoring.scored_run import counted_rows, item_groups
from numbench.stats.design import Design, Matrix, Stratum
from numbench.stats.intervals import Interval, mean_intervals

ItemValue = Callable[[list[ScoredItem]], float | None]
"""A value of the samples of one item, None if it is unknown."""


def stratified_pool(dataset: Dataset) -> int | None:
    """Return the size of the pool that a dataset is a stratified sample of; None if it is not."""
    return POOL_SIZE if strata_share_per_item(dataset.manifest) else None


def sampling_design(dataset: Dataset, items: Sequence[Item]) -> Design | None:
    """Return the design of items of one task of a dataset; None if they are independent."""
    share = strata_share_per_item(dataset.manifest)
    if not share:
        return None
    difficulties = np.array([item.difficulty.base10 for item in items], dtype=np.float64)
    # Items of the same difficulty are in the random order of the dataset.
    return Design(np.argsort(difficulties, kind="stable"), share)


def stratum_of_items(dataset: Dataset, task: str, items: Sequence[Item], values: Matrix) -> Stratum:
    """Return the values of items of one task, shape (items, columns), with their design.

    Items of different tasks with the same operands were drawn together.
    """
    design = sampling_design(dataset, items)
    return Stratum(task, values, design, [item.operands for item in items])


def run_stratum(run: ScoredRun, task: str, value: ItemValue) -> Stratum:
    """Return one column with the known values of a run's items; `value` gets the counted samples.

    The design is that of the items with a known value.
    """
    known = [
        (group[0].item, number)
        for group in item_groups(counted_rows(run, task))
        if (number := value(group)) is not None
    ]
    values = np.array([[number] for _, number in known], dtype=np.float64).reshape(-1, 1)
    return stratum_of_items(run.dataset, task, [item for item, _ in known], values)


def sample_mean(value: Callable[[ScoredItem], float | None]) -> ItemValue:
    """Return the function that averages the known values of an item's samples."""

    def of_item(samples: list[ScoredItem]) -> float | None:
        known = [number for row in samples if (number := value(row)) is not None]
        return fmean(known) if known else None

    return of_item


def score_bounds(
    strata: Sequence[Stratum], maximum: float = 100.0, pooled: bool = False
) -> Interval:
    """Return the interval of the mean of strata of one column each; see `mean_intervals`.

    Raises ValueError if there is no stratum.
    """
    _, low, high = mean_intervals(strata, maximum, pooled)
    return Interval(float(low[0]), float(high[0]))
