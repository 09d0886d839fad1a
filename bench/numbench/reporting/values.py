"""The values of runs and references per task and item, and the configurations that have them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from numbench.dataset.settings import strata_share_per_item
from numbench.dataset.store import Dataset
from numbench.reporting.names import dataset_label, folder_notes, one_line, variant_name
from numbench.scoring import ScoredRows, ScoredRun, TaskSummary, score_lenient, summarize
from numbench.scoring.scored_run import Completeness, completeness, counted_rows
from numbench.stats.design import Column, Design, Matrix, Stratum
from numbench.tasks import TASKS

Measure = Literal["score", "exact_match", "by_value", "generated_tokens", "cost"]
"""A value of an item that tables average: a field of `TaskValues`."""
VALUES: tuple[Measure, ...] = get_args(Measure)


@dataclass(frozen=True, eq=False)
class TaskValues:
    """The values of one run or reference on one task, one per item that counts.

    index: of each item within its task of the dataset, ascending. operands: hashes of the operands;
    items of different tasks with equal ones were drawn together. share_per_item: as in `Design`.
    score: the headline metric, like exact_match in percent; NaN where an item does not count.
    by_value: exact match if the correct value in another form counts too, NaN for a task that asks
    for no form. Tokens and dollars are NaN where they are unknown. All are means over the samples
    of the item.
    """

    task: str
    index: npt.NDArray[np.int64]
    difficulty: Column
    operands: npt.NDArray[np.int64]
    share_per_item: float
    score: Column
    exact_match: Column
    by_value: Column
    generated_tokens: Column
    cost: Column

    def select(self, chosen: npt.NDArray[np.bool_]) -> TaskValues:
        """Return the values of some of the items."""
        arrays = ("index", "difficulty", "operands", *VALUES)
        return replace(self, **{name: getattr(self, name)[chosen] for name in arrays})

    def stratum(self, values: Column) -> Stratum:
        """Return one column of values, such as `self.score`, without the unknown ones."""
        known = ~np.isnan(values)
        one = self.select(known)
        return make_stratum(
            one.task, values[known, None], one.difficulty, one.operands.tolist(), one.share_per_item
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
    tasks = {}
    for task in run.rows:
        rows = counted_rows(run, task)
        columns = {
            "score": 100 * rows.headline,
            "exact_match": 100.0 * rows.columns["exact_match"],
            "by_value": 100 * rows.by_value,
            "generated_tokens": rows.columns["tokens"],
            "cost": rows.columns["cost"],
        }
        tasks[task] = _values_of_rows(run, task, rows, columns)
    return RunValues(run.dataset.manifest.sha256, tasks)


def _values_of_rows(
    run: ScoredRun, task: str, rows: ScoredRows, columns: Mapping[str, Column]
) -> TaskValues:
    """Return the values of items, given by row; one that is left out is unknown."""
    items = rows.items.columns
    unknown = np.full(len(rows), math.nan)
    return TaskValues(
        task,
        items["item"].astype(np.int64),
        items["difficulty"],
        items["operands"],
        strata_share_per_item(run.dataset.manifest),
        *(rows.item_means(columns.get(name, unknown), name == "cost") for name in VALUES),
    )


def task_values(
    dataset: Dataset,
    task: str,
    item_ids: Sequence[str],
    columns: Mapping[str, Sequence[float | None]],
) -> TaskValues:
    """Return the values of items of one task of a dataset, given in any order; None is unknown.

    columns: by the names in `VALUES`; one that is left out is unknown.
    Raises KeyError for an item of another dataset.
    """
    known = {item.id: (index, item) for index, item in enumerate(dataset.by_task[task])}
    index = np.array([known[item_id][0] for item_id in item_ids], dtype=np.int64)
    order = np.argsort(index)
    chosen = [known[item_ids[number]][1] for number in order.tolist()]

    def column(name: str) -> Column:
        values = columns.get(name, [None] * len(item_ids))
        return np.array(values, dtype=np.float64)[order]

    return TaskValues(
        task,
        index[order],
        np.array([item.difficulty.base10 for item in chosen], dtype=np.float64),
        np.array([hash(item.operands) for item in chosen], dtype=np.int64),
        strata_share_per_item(dataset.manifest),
        *map(column, VALUES),
    )


def row_stratum(run: ScoredRun, task: str, rows: ScoredRows, values: Column) -> Stratum:
    """Return the mean of a value over the samples of each item that has it; NaN is unknown.

    values: of `rows`, which are rows of the run's task.
    """
    known = _values_of_rows(run, task, rows, {"score": values})
    return known.stratum(known.score)


def common_items(values: Sequence[TaskValues]) -> list[TaskValues]:
    """Return the values of the items that all include."""
    index = reduce(np.intersect1d, (one.index for one in values))
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


class FormatScores(NamedTuple):
    """What the protocol `lenient` makes of one run on one task.

    lenient: exact match, and score: the headline metric, 0 to 100. only_lenient: answers that only
    `lenient` reads.
    """

    lenient: float
    score: float
    only_lenient: int


def format_scores(run: ScoredRun, task: str) -> FormatScores | None:
    """Return the scores if other formats are read too; None under `paper` and without answers."""
    rows = counted_rows(run, task)
    if run.protocol == "paper" or not len(rows):
        return None
    others = ~rows.is_read | (rows.columns["rule"] == "lenient")
    lenient = rows.rescored(others, score_lenient)
    return FormatScores(
        float(lenient.item_means(100.0 * lenient.columns["exact_match"]).mean()),
        float(lenient.item_means(100 * lenient.headline).mean()),
        int(lenient.is_read[others].sum()),
    )


@dataclass(frozen=True, eq=False)
class Configuration:
    """A model at a reasoning level on a dataset: a run or a reference.

    note: distinguishes runs of the same model and level, otherwise empty. dataset: `v1@3f9c2a`.
    scored: the responses; None for a reference. published: measure → task → published mean, for
    tasks of a reference without responses. completeness: of the answers to the dataset's questions.
    """

    model: str
    level: str
    note: str
    source: Literal["measured", "imported", "reference", "baseline"]
    dataset: str
    values: RunValues
    scored: ScoredRun | None = None
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    completeness: Completeness = field(default=Completeness({}))

    @property
    def name(self) -> str:
        """Return `GPT 5`, with the note if there is one."""
        return f"{self.model} ({self.note})" if self.note else self.model

    @property
    def label(self) -> str:
        """Return `GPT 5 (minimal)`, with the note if there is one."""
        return f"{self.model} ({self.level}{f', {self.note}' if self.note else ''})"

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The tasks with a value, in the order of the registry."""
        known = {task for task, values in self.values.tasks.items() if len(values.score)}
        known |= set(self.published.get("score", ()))
        return tuple(task for task in TASKS if task in known)

    @cached_property
    def incomplete_tasks(self) -> tuple[str, ...]:
        """The tasks with answers to fewer than 99% of their samples; none of published scores."""
        return tuple(task for task in self.tasks if task in self.completeness.incomplete_tasks)

    @cached_property
    def median_tokens(self) -> float | None:
        """The median of the generated tokens of the answers; None if none is known or published."""
        by_item = [values.generated_tokens for values in self.values.tasks.values()]
        return None if self.published.get("score") else _median(self._of_answers("tokens", by_item))

    @cached_property
    def median_latency(self) -> float | None:
        """The median seconds per answer; None if none is known."""
        return _median(self._of_answers("latency"))

    def _of_answers(self, column: str, default: Sequence[Column] = ()) -> Sequence[Column]:
        """Return a column of the answers to each task; `default` without a run."""
        if self.scored is None:
            return default
        return [each.columns[column][each.is_answered] for each in self.scored.rows.values()]


@dataclass(frozen=True, eq=False)
class RunConfiguration(Configuration):
    """A run, with its responses."""

    scored: ScoredRun

    @cached_property
    def cells(self) -> dict[str, TaskSummary]:
        """Task → counts and statuses of the responses."""
        return summarize(self.scored)

    @cached_property
    def formats(self) -> dict[str, FormatScores]:
        """Task → scores if other formats are read too."""
        known = {task: format_scores(self.scored, task) for task in self.cells}
        return {task: scores for task, scores in known.items() if scores}


def _median(columns: Iterable[Column]) -> float | None:
    every = np.concatenate([np.zeros(0), *columns])
    known = every[~np.isnan(every)]
    return float(np.median(known)) if len(known) else None


def run_configurations(runs: Sequence[ScoredRun]) -> list[RunConfiguration]:
    """Return the configurations of runs, with what distinguishes them as notes."""
    names = [
        (one_line(run.info.display), one_line(run.info.reasoning), variant_name(run.info),
         dataset_label(run))
        for run in runs
    ]  # fmt: skip
    notes = folder_notes(names, [run.path for run in runs])
    return [
        RunConfiguration(
            model, level, ", ".join(filter(None, (variant, note))), run.info.source, dataset,
            run_values(run), run, completeness=completeness(run),
        )
        for run, (model, level, variant, dataset), note in zip(runs, names, notes, strict=True)
    ]  # fmt: skip
