"""The values of runs and references per task and item, from which comparisons are computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from numbench.dataset.settings import strata_share_per_item
from numbench.dataset.store import Dataset
from numbench.records import Item
from numbench.scoring import ScoredItem, ScoredRun, headline_percent
from numbench.scoring.scored_run import counted_rows, item_groups, token_counts
from numbench.stats.design import Column, Design, Matrix, Stratum

VALUES = ("score", "exact_match", "generated_tokens", "reasoning_tokens", "cost")
"""The fields of `TaskValues` with a value of each item."""


@dataclass(frozen=True, eq=False)
class TaskValues:
    """The values of one run or reference on one task, one per item that counts.

    index: of each item within its task of the dataset, ascending. operands: items of different
    tasks with equal operands were drawn together. share_per_item: as in `Design`. score: the
    headline metric, like exact_match in percent; NaN where an item does not count. Tokens and
    dollars are NaN where they are unknown. Each is the mean over the samples of the item.
    """

    task: str
    index: npt.NDArray[np.int64]
    difficulty: Column
    operands: tuple[Hashable, ...]
    share_per_item: float
    score: Column
    exact_match: Column
    generated_tokens: Column
    reasoning_tokens: Column
    cost: Column

    def select(self, chosen: npt.NDArray[np.bool_]) -> TaskValues:
        """Return the values of some of the items."""
        arrays = ("index", "difficulty", *VALUES)
        parts = {name: getattr(self, name)[chosen] for name in arrays}
        operands = tuple(key for key, keep in zip(self.operands, chosen, strict=True) if keep)
        return replace(self, operands=operands, **parts)

    def stratum(self, values: Column) -> Stratum:
        """Return one column of values, such as `self.score`, without the unknown ones."""
        known = ~np.isnan(values)
        return make_stratum(
            self.task,
            values[known, None],
            self.difficulty[known],
            [operands for operands, keep in zip(self.operands, known, strict=True) if keep],
            self.share_per_item,
        )


@dataclass(frozen=True, eq=False)
class RunValues:
    """The values of a run, or of a reference configuration without a run folder.

    dataset: its hash. tasks: in the order of the dataset.
    """

    dataset: str
    tasks: Mapping[str, TaskValues]


def run_values(run: ScoredRun) -> RunValues:
    """Return the values of a scored run. Items count as in the means of its protocol."""
    return RunValues(
        run.dataset.manifest.sha256,
        {task: _run_task_values(run, task) for task in run.rows},
    )


def _run_task_values(run: ScoredRun, task: str) -> TaskValues:
    groups = item_groups(counted_rows(run, task))

    def means(value: Callable[[ScoredItem], float | None]) -> list[float | None]:
        return [_mean([value(row) for row in group]) for group in groups]

    columns = {
        "score": means(lambda row: headline_percent(task, row.score)),
        "exact_match": means(lambda row: 100 * row.score.exact_match),
        "generated_tokens": [_mean(token_counts(run, group)) for group in groups],
        "reasoning_tokens": means(
            lambda row: row.response.usage.reasoning if row.response else None
        ),
        "cost": means(lambda row: row.response.cost if row.response else None),
    }
    return task_values(run.dataset, task, [group[0].item.id for group in groups], columns)


def task_values(
    dataset: Dataset,
    task: str,
    item_ids: Sequence[str],
    columns: Mapping[str, Sequence[float | None]],
) -> TaskValues:
    """Return the values of items of one task of a dataset, given in any order; None is unknown.

    columns: `score`, `exact_match`, `generated_tokens`, `reasoning_tokens` and `cost`; one that is
    left out is unknown. Raises KeyError for an item of another dataset.
    """
    items = dataset.by_task[task]
    index_of = {item.id: index for index, item in enumerate(items)}
    index = np.array([index_of[item_id] for item_id in item_ids], dtype=np.int64)
    order = np.argsort(index)
    chosen: list[Item] = [items[number] for number in index[order].tolist()]

    def column(name: str) -> Column:
        values = columns.get(name, [None] * len(item_ids))
        return np.array(values, dtype=np.float64)[order]

    return TaskValues(
        task,
        index[order],
        np.array([item.difficulty.base10 for item in chosen], dtype=np.float64),
        tuple(item.operands for item in chosen),
        strata_share_per_item(dataset.manifest),
        *map(column, VALUES),
    )


def common_items(values: Sequence[TaskValues]) -> list[TaskValues]:
    """Return the values of the items that all include."""
    index = values[0].index
    for one in values[1:]:
        index = np.intersect1d(index, one.index)
    return [one.select(np.isin(one.index, index)) for one in values]


def make_stratum(
    task: str,
    values: Matrix,
    difficulty: Column,
    operands: Sequence[Hashable],
    share_per_item: float,
) -> Stratum:
    """Return values of shape (items, columns) with the design of their items."""
    # Items of the same difficulty are in the random order of the dataset.
    order = np.argsort(difficulty, kind="stable")
    design = Design(order, share_per_item) if share_per_item else None
    return Stratum(task, values, design, operands)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
