"""Measurements of horizons, as a report shows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from numbench._version import __version__
from numbench.horizon.estimate import TaskHorizon
from numbench.journal.run_folder import read_run
from numbench.records import RunInfo
from numbench.reporting.names import folder_notes, level_rank, one_line
from numbench.scoring.horizon_outcomes import read_horizons
from numbench.tasks import SCALED_TASKS, TASKS

CONTROL = SCALED_TASKS["copy"].name
"""The task that only copies digits: where it fails, a model cannot read or write them."""


class HorizonRun(NamedTuple):
    """The horizons of a model at a reasoning level.

    path: the run folder. model, level: as displayed, on one line. created: ISO 8601. signature: the
    settings behind the horizons, in one line. horizons: task → horizon, in the order of the
    registry. note: distinguishes runs of the same model and level, otherwise empty. warnings: about
    the models that answered.
    """

    path: str
    model: str
    level: str
    created: str
    signature: str
    horizons: dict[str, TaskHorizon]
    note: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return `GPT 5 (minimal)`, with the note if there is one."""
        return f"{self.model} ({self.level}{f', {self.note}' if self.note else ''})"

    @property
    def control(self) -> TaskHorizon | None:
        """The horizon of copying; None if it was not measured or has no answers."""
        control = self.horizons.get(CONTROL)
        return control if control is not None and control.items else None


def order_runs(runs: Sequence[HorizonRun], models: Sequence[str] = ()) -> list[HorizonRun]:
    """Return the runs by model, in the order of `models` and then of appearance, and by level.

    Runs of the same model and level get their folders as notes.
    """
    order = list(dict.fromkeys([*models, *(run.model for run in runs)]))
    ordered = sorted(runs, key=lambda run: (order.index(run.model), level_rank(run.level)))
    names = [(run.model, run.level) for run in ordered]
    notes = folder_notes(names, [Path(run.path) for run in ordered])
    return [run._replace(note=note) for run, note in zip(ordered, notes, strict=True)]


def horizon_tasks(runs: Sequence[HorizonRun]) -> tuple[str, ...]:
    """Return the tasks of the runs, in the order of the registry; the control is the last one."""
    tasks = {task for run in runs for task in run.horizons}
    return tuple(sorted(tasks, key=list(TASKS).index))


def read_horizon_run(folder: Path) -> HorizonRun:
    """Return the horizons of a measurement, complete or not."""
    run, horizons = read_run(folder), read_horizons(folder)
    info = run.info
    return HorizonRun(
        path=folder.as_posix(),
        model=one_line(info.display),
        level=one_line(info.reasoning),
        created=info.created,
        signature=_signature(info),
        horizons={task: horizons[task] for task in TASKS if task in horizons},
        warnings=tuple(run.served.warnings),
    )


def _signature(info: RunInfo) -> str:
    """Describe how horizons were made, like `numbench.scoring.scored_run.signature`."""
    assert info.horizon
    parts = (
        ("numbench", __version__),
        ("horizon", f"{info.horizon.generator}, seed {info.horizon.question_seed}"),
        ("design", info.horizon.design),
        ("prompt", info.prompt.name),
        ("protocol", "exact"),
        *([("samples", str(info.samples))] if info.samples > 1 else []),
        ("model", info.model),
        ("reasoning", info.reasoning),
    )
    return one_line("|".join(f"{key}:{value}" for key, value in parts))
