"""A model at a reasoning level on a dataset: one row of every table of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from numbench.reporting.comparisons import ALL
from numbench.reporting.names import (
    dataset_label,
    distinguishing_notes,
    one_line,
    run_facets,
    variant_name,
)
from numbench.reporting.values import RunValues, run_values
from numbench.scoring import ScoredRun, TaskSummary, summarize
from numbench.scoring.completeness import Completeness, completeness
from numbench.stats.design import Column
from numbench.tasks import TASKS

Measure = Literal["score", "exact_match", "generated_tokens", "cost"]
"""A value of an item that tables average: a field of `TaskValues`."""

_RUNAWAY_SHARE = 0.02
"""Up to this share of the answers may have most of the tokens, for their mean to be runaway."""


class Runaway(NamedTuple):
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


@dataclass(frozen=True, eq=False)
class Configuration:
    """A model at a reasoning level on a dataset.

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

    def answer_tokens(self, task: str = ALL) -> Column:
        """Return the generated tokens of each answer with a known number."""
        tasks = self.values.tasks.values() if task == ALL else [self.values.tasks[task]]
        every = np.concatenate([np.zeros(0), *(values.generated_tokens for values in tasks)])
        return np.asarray(every[~np.isnan(every)])

    @cached_property
    def runaway(self) -> Runaway | None:
        """The answers of more than ten times the mean, if they are few and most of the sum."""
        tokens = self.answer_tokens()
        if not len(tokens):
            return None
        mean = float(tokens.mean())
        longest = tokens[tokens > 10 * mean]
        share = float(longest.sum() / tokens.sum()) if len(longest) else 0.0
        if share <= 0.5 or len(longest) > _RUNAWAY_SHARE * len(tokens):
            return None
        least, median = round(longest.min()), float(np.median(tokens))
        return Runaway(len(longest), len(tokens), least, share, mean, median)


def run_configurations(runs: Sequence[ScoredRun]) -> list[Configuration]:
    """Return the configurations of runs, with what distinguishes them as notes."""
    names = [
        (one_line(run.info.display), one_line(run.info.reasoning), variant_name(run.info),
         dataset_label(run))
        for run in runs
    ]  # fmt: skip
    notes = distinguishing_notes(names, [run_facets(run) for run in runs])
    return [
        Configuration(
            model,
            level,
            ", ".join(filter(None, (variant, note))),
            run.info.source,
            dataset,
            run_values(run),
            run,
        )
        for run, (model, level, variant, dataset), note in zip(runs, names, notes, strict=True)
    ]
