"""Reading of runs for a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from numbench.dataset.store import Dataset
from numbench.errors import BadInput, MissingTask
from numbench.journal.run_folder import find_runs, read_info
from numbench.published import published_models
from numbench.records import ProtocolName
from numbench.reporting.data import ReportData
from numbench.reporting.horizon_runs import order_runs, read_horizon_run
from numbench.scoring import ScoredRun, score_run

DEFAULT_RUNS = Path("results")
"""Where a report looks for runs if none are named."""
DEMO_RUNS = DEFAULT_RUNS / "demo"
"""The demo's runs, which are shown next to others only if named."""


def _ignore(message: str) -> None:
    pass


def read_report_data(
    runs: Sequence[Path] | None,
    protocol: ProtocolName = "exact",
    references: bool = True,
    on_progress: Callable[[str], None] = _ignore,
) -> ReportData:
    """Score the runs and measurements in `runs`, and return what their report is made from.

    Runs of a task that is not installed are left out, with a warning, unless there are no others.
    """
    folders = find_run_folders(runs, on_progress)
    measurements = [folder for folder in folders if read_info(folder).horizon is not None]
    scored, skipped = score_runs(
        [folder for folder in folders if folder not in measurements], protocol, on_progress
    )
    if skipped and not scored and not measurements:
        raise BadInput(skipped[0])
    horizons = []
    for number, folder in enumerate(measurements, 1):
        on_progress(f"reading sizes of {number} of {len(measurements)}: {folder}")
        horizons.append(read_horizon_run(folder))
    return ReportData(scored, order_runs(horizons, published_models()), references, skipped)


def score_runs(
    folders: Sequence[Path], protocol: ProtocolName, on_progress: Callable[[str], None] = _ignore
) -> tuple[list[ScoredRun], list[str]]:
    """Return scored runs, and a sentence about each run of a task that is not installed."""
    scored, skipped = [], []
    # Runs on one dataset share its questions, which take more memory than short answers.
    datasets: dict[tuple[str, str], Dataset] = {}
    for number, folder in enumerate(folders, 1):
        on_progress(f"scoring run {number} of {len(folders)}: {folder}")
        try:
            reference = read_info(folder).dataset
            known = datasets.get(key := (reference.name, reference.sha256))
            scored.append(score_run(folder, protocol, known))
            datasets[key] = scored[-1].dataset
        except MissingTask as error:
            skipped.append(f"{error}; the run is left out")
    return scored, skipped


def find_run_folders(
    runs: Sequence[Path] | None, on_message: Callable[[str], None] = _ignore
) -> list[Path]:
    """Return the run folders in `runs`, each once. Raises BadInput if a path has none.

    By default those under results/, without the demo's unless there are no others; on_message
    receives a note if they are left out.
    """
    if runs is not None:
        return list(dict.fromkeys(folder for path in runs for folder in find_runs([path])))
    if not DEFAULT_RUNS.is_dir() or not any(DEFAULT_RUNS.rglob("run.json")):
        raise BadInput(
            f"no runs found under {DEFAULT_RUNS}/: run `numbench run --model ...` first, or name "
            "run folders: `numbench report RUN ...`"
        )
    found = find_runs([DEFAULT_RUNS])
    folders = [folder for folder in found if not folder.is_relative_to(DEMO_RUNS)]
    if not folders:
        return found
    if len(folders) < len(found):
        on_message(
            f"the demo's runs in {DEMO_RUNS} are left out; all runs: numbench report {DEFAULT_RUNS}"
        )
    return folders
