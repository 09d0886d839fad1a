"""Reading of runs for a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from numbench.dataset.store import Dataset
from numbench.errors import BadInput, MissingTask
from numbench.journal.run_folder import INFO, find_runs, read_info
from numbench.published import published_models
from numbench.records import ProtocolName
from numbench.reporting.compare import read_baseline
from numbench.reporting.data import ReportData
from numbench.reporting.horizon_runs import order_runs, read_horizon_run
from numbench.reporting.names import one_line, variant_name
from numbench.reporting.values import Configuration, RunValues
from numbench.scoring import ScoredRun, score_run
from numbench.scoring.scored_run import Completeness

DEFAULT_RUNS = Path("results")
"""Where a report looks for runs if none are named."""
DEMO_RUNS = DEFAULT_RUNS / "demo"
"""The demo's runs, which are shown next to others only if named."""


def read_report_data(
    runs: Sequence[Path] | None,
    protocol: ProtocolName = "exact",
    references: bool = True,
    on_progress: Callable[[str], None] = lambda message: None,
) -> ReportData:
    """Score the runs and measurements in `runs`, and return what their report is made from.

    Files among `runs` are baselines. Runs of a task that is not installed are left out, with a
    warning, unless there are no others.
    """
    files = [path for path in runs or () if path.is_file() and path.name != INFO]
    others = None if runs is None else [path for path in runs if path not in files]
    folders = find_run_folders(others, on_progress)
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
    baselines = [_baseline_reference(file, protocol, scored) for file in files]
    return ReportData(
        scored, order_runs(horizons, published_models()), references, skipped, baselines
    )


def _baseline_reference(
    file: Path, protocol: ProtocolName, runs: Sequence[ScoredRun]
) -> Configuration:
    """Return a baseline as a reference of runs on its dataset, with their tasks.

    Raises BadInput if there is none, or for scores of another protocol.
    """
    run, info, values, *_ = read_baseline(file, protocol, [run.dataset for run in runs])
    alike = [run for run in runs if run.dataset.manifest.sha256 == values.dataset]
    if not alike:
        raise BadInput(f"{file}: no run on its dataset, {run.dataset}; name one to compare it with")
    items, tasks = alike[0].dataset.by_task, {task for run in alike for task in run.rows}
    known = {task: of_task for task, of_task in values.tasks.items() if task in tasks}
    counts = {task: (len(of_task.score), len(items[task])) for task, of_task in known.items()}
    note = one_line(", ".join(filter(None, (variant_name(info), file.stem))))
    return Configuration(
        one_line(info.display), one_line(info.reasoning), note, "baseline", run.dataset,
        RunValues(values.dataset, known), completeness=Completeness(counts),
    )  # fmt: skip


def score_runs(
    folders: Sequence[Path],
    protocol: ProtocolName,
    on_progress: Callable[[str], None] = lambda message: None,
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
    runs: Sequence[Path] | None, on_message: Callable[[str], None] = lambda message: None
) -> list[Path]:
    """Return the run folders in `runs`, each once. Raises BadInput if a path has none.

    By default those under results/, without the demo's unless there are no others; on_message
    receives a note if they are left out.
    """
    if runs is not None:
        return find_runs(runs)
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
