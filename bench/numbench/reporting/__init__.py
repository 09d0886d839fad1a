"""Reports: tables, figures, one HTML page and data files, with 95% intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from numbench.records import ProtocolName

if TYPE_CHECKING:
    from numbench.certificate.outcome import Outcome
    from numbench.reporting.horizon_regression import HorizonRegression
    from numbench.reporting.horizon_runs import HorizonRun
    from numbench.reporting.regression import Regression
    from numbench.reporting.report_warnings import Severity
    from numbench.reporting.table_model import Entry, RankedEntry
    from numbench.reporting.variant_console import VariantSummary

DEFAULT_RUNS = Path("results")
"""Where a report looks for runs if none are named."""
DEMO_RUNS = DEFAULT_RUNS / "demo"
"""The demo's runs, which are shown next to others only if named."""


class ReportResult(NamedTuple):
    """A written report.

    out: its folder. entries, published: its measured and its published rows. warnings: facts
    that affect how the scores can be read, the most severe ones first. warning_groups: the same by
    severity. tasks: the tasks of the runs' datasets. horizons: the
    measurements of horizons. variants: effects of prompts and transformations over the tasks.
    prompt_spreads: index of an entry → task → spread of its score over paraphrases, in points.
    certificates: the outcomes of certificates. findings: a line about the wrong answers of each run
    with a finding. budgets: sentences about the reasoning levels of a model. published_note:
    that the published scores are of other questions; empty if they are not. ranking: the rows by
    their mean over the tasks, measured ones first, as in the summary.
    """

    out: Path
    protocol: ProtocolName
    entries: tuple[Entry, ...]
    published: tuple[Entry, ...]
    warnings: tuple[str, ...]
    tasks: tuple[str, ...]
    horizons: tuple[HorizonRun, ...] = ()
    variants: tuple[VariantSummary, ...] = ()
    prompt_spreads: Mapping[int, Mapping[str, float]] = {}
    certificates: tuple[Outcome, ...] = ()
    findings: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()
    published_note: str = ""
    ranking: tuple[RankedEntry, ...] = ()
    warning_groups: Mapping[Severity, Sequence[str]] = {}


def _ignore(message: str) -> None:
    pass


def report(
    runs: Sequence[Path] | None = None,
    protocol: ProtocolName = "exact",
    published: bool = True,
    out: Path = Path("results/report"),
    formats: Sequence[str] = ("svg",),
    on_progress: Callable[[str], None] = _ignore,
) -> ReportResult:
    """Score runs and write a report.

    Writes to `out`: tables/, figures/, scores.parquet (unless all runs measure horizons),
    report.json, report.html, and reasoning/ if the page would be too large with all texts.

    runs: folders that are runs or contain some; by default, all runs under results/ except for
        the demo's (results/demo), unless there are no others.
    published: whether tables and figures also show the paper's values, marked as such; only if all
        runs are on the paper's questions or `v1`. CSV files never contain them.
    formats: of the figures in figures/: svg, png, pdf.
    on_progress: is called with a short message before each step.

    Raises BadInput if there is no run, if one cannot be read, or for another format.
    """
    # Deferred, because drawing libraries load slowly.
    from numbench.reporting.build import build

    return build(runs, protocol, published, out, formats, on_progress)


def compare(
    old: Path,
    new: Path,
    protocol: ProtocolName = "exact",
    fail_below: float | None = None,
    partial: bool = False,
    margin: float | None = None,
) -> Regression | HorizonRegression:
    """Compare run `new` with run `old`: is it significantly worse? Writes nothing.

    A task fails if the paired test, with Holm's correction over the tasks, shows that the new
    run is worse, and by more than `fail_below` points if this is given. With `margin`, a task
    fails instead unless a regression of more than `margin` points is excluded (one-sided test at
    the 5 % level). A task also fails if the new run does not include it or too few of the
    previously answered items; with `partial`, this is only a note.

    Two measurements of horizons are compared by their horizons, with Holm's correction over the
    tasks: a task fails if its horizon is significantly smaller. They take no points.

    Raises BadInput if the runs cannot be compared, or for `margin` together with `fail_below`.
    """
    from numbench.errors import BadInput
    from numbench.reporting.horizon_files import split_folders
    from numbench.reporting.horizon_regression import find_horizon_regression
    from numbench.reporting.regression import find_regression, run_folder

    old, new = run_folder(old), run_folder(new)
    scores, horizons = split_folders([old, new])
    if scores and horizons:
        raise BadInput(
            f"{horizons[0]} measures horizons, {scores[0]} does not: compare two of the same kind"
        )
    if horizons:
        if fail_below is not None or margin is not None:
            raise BadInput("--fail-below and --margin are points of a score; horizons have none")
        return find_horizon_regression(old, new, partial)
    return find_regression(old, new, protocol, fail_below, partial, margin)
