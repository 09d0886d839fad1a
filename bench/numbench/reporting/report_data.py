"""The data that every table and figure of a report is made from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

from numbench.certificate.outcome import Outcome, find_outcomes
from numbench.plot_style import RunStyle, level_styles, model_styles
from numbench.records import ProtocolName
from numbench.reporting.budget_tables import Budgets
from numbench.reporting.certificate_tables import certificate_notes, certificate_warnings
from numbench.reporting.comparison_tables import detectable_note
from numbench.reporting.comparisons import Comparisons, compare_runs
from numbench.reporting.convention_table import (
    ConventionCell,
    convention_cells,
    convention_warnings,
)
from numbench.reporting.coverage import coverage_warnings
from numbench.reporting.entries import MeasuredRun, dataset_label, dataset_tasks
from numbench.reporting.horizon_runs import HorizonRun
from numbench.reporting.horizon_tables import horizon_warnings
from numbench.reporting.metamorphic import MetamorphicResult, metamorphic_results
from numbench.reporting.other_computations import RunMatches, run_matches
from numbench.reporting.prompt_effects import (
    PromptEffect,
    PromptSpread,
    prompt_effects,
    prompt_name,
    prompt_spreads,
)
from numbench.reporting.published_rows import published_note
from numbench.reporting.reasoning_budgets import budget_groups, efficiency
from numbench.reporting.repeated_samples import RepeatedSamples, repeated_samples
from numbench.reporting.report_warnings import ReportWarning
from numbench.reporting.table_model import LOG_SMAPE, Entry, TableContext
from numbench.reporting.task_scores import TaskScores, task_scores
from numbench.reporting.variant_console import VariantSummary, summarize_variants

_PROTOCOL_NOTES: dict[ProtocolName, str] = {
    "exact": "Protocol exact: answers scored against exact truth, rounded to 15 digits.",
    "lenient": "Protocol lenient: like exact, and answers in other formats are read too.",
    "paper": "Protocol paper: the published study's own scoring, including its known errors.",
}
RunKind = Literal["scores", "horizons"]
"""What a run measures: the scores of a dataset's items, or horizons."""

_HORIZON_NOTE = "Horizons: an answer is right if all of its digits are (protocol exact)."
_COVERAGE_REFERENCE = "Omitted or unreadable answers: see Coverage."


class ReportData:
    """Runs and published values, and what follows from them.

    runs: the measured runs, in the order of the tables. published: the paper's entries, empty if
    they are not shown or there are no runs to compare with. horizons: the measurements of horizons,
    in the order of their tables. Raises ValueError without a run of either kind.
    """

    def __init__(
        self,
        runs: Sequence[MeasuredRun],
        published: Sequence[Entry] = (),
        horizons: Sequence[HorizonRun] = (),
    ) -> None:
        self.runs = tuple(runs)
        self.published = tuple(published) if runs else ()
        self.horizons = tuple(horizons)

    @cached_property
    def published_note(self) -> str:
        """The note below published rows; empty without them, and beside the paper's questions."""
        return published_note([run.scored.dataset for run in self.runs]) if self.published else ""

    def has(self, kind: RunKind) -> bool:
        """Return whether there are runs of a kind."""
        return bool(self.runs if kind == "scores" else self.horizons)

    @property
    def protocol(self) -> ProtocolName:
        """The protocol of the scores, which is the same for all runs."""
        return self.runs[0].scored.protocol if self.runs else "exact"

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The entry of each run."""
        return tuple(run.entry for run in self.runs)

    @cached_property
    def all_entries(self) -> tuple[Entry, ...]:
        """The entries of the runs, then the published ones that share a task with them."""
        shared = (e for e in self.published if set(self.tasks) & set(e.estimates(LOG_SMAPE)))
        return (*self.entries, *shared)

    @cached_property
    def model_styles(self) -> dict[str, RunStyle]:
        """The style of each model in every figure."""
        models = (*(entry.model for entry in self.all_entries), *(h.model for h in self.horizons))
        return model_styles(models)

    @cached_property
    def run_styles(self) -> tuple[RunStyle, ...]:
        """The style of each run: that of its model, with a tint and a line of its own."""
        return tuple(level_styles([entry.model for entry in self.entries], self.model_styles))

    @cached_property
    def horizon_styles(self) -> tuple[RunStyle, ...]:
        """The style of each measurement of horizons, like `run_styles`."""
        return tuple(level_styles([run.model for run in self.horizons], self.model_styles))

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of the runs' datasets, in the order of the registry."""
        return dataset_tasks(self.runs)

    @cached_property
    def heading(self) -> str:
        """`Measured`, `Imported` or `Measured and imported`: the source of the runs."""
        sources = {run.scored.info.source for run in self.runs}
        sources |= {run.source for run in self.horizons}
        return " and ".join(s for s in ("measured", "imported") if s in sources).capitalize()

    @cached_property
    def scores(self) -> list[TaskScores]:
        """Scores and difficulties of every task with counted items."""
        by_task = (task_scores(task, self.runs) for task in self.tasks)
        return [scores for scores in by_task if scores is not None]

    @cached_property
    def repeated_samples(self) -> list[RepeatedSamples]:
        """The statistics of the runs with several samples per item."""
        return repeated_samples(self.runs)

    @cached_property
    def matches(self) -> list[RunMatches]:
        """Which other computations the wrong answers of each run equal."""
        return run_matches(self.runs)

    @cached_property
    def budgets(self) -> Budgets:
        """What the reasoning levels of a model cost and gain, and the price of a correct digit."""
        groups = budget_groups(self.runs)
        steps = [group.steps(self.comparisons) for group in groups]
        return Budgets(self.runs, groups, steps, [efficiency(run.scored) for run in self.runs])

    @cached_property
    def comparisons(self) -> Comparisons:
        """The pairwise comparisons of all runs."""
        return compare_runs([run.scored for run in self.runs])

    @cached_property
    def prompt_effects(self) -> list[PromptEffect]:
        """The effects of prompts in runs that differ in nothing else."""
        return prompt_effects(self.runs, self.comparisons)

    @cached_property
    def prompt_spreads(self) -> list[PromptSpread]:
        """The spread of the scores over wordings of equal meaning."""
        return prompt_spreads(self.runs)

    @cached_property
    def metamorphic_results(self) -> list[MetamorphicResult]:
        """Transformed runs beside the runs on the items as they are."""
        return metamorphic_results(self.runs)

    @cached_property
    def variant_summaries(self) -> tuple[VariantSummary, ...]:
        """The effects of prompts and transformations over the tasks."""
        names = [(run.entry.model, run.entry.reasoning, prompt_name(run)) for run in self.runs]
        return summarize_variants(names, self.prompt_effects, self.metamorphic_results)

    @cached_property
    def certificates(self) -> tuple[Outcome, ...]:
        """The outcomes of the certificates whose two runs are among the runs."""
        return find_outcomes([run.scored for run in self.runs])

    @cached_property
    def warnings(self) -> tuple[ReportWarning, ...]:
        """The warnings about coverage, conventions, certificates and horizons."""
        return (
            *coverage_warnings(self.runs),
            *convention_warnings(self.conventions),
            *map(ReportWarning, certificate_warnings(self.certificates)),
            *horizon_warnings(self.horizons),
        )

    @cached_property
    def conventions(self) -> list[ConventionCell]:
        """The tasks with several conventions; empty under the protocol `paper`."""
        return convention_cells(self.runs)

    @cached_property
    def context(self) -> TableContext:
        """Heading and notes of the page."""
        kinds: tuple[RunKind, ...] = ("scores", "horizons")
        notes = [note for kind in kinds if self.has(kind) for note in self.notes_about(kind)]
        return TableContext(self.heading, (*notes, *certificate_notes(self.certificates)))

    def notes_about(self, kind: RunKind) -> tuple[str, ...]:
        """Return the notes of every table about runs of a kind."""
        return self._score_notes if kind == "scores" else (_HORIZON_NOTE,)

    @cached_property
    def _score_notes(self) -> tuple[str, ...]:
        detectable = detectable_note(self.runs, self.comparisons)
        notes = (_PROTOCOL_NOTES[self.protocol], self._dataset_note(), detectable)
        return (*(note for note in notes if note), _COVERAGE_REFERENCE)

    def _dataset_note(self) -> str:
        datasets = list(dict.fromkeys(dataset_label(run.scored) for run in self.runs))
        sizes = {cell.n for run in self.runs for cell in run.cells.values()} or {0}
        items = " to ".join(str(size) for size in sorted({min(sizes), max(sizes)}))
        if len(datasets) == 1:
            bits = self.runs[0].scored.dataset.manifest.settings.get("max_bits")
            operands = f", integers of at most {bits} bits (the paper has longer numbers)"
            return f"Dataset {datasets[0]}, {items} items per task{operands if bits else ''}."
        return f"The runs use different datasets ({', '.join(datasets)}), {items} items per task."
