"""The data that every table and figure of a report is made from."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from numbench.published import published_means, published_models
from numbench.records import Estimate, ProtocolName
from numbench.reporting.comparisons import ALL, Comparisons, PairDifference, compare_values
from numbench.reporting.names import level_rank
from numbench.reporting.references import has_references, read_references
from numbench.reporting.values import (
    Configuration,
    Measure,
    run_configurations,
)
from numbench.scoring import ScoredRun
from numbench.stats.design import Stratum
from numbench.stats.intervals import MeanIntervals, amount_intervals, mean_intervals
from numbench.stats.multiple_testing import RankSet, holm, rank_sets
from numbench.tasks import TASKS

if TYPE_CHECKING:
    from numbench.forensics.findings import RunFindings
    from numbench.memory_test.outcome import Outcome
    from numbench.reporting.horizon_runs import HorizonRun

Result = TypeVar("Result")
ConfigurationT = TypeVar("ConfigurationT", bound=Configuration)

MAX_TASK_COLUMNS = 12
"""A table has columns for at most so many tasks; those of further datasets have rows."""


@dataclass(frozen=True)
class DatasetGroup:
    """The configurations on one dataset, which alone are ranked and drawn together.

    label: `v1@3f9c2a`. tasks: of its runs, in the order of the registry. questions: of the whole
    dataset. runs, references: indices into `ReportData.configurations`.
    """

    label: str
    sha256: str
    tasks: tuple[str, ...]
    questions: int
    runs: tuple[int, ...]
    references: tuple[int, ...]

    @property
    def members(self) -> tuple[int, ...]:
        """The runs, then the references."""
        return self.runs + self.references

    @property
    def heading(self) -> str:
        """Return `v1@3f9c2a · 4,500 questions`."""
        return f"{self.label} · {self.questions:,} questions"


class ReportData:
    """Runs and references, and what follows from them.

    horizons: the measurements of horizons, in the order of their tables. references: whether to
    compare runs on the dataset `paper` with the published configurations. skipped: sentences about
    run folders that could not be included. baselines: further references.
    """

    def __init__(
        self,
        runs: Sequence[ScoredRun] = (),
        horizons: Sequence[HorizonRun] = (),
        references: bool = True,
        skipped: Sequence[str] = (),
        baselines: Sequence[Configuration] = (),
    ) -> None:
        self.horizons = tuple(horizons)
        self.skipped = tuple(skipped)
        self._with_published, self._baselines = references, baselines
        self._computed: dict[Hashable, Any] = {}
        self.runs = self._ordered(run_configurations(runs))

    @property
    def protocol(self) -> ProtocolName:
        """The protocol of the scores, which is the same for all runs."""
        return self.runs[0].scored.protocol if self.runs else "exact"

    @cached_property
    def references(self) -> tuple[Configuration, ...]:
        """The published configurations, then the baselines, each the highest mean first."""
        return self._ordered(self._published()) + self._ordered(self._baselines)

    def _published(self) -> Sequence[Configuration]:
        """Return the published configurations, without those that a run repeats.

        There are none unless a run is on the dataset `paper` under the protocol `exact`.
        """
        runs = [run for run in self.runs if has_references(run.values.dataset)]
        if not runs or not self._with_published or self.protocol != "exact":
            return ()
        tasks = {task for run in runs for task in run.tasks}
        imported = {(run.model, run.level) for run in runs if run.source == "imported"}
        return read_references(runs[0].scored.dataset, runs[0].dataset, tasks, imported)

    @property
    def reference_noun(self) -> str:
        """What texts call a reference."""
        is_published = all(one.source == "reference" for one in self.references)
        return "published configuration" if is_published else "reference"

    @cached_property
    def configurations(self) -> tuple[Configuration, ...]:
        """The runs, then the references."""
        return (*self.runs, *self.references)

    @cached_property
    def datasets(self) -> tuple[DatasetGroup, ...]:
        """The datasets of the runs, in their order."""
        groups = []
        for sha256 in dict.fromkeys(run.values.dataset for run in self.runs):
            members = [
                i for i, one in enumerate(self.configurations) if one.values.dataset == sha256
            ]
            runs = tuple(i for i in members if i < len(self.runs))
            first = self.runs[runs[0]]
            own = {task for index in runs for task in self.runs[index].values.tasks}
            tasks = tuple(task for task in TASKS if task in own)
            questions = sum(map(len, first.scored.dataset.by_task.values()))
            references = tuple(members[len(runs) :])
            groups.append(DatasetGroup(first.dataset, sha256, tasks, questions, runs, references))
        return tuple(groups)

    @cached_property
    def wide_datasets(self) -> tuple[DatasetGroup, ...]:
        """The datasets whose tasks are the columns of tables. The tasks of the others are rows."""
        wide: list[DatasetGroup] = []
        for group in self.datasets:
            tasks = {task for one in (*wide, group) for task in one.tasks}
            wide += [group] if len(tasks) <= MAX_TASK_COLUMNS else []
        return tuple(wide)

    def part_of(self, configuration: Configuration) -> str:
        """Return how much of its dataset a configuration covers, if not all: `5 of 9 tasks`."""
        tasks, every = len(configuration.tasks), len(self.group_of(configuration).tasks)
        if tasks < every:
            return f"{tasks} of {every} tasks"
        return f"{configuration.completeness} answered" if configuration.incomplete_tasks else ""

    def group_of(self, configuration: Configuration) -> DatasetGroup:
        """Return the dataset of a configuration."""
        return next(g for g in self.datasets if g.sha256 == configuration.values.dataset)

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of the runs, in the order of the registry."""
        known = {task for run in self.runs for task in run.values.tasks}
        return tuple(task for task in TASKS if task in known)

    def once(self, name: Hashable, compute: Callable[[], Result]) -> Result:
        """Return what `compute` gives, which is called at the first use of the name only."""
        if name not in self._computed:
            self._computed[name] = compute()
        result: Result = self._computed[name]
        return result

    def cost(self, configuration: Configuration, task: str = ALL) -> Estimate | None:
        """Return the US dollars per 1,000 questions; None if the cost of an item is unknown."""
        known = self.estimate(configuration, "cost", task)
        return known and Estimate(*(None if x is None else 1000 * x for x in known))  # type: ignore[arg-type]

    def estimate(
        self, configuration: Configuration, measure: Measure = "score", task: str = ALL
    ) -> Estimate | None:
        """Return the mean of a measure on a task, or over the configuration's own tasks.

        Scores are in percent. None if a task's value is unknown. With a published cell among the
        tasks, the mean over them is that of the published values, without interval.
        """
        key = id(configuration), measure, task
        return self.once(key, lambda: _estimate(configuration, measure, task))

    def is_published(self, configuration: Configuration, task: str = ALL) -> bool:
        """Return whether a value, or the mean, is a published one."""
        cells = configuration.published.get("score", {})
        return bool(cells) if task == ALL else task in cells

    @cached_property
    def comparisons(self) -> Comparisons:
        """The comparisons of every two runs on one dataset, and of runs with references."""
        pairs = [
            (left, right)
            for group in self.datasets
            for left in group.runs
            for right in group.members
            if left < right
        ]
        values = [one.values for one in self.configurations]
        return compare_values(values, pairs)

    def difference(
        self, left: Configuration, right: Configuration, task: str = ALL
    ) -> PairDifference | None:
        """Return left minus right on the questions that both answer; None without any."""
        indices = (self.configurations.index(left), self.configurations.index(right))
        return self.comparisons.of(*indices, task)

    def common_tasks(self, one: PairDifference) -> int:
        """Return the number of tasks that both configurations of a difference answer."""
        known = self.comparisons.tasks_of(one.left, one.right)
        return sum(task != ALL for task in known)

    @cached_property
    def ranks(self) -> dict[str, dict[int, RankSet]]:
        """Task or `ALL` → run → the ranks that it may have among all on its dataset.

        With a probability of at least 95%, all of them contain the true ranks. Only complete runs
        are ranked; see `ranked_members`. A configuration whose value of a task is published is
        compared on the other tasks.
        """
        ranks: dict[str, dict[int, RankSet]] = {task: {} for task in (ALL, *self.tasks)}
        for group in self.datasets:
            ranked = {ALL: self.ranked_members(group)} if len(group.tasks) > 1 else {}
            ranked |= {task: self.ranked_members(group, task) for task in group.tasks}
            family = [
                one
                for one in self.comparisons.differences
                if {one.left, one.right} <= set(ranked.get(one.task, ()))
            ]
            losses: dict[str, list[tuple[int, int]]] = {}
            for one, p in zip(family, holm([one.p for one in family]), strict=True):
                verdict = one._replace(p_adjusted=p).verdict
                if not verdict.startswith("not"):
                    pair = (one.right, one.left) if verdict == "better" else (one.left, one.right)
                    losses.setdefault(one.task, []).append(pair)
            for task, members in ranked.items():
                if len(members) > 1:
                    known = rank_sets(members, losses.get(task, []))
                    ranks[task] |= {i: known[i] for i in members if i in group.runs}
            if len(group.tasks) == 1:
                own = ranks[group.tasks[0]]
                ranks[ALL] |= {i: own[i] for i in group.runs if i in own}
        return ranks

    def ranked_members(self, group: DatasetGroup, task: str = ALL) -> list[int]:
        """Return the configurations with scores by item on a task, or a mean over all tasks.

        A run must answer at least 99% of the task, or of each one: the others may be the hard ones.
        """
        chosen = []
        for index in group.members:
            one = self.configurations[index]
            with_items = {name for name, values in one.values.tasks.items() if len(values.score)}
            tasks = set(group.tasks) if task == ALL else {task} & with_items
            is_complete = tasks <= set(one.tasks) - set(one.incomplete_tasks)
            if tasks and with_items and is_complete:
                chosen.append(index)
        return chosen

    @cached_property
    def findings(self) -> list[tuple[int, RunFindings]]:
        """Index of a run, and which other computations its wrong answers equal.

        Empty under the protocol `paper`, which does not read answers as numbers of any length.
        """
        from numbench.forensics.findings import find_matches

        return find_matches([run.scored for run in self.runs])

    @cached_property
    def memory_tests(self) -> tuple[Outcome, ...]:
        """The outcomes of the memory tests whose two runs are among the runs."""
        from numbench.memory_test.outcome import find_outcomes

        return find_outcomes([run.scored for run in self.runs])

    def _ordered(self, found: Sequence[ConfigurationT]) -> tuple[ConfigurationT, ...]:
        """Return configurations by dataset, number of tasks, completeness, then mean."""
        models = [*published_models(), *(one.model for one in found)]
        datasets = list(dict.fromkeys(one.values.dataset for one in found))

        def position(one: Configuration) -> tuple[float, ...]:
            mean = self.estimate(one)
            return (
                datasets.index(one.values.dataset),
                -len(one.tasks),
                bool(one.incomplete_tasks),
                -mean.value if mean else 0.0,
                models.index(one.model),
                *level_rank(one.level),
            )

        return tuple(sorted(found, key=position))


def _estimate(one: Configuration, measure: Measure, task: str) -> Estimate | None:
    cells = one.published.get(measure, {})
    if task in cells:
        return Estimate(cells[task])
    if task == ALL and one.published.get("score"):
        # Published and re-scored values are never averaged together.
        known = published_means()[one.model, one.level].get(measure, {})
        values = [known[each] for each in one.tasks if each in known]
        return Estimate(sum(values) / len(values)) if len(values) == len(one.tasks) else None
    tasks = one.tasks if task == ALL else (task,)
    if any(each not in one.values.tasks for each in tasks):
        return None
    of_tasks = [one.values.tasks[each] for each in tasks]
    if measure == "cost" and any(np.isnan(of_task.cost).any() for of_task in of_tasks):
        return None
    strata = [of_task.stratum(getattr(of_task, measure)) for of_task in of_tasks]
    is_score = measure in ("score", "exact_match", "by_value")
    return score_estimate(strata) if is_score else amount_estimate(strata)


def score_estimate(strata: Sequence[Stratum]) -> Estimate | None:
    """Return the mean over tasks of scores in percent; None if a task has no values."""
    return _estimate_of(strata, mean_intervals)


def amount_estimate(strata: Sequence[Stratum], signed: bool = False) -> Estimate | None:
    """Return the mean over tasks of amounts, such as tokens; None if a task has no values.

    signed: whether they are differences of amounts.
    """
    return _estimate_of(strata, partial(amount_intervals, signed=signed))


def _estimate_of(
    strata: Sequence[Stratum], intervals: Callable[[Sequence[Stratum]], MeanIntervals]
) -> Estimate | None:
    if not strata or not all(len(stratum.values) for stratum in strata):
        return None
    mean, low, high = (float(column[0]) for column in intervals(strata))
    return Estimate(mean) if math.isnan(low) or math.isnan(high) else Estimate(mean, low, high)
