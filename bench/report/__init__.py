"""Scores shown: the paper's tables and figures with error bars, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.records import ProtocolName

if TYPE_CHECKING:
    from bench.report.layout import Entry


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
