"""Who is better than whom: by the study's scoring, and under exact truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from bench.report.comparisons import NOT_SHOWN, OVERALL, Contrast, compare_runs, verdict
from bench.report.measured import Measured

Change = Literal["same", "neither", "lost", "gained", "reversed"]


class Order(NamedTuple):
    """Two configurations on one task: the first's score less the second's, in points.

    before: by the study's scoring; after: under exact truth. shown: whether a paired test tells
    the two apart (5 %, Holm's correction over all pairs of the task).
    """

    first: str
    second: str
    table: str
    task: str
    before: float
    after: float
    shown_before: bool
    shown_after: bool

    @property
    def change(self) -> Change:
        """What becomes of the order that a test shows."""
        if self.shown_before and self.shown_after:
            return "same" if self.before * self.after > 0 else "reversed"
        if self.shown_before:
            return "lost"
        return "gained" if self.shown_after else "neither"

    @property
    def swapped(self) -> bool:
        """Whether the one that was ahead is now behind, noise or not."""
        return self.before * self.after < 0


def orders(paper: Sequence[Measured], exact: Sequence[Measured]) -> list[Order]:
    """Every two configurations on every task that both were asked; the runs in one order."""
    before = compare_runs([run.run for run in paper]).contrasts
    after = compare_runs([run.run for run in exact]).contrasts
    labels = [run.label for run in exact]
    return [
        Order(
            labels[one.first],
            labels[one.second],
            one.table,
            one.task,
            one.found.difference,
            other.found.difference,
            _shown(one),
            _shown(other),
        )
        for one, other in zip(before, after, strict=True)
        if one.task != OVERALL and one.found and other.found
    ]


def _shown(contrast: Contrast) -> bool:
    return verdict(contrast.found, contrast.p_pairs) != NOT_SHOWN
