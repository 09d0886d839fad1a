"""Pairwise comparisons of configurations by the study's scoring and against exact answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from numbench.reporting.comparisons import NOT_SIGNIFICANT, OVERALL, Contrast, compare_runs, verdict
from numbench.reporting.entries import MeasuredRun

Change = Literal["same", "neither", "lost", "gained", "reversed"]


class PairwiseChange(NamedTuple):
    """Two configurations on one task: the first's score minus the second's, in points.

    before: by the study's scoring. after: against exact answers. significant_*: whether a paired
    test finds a difference (5 %, Holm's correction over all pairs of the task).
    """

    first: str
    second: str
    table: str
    task: str
    before: float
    after: float
    significant_before: bool
    significant_after: bool

    @property
    def change(self) -> Change:
        """How re-scoring changes the significant order of the two."""
        if self.significant_before and self.significant_after:
            return "same" if self.before * self.after > 0 else "reversed"
        if self.significant_before:
            return "lost"
        return "gained" if self.significant_after else "neither"

    @property
    def swapped(self) -> bool:
        """Whether the difference changes its sign, significant or not."""
        return self.before * self.after < 0


def pairwise_changes(
    paper: Sequence[MeasuredRun], exact: Sequence[MeasuredRun]
) -> list[PairwiseChange]:
    """Compare every two configurations on every common task; both sequences in the same order."""
    before = compare_runs([run.scored for run in paper]).contrasts
    after = compare_runs([run.scored for run in exact]).contrasts
    labels = [run.label for run in exact]
    return [
        PairwiseChange(
            labels[by_study.first],
            labels[by_study.second],
            by_study.table,
            by_study.task,
            by_study.result.difference,
            by_truth.result.difference,
            _is_significant(by_study),
            _is_significant(by_truth),
        )
        for by_study, by_truth in zip(before, after, strict=True)
        if by_study.task != OVERALL and by_study.result and by_truth.result
    ]


def _is_significant(contrast: Contrast) -> bool:
    return verdict(contrast.result, contrast.p_pairs) != NOT_SIGNIFICANT
