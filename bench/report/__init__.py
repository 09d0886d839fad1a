"""Scores shown: the paper's tables and figures with error bars, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.records import ProtocolName

if TYPE_CHECKING:
    from bench.report.layout import Entry
    from bench.report.regression import Regression


class ReportResult(NamedTuple):
    """Where a report lies, its measured and its published rows, and what its reader must know."""

    out: Path
    protocol: ProtocolName
    entries: tuple[Entry, ...]
    published: tuple[Entry, ...]
    warnings: tuple[str, ...]


def report(
    runs: Sequence[Path] | None = None,
    protocol: ProtocolName = "exact",
    published: bool = True,
    out: Path = Path("results/report"),
) -> ReportResult:
    """Score `runs` (folders with runs at or below; all under results/ if none) and report them.

    Writes under `out`: tables/, figures/, scores.parquet, report.json and report.html. With
    `published` the paper's rows stand beside the measured ones, always marked; never in a CSV.
    BadInput where there is no run, or one that cannot be read.
    """
    # Drawing libraries load slowly, and whoever imports this package may not draw.
    from bench.report.build import build

    return build(runs, protocol, published, out)


def compare(
    old: Path,
    new: Path,
    protocol: ProtocolName = "exact",
    fail_below: float | None = None,
    partial: bool = False,
) -> Regression:
    """Whether run `new` is worse than run `old` by more than noise; writes nothing.

    A task counts as fallen where the paired test, with Holm's correction over the tasks, shows
    it to be worse, and by more than `fail_below` points if that is given. So does one that was
    not asked, or of which too few items were answered again; with `partial` that is but noted.
    BadInput for runs that cannot be compared.
    """
    from bench.report.regression import find_regression

    return find_regression(old, new, protocol, fail_below, partial)
