"""The data that every table and figure of a report is made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from numbench.records import ProtocolName
from numbench.reporting.comparisons import ALL, Comparisons, PairDifference, compare_values
from numbench.reporting.estimates import amount_estimate, score_estimate
from numbench.reporting.names import (
    dataset_label,
    distinguishing_notes,
    level_rank,
    one_line,
    run_facets,
    variant_name,
)
from numbench.reporting.references import (
    Measure,
    has_references,
    published_means,
    published_models,
    read_references,
)
from numbench.reporting.tables.model import Estimate
from numbench.reporting.values import RunValues, TaskValues, run_values
from numbench.scoring import ScoredRun, TaskSummary, summarize
from numbench.scoring.completeness import Completeness, completeness
from numbench.scoring.tool_mentions import find_tool_mentions
from numbench.stats.design import Column
from numbench.stats.multiple_testing import RankSet, holm, rank_sets
from numbench.tasks import TASKS

if TYPE_CHECKING:
    from numbench.forensics.findings import RunFindings
    from numbench.memory_test.outcome import Outcome
    from numbench.plot_style import RunStyle
    from numbench.reporting.answer_formats import FormatScores
    from numbench.reporting.horizon_runs import HorizonRun
    from numbench.reporting.price import Step
    from numbench.reporting.samples import RepeatedSamples
    from numbench.reporting.variants import VariantEffect
    from numbench.reporting.warnings import ReportWarning

_ALPHA = 0.05
_RUNAWAY_SHARE = 0.02
"""Up to this share of the answers may have most of the tokens, for their mean to be runaway."""


@dataclass(frozen=True, eq=False)
class Configuration:
    """A model at a reasoning level on a dataset: one row of every table of scores.

    note: distinguishes runs of the same model and level, otherwise empty. dataset: `v1@3f9c2a`.
    scored: the responses; None for a reference. published: measure → task → published mean, for
    tasks of a reference without responses.
    """

    model: str
    level: str
    note: str
    source: Literal["measured", "imported", "reference"]
    dataset: str
    values: RunValues
    scored: ScoredRun | None = None
    published: Mapping[Measure, Mapping[str, float]] = field(default_factory=dict)

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
    def cells(self) -> dict[str, TaskSummary]:
        """Task → counts and statuses of the responses; empty for a reference."""
        return summarize(self.scored) if self.scored else {}

    @cached_property
    def completeness(self) -> Completeness:
        """How many of the dataset's questions the run answers."""
        assert self.scored is not None
        return completeness(self.scored)


@dataclass(frozen=True)
class DatasetGroup:
    """The configurations on one dataset, which alone are ranked and drawn together.

    label: `v1@3f9c2a`. tasks: of its runs, in the order of the registry. questions: of the dataset
    on these tasks. runs, references: indices into `ReportData.configurations`.
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


@dataclass(frozen=True)
class Runaway:
    """A few answers of a run that have most of its tokens.

    answers, of: their number and that of all. least: the tokens of the shortest of them. share: of
    all tokens. mean, median: tokens of an answer, over all answers.
    """

    answers: int
    of: int
    least: int
    share: float
    mean: float
    median: float


class ReportData:
    """Runs and references, and what follows from them.

    horizons: the measurements of horizons, in the order of their tables. references: whether to
    compare runs on the dataset `paper` with the published configurations. skipped: sentences about
    run folders that could not be included; failures: about plugins that failed. Raises ValueError
    without a run of either kind.
    """

    def __init__(
        self,
        runs: Sequence[ScoredRun],
        horizons: Sequence[HorizonRun] = (),
        references: bool = True,
        skipped: Sequence[str] = (),
    ) -> None:
        if not runs and not horizons:
            raise ValueError("no runs")
        self.horizons = tuple(horizons)
        self.skipped = tuple(skipped)
        self.failures: list[str] = []
        self._with_references = references
        self._estimates: dict[tuple[int, Measure, str], Estimate | None] = {}
        self.runs = self._ordered(_configurations(runs))

    @property
    def protocol(self) -> ProtocolName:
        """The protocol of the scores, which is the same for all runs."""
        scored = self.runs[0].scored if self.runs else None
        return scored.protocol if scored else "exact"

    @cached_property
    def references(self) -> tuple[Configuration, ...]:
        """The published configurations, the highest mean first.

        Empty unless a run is on the dataset `paper` under the protocol `exact`. Those that a run
        repeats are left out.
        """
        runs = [run for run in self.runs if has_references(run.values.dataset)]
        if not runs or not self._with_references or self.protocol != "exact":
            return ()
        scored = runs[0].scored
        assert scored
        tasks = {task for run in runs for task in run.tasks}
        imported = {(run.model, run.level) for run in runs if run.source == "imported"}
        found = [
            Configuration(
                one.model,
                one.level,
                "",
                "reference",
                runs[0].dataset,
                one.values,
                None,
                one.published,
            )
            for one in read_references(scored.dataset, tasks, imported)
        ]
        return self._ordered(found)

    @cached_property
    def configurations(self) -> tuple[Configuration, ...]:
        """The runs, then the references."""
        return self.runs + self.references

    @cached_property
    def datasets(self) -> tuple[DatasetGroup, ...]:
        """The datasets of the runs, in their order."""
        groups = []
        for sha256 in dict.fromkeys(run.values.dataset for run in self.runs):
            indices = [i for i, one in enumerate(self.runs) if one.values.dataset == sha256]
            scored = self.runs[indices[0]].scored
            assert scored is not None
            own = {task for index in indices for task in self.runs[index].values.tasks}
            tasks = tuple(task for task in TASKS if task in own)
            count = len(self.runs)
            references = range(count, count + len(self.references))
            groups.append(
                DatasetGroup(
                    self.runs[indices[0]].dataset,
                    sha256,
                    tasks,
                    sum(len(scored.dataset.by_task[task]) for task in tasks),
                    tuple(indices),
                    tuple(references) if has_references(sha256) else (),
                )
            )
        return tuple(groups)

    def group_of(self, configuration: Configuration) -> DatasetGroup:
        """Return the dataset of a configuration."""
        return next(g for g in self.datasets if g.sha256 == configuration.values.dataset)

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of the runs, in the order of the registry."""
        known = {task for run in self.runs for task in run.values.tasks}
        return tuple(task for task in TASKS if task in known)

    def score(self, configuration: Configuration, task: str) -> Estimate | None:
        """Return the mean of a task in its headline metric, in percent."""
        return self.estimate(configuration, "score", task)

    def exact_match(self, configuration: Configuration, task: str) -> Estimate | None:
        """Return the percentage of exact matches on a task."""
        return self.estimate(configuration, "exact_match", task)

    def tokens(self, configuration: Configuration, task: str) -> Estimate | None:
        """Return the mean generated tokens per answer on a task."""
        return self.estimate(configuration, "generated_tokens", task)

    def cost(self, configuration: Configuration, task: str = ALL) -> Estimate | None:
        """Return the US dollars per 1,000 questions; None if the cost of an item is unknown."""
        known = self.estimate(configuration, "cost", task)
        return known and Estimate(*(None if x is None else 1000 * x for x in known))  # type: ignore[arg-type]

    def mean(self, configuration: Configuration, measure: Measure = "score") -> Estimate | None:
        """Return the mean over the configuration's own tasks; None if one is unknown.

        With a published cell among them, it is the mean of the published values, without interval.
        """
        return self.estimate(configuration, measure, ALL)

    def estimate(
        self, configuration: Configuration, measure: Measure, task: str = ALL
    ) -> Estimate | None:
        """Return the mean of a measure on a task, or over the configuration's own tasks."""
        key = id(configuration), measure, task
        if key not in self._estimates:
            self._estimates[key] = _estimate(configuration, measure, task)
        return self._estimates[key]

    def is_published(self, configuration: Configuration, task: str = ALL) -> bool:
        """Return whether a value, or the mean, is a published one."""
        cells = configuration.published.get("score", {})
        return bool(cells) if task == ALL else task in cells

    def median_tokens(self, configuration: Configuration, task: str = ALL) -> float | None:
        """Return the median of the generated tokens of the answers; None if none is known."""
        if self.is_published(configuration, task):
            return None
        known = _known_tokens(configuration, task)
        return float(np.median(known)) if len(known) else None

    @cached_property
    def runaways(self) -> dict[int, Runaway]:
        """Index of a configuration → the few answers that have most of its tokens."""
        found = {i: _runaway(one) for i, one in enumerate(self.configurations)}
        return {index: known for index, known in found.items() if known}

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
        return compare_values(values, pairs, metrics=("score",))

    def difference(
        self, left: Configuration, right: Configuration, task: str = ALL
    ) -> PairDifference | None:
        """Return left minus right on the questions that both answer; None without any."""
        indices = (self.configurations.index(left), self.configurations.index(right))
        return self.comparisons.of(*indices, task)

    def ranks(self, task: str = ALL) -> dict[int, RankSet]:
        """Return the ranks that each run may have among the configurations on its dataset.

        The means are ranked among the configurations with responses on all tasks of the dataset.
        """
        return self._ranks.get(task, {})

    @cached_property
    def _ranks(self) -> dict[str, dict[int, RankSet]]:
        ranks: dict[str, dict[int, RankSet]] = {task: {} for task in (ALL, *self.tasks)}
        for group in self.datasets:
            family = self._family(group)
            losses: dict[str, list[tuple[int, int]]] = {}
            for one, p in zip(family, holm([one.p for one in family]), strict=True):
                if p <= _ALPHA and not one.low <= 0 <= one.high:
                    pair = (one.right, one.left) if one.difference > 0 else (one.left, one.right)
                    losses.setdefault(one.task, []).append(pair)
            for task in (ALL, *group.tasks):
                wanted = group.tasks if task == ALL else (task,)
                members = [i for i in group.members if self.has_all_values(i, wanted)]
                if len(members) < 2:
                    continue
                sets = rank_sets(members, losses.get(task, []))
                ranks[task] |= {i: sets[i] for i in members if i in group.runs}
        return ranks

    def _family(self, group: DatasetGroup) -> list[PairDifference]:
        """Return the differences of a dataset's runs that ranks are based on."""
        family = []
        for one in self.comparisons.differences:
            if one.metric == "score" and one.left in group.runs:
                wanted = group.tasks if one.task == ALL else (one.task,)
                if self.has_all_values(one.left, wanted) and self.has_all_values(one.right, wanted):
                    family.append(one)
                    if len(group.tasks) == 1:
                        family.append(one._replace(task=ALL))
        return family

    def has_all_values(self, index: int, tasks: Iterable[str]) -> bool:
        """Return whether a configuration has scores by item on all of some tasks."""
        values = self.configurations[index].values.tasks
        return all(task in values and len(values[task].score) for task in tasks)

    @cached_property
    def model_styles(self) -> dict[str, RunStyle]:
        """The style of each model in every figure."""
        from numbench.plot_style import model_styles

        return model_styles(
            (*(one.model for one in self.configurations), *(one.model for one in self.horizons))
        )

    @cached_property
    def styles(self) -> tuple[RunStyle, ...]:
        """The style of each configuration: that of its model, with a tint and line of its own."""
        from numbench.plot_style import level_styles

        return tuple(level_styles([one.model for one in self.configurations], self.model_styles))

    @cached_property
    def horizon_styles(self) -> tuple[RunStyle, ...]:
        """The style of each measurement of horizons, like `styles`."""
        from numbench.plot_style import level_styles

        return tuple(level_styles([one.model for one in self.horizons], self.model_styles))

    @cached_property
    def price_steps(self) -> list[Step]:
        """The steps between the reasoning levels of each model."""
        from numbench.reporting.price import price_steps

        return price_steps(self)

    @cached_property
    def repeated_samples(self) -> list[RepeatedSamples]:
        """The statistics of the runs with several samples per question."""
        from numbench.reporting.samples import repeated_samples

        return repeated_samples(self)

    @cached_property
    def variants(self) -> list[VariantEffect]:
        """The effects of wordings and forms."""
        from numbench.reporting.variants import variant_effects

        return variant_effects(self)

    @cached_property
    def findings(self) -> list[tuple[int, RunFindings]]:
        """Index of a run, and which other computations its wrong answers equal.

        Empty under the protocol `paper`, which does not read answers as numbers of any length.
        """
        from numbench.reporting.findings import find_matches

        return find_matches(self)

    def formats(self, run: Configuration) -> dict[str, FormatScores]:
        """Return the exact match of a run's tasks under the protocols `exact` and `lenient`."""
        return self._formats[self.runs.index(run)]

    def tool_mentions(self, run: Configuration) -> dict[str, int]:
        """Return, per task, the responses of a run whose reasoning mentions using a tool."""
        return self._tool_mentions[self.runs.index(run)]

    @cached_property
    def _formats(self) -> list[dict[str, FormatScores]]:
        from numbench.reporting.answer_formats import format_scores

        found = []
        for run in self.runs:
            assert run.scored
            scores = {task: format_scores(run.scored, task) for task in run.cells}
            found.append({task: known for task, known in scores.items() if known})
        return found

    @cached_property
    def _tool_mentions(self) -> list[dict[str, int]]:
        return [
            {
                task: sum(
                    bool(row.response and find_tool_mentions(row.response.reasoning_text))
                    for row in rows
                )
                for task, rows in (run.scored.rows if run.scored else {}).items()
            }
            for run in self.runs
        ]

    @cached_property
    def memory_tests(self) -> tuple[Outcome, ...]:
        """The outcomes of the memory tests whose two runs are among the runs."""
        from numbench.memory_test.outcome import find_outcomes

        return find_outcomes([run.scored for run in self.runs if run.scored])

    @cached_property
    def warnings(self) -> tuple[ReportWarning, ...]:
        """What affects how the numbers can be read, the most severe first."""
        from numbench.reporting.warnings import report_warnings

        return report_warnings(self)

    def _ordered(self, found: Sequence[Configuration]) -> tuple[Configuration, ...]:
        """Return configurations by dataset, then by the number of their tasks, then by mean."""
        models = [*published_models(), *(one.model for one in found)]
        datasets = list(dict.fromkeys(one.values.dataset for one in found))

        def position(one: Configuration) -> tuple[float, ...]:
            mean = self.mean(one)
            return (
                datasets.index(one.values.dataset),
                -len(one.tasks),
                -mean.value if mean else 0.0,
                models.index(one.model),
                level_rank(one.level),
            )

        return tuple(sorted(found, key=position))


def _configurations(runs: Sequence[ScoredRun]) -> list[Configuration]:
    """Return the configurations of runs, with what distinguishes them as notes."""
    models = [one_line(run.info.display) for run in runs]
    levels = [one_line(run.info.reasoning) for run in runs]
    variants = [variant_name(run.info) for run in runs]
    datasets = [dataset_label(run) for run in runs]
    names = list(zip(models, levels, variants, datasets, strict=True))
    notes = distinguishing_notes(names, [run_facets(run) for run in runs])
    return [
        Configuration(
            models[index],
            levels[index],
            ", ".join(filter(None, (variants[index], notes[index]))),
            run.info.source,
            datasets[index],
            run_values(run, f"{models[index]} ({levels[index]})"),
            run,
        )
        for index, run in enumerate(runs)
    ]


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
    if not tasks or any(each not in one.values.tasks for each in tasks):
        return None
    columns = [one.values.tasks[each] for each in tasks]
    if measure == "cost" and any(np.isnan(values.cost).any() for values in columns):
        return None
    strata = [values.stratum(_column(values, measure)) for values in columns]
    is_score = measure in ("score", "exact_match")
    return score_estimate(strata) if is_score else amount_estimate(strata)


def _column(values: TaskValues, measure: Measure) -> Column:
    column: Column = getattr(values, measure)
    return column


def _known_tokens(one: Configuration, task: str = ALL) -> Column:
    tasks = one.values.tasks.values() if task == ALL else [one.values.tasks[task]]
    columns = [values.generated_tokens for values in tasks]
    every = np.concatenate(columns) if columns else np.zeros(0)
    return np.asarray(every[~np.isnan(every)])


def _runaway(one: Configuration) -> Runaway | None:
    """Return the answers of more than ten times the mean, if they are few and most of the sum."""
    tokens = _known_tokens(one)
    if not len(tokens):
        return None
    mean = float(tokens.mean())
    longest = tokens[tokens > 10 * mean]
    share = float(longest.sum() / tokens.sum()) if len(longest) else 0.0
    if share <= 0.5 or len(longest) > _RUNAWAY_SHARE * len(tokens):
        return None
    return Runaway(
        len(longest), len(tokens), round(longest.min()), share, mean, float(np.median(tokens))
    )
