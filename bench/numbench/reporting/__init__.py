"""Reports: tables, figures, one HTML page and data files, with uncertainty on every score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from numbench.records import ProtocolName

if TYPE_CHECKING:
    from numbench.reporting.regression import Regression
    from numbench.reporting.table_model import Entry


class ReportResult(NamedTuple):
    """A written report.

    out: its folder. entries, published: its measured and its published rows. warnings: facts
    that affect how the scores can be read. tasks: the tasks of the runs' datasets.
    """

    out: Path
    protocol: ProtocolName
    entries: tuple[Entry, ...]
    published: tuple[Entry, ...]
    warnings: tuple[str, ...]
    tasks: tuple[str, ...]


def _ignore(message: str) -> None:
    pass


def report(
    runs: Sequence[Path] | None = None,
    protocol: ProtocolName = "exact",
    published: bool = True,
    out: Path = Path("results/report"),
    on_progress: Callable[[str], None] = _ignore,
) -> ReportResult:
    """Score runs and write a report.

    Writes to `out`: tables/, figures/, scores.parquet, report.json and report.html.

    runs: folders that are runs or contain some; by default, all runs under results/.
    published: whether tables and figures also show the paper's values, marked as such; CSV files
        never contain them.
    on_progress: is called with a short message before each step.

    Raises BadInput if there is no run, or if one cannot be read.
    """
    # Deferred, because drawing libraries load slowly.
    from numbench.reporting.build import build

    return build(runs, protocol, published, out, on_progress)


def compare(
    old: Path,
    new: Path,
    protocol: ProtocolName = "exact",
    fail_below: float | None = None,
    partial: bool = False,
    margin: float | None = None,
) -> Regression:
    """Compare run `new` with run `old`: is it significantly worse? Writes nothing.

    A task fails if the paired test, with Holm's correction over the tasks, shows that the new
    run is worse, and by more than `fail_below` points if this is given. With `margin`, a task
    fails instead unless a regression of more than `margin` points is excluded (one-sided test at
    the 5 % level). A task also fails if the new run does not include it or too few of the
    previously answered items; with `partial`, this is only a note.

    Raises BadInput if the runs cannot be compared, or for `margin` together with `fail_below`.
    """
    from numbench.reporting.regression import find_regression

    return find_regression(old, new, protocol, fail_below, partial, margin)
