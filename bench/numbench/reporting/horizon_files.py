"""Reading of horizon measurements from run folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from numbench._version import __version__
from numbench.journal import read_info
from numbench.records import RunInfo
from numbench.reporting.horizon_runs import HorizonRun, sorted_horizons
from numbench.reporting.table_model import one_line
from numbench.scoring.horizon_outcomes import read_horizons


class SplitFolders(NamedTuple):
    """Run folders by what they measure."""

    scores: list[Path]
    horizons: list[Path]


def split_folders(folders: Sequence[Path]) -> SplitFolders:
    """Return the runs on datasets and the measurements of horizons, each in the given order."""
    horizons = [folder for folder in folders if is_measurement(folder)]
    return SplitFolders([folder for folder in folders if folder not in horizons], horizons)


def is_measurement(folder: Path) -> bool:
    """Return whether a run measures horizons. Raises BadInput if there is no run."""
    return read_info(folder).horizon is not None


def read_horizon_run(folder: Path) -> HorizonRun:
    """Return the horizons of a measurement, complete or not."""
    info = read_info(folder)
    return HorizonRun(
        path=folder.as_posix(),
        name=info.model,
        model=one_line(info.display),
        reasoning=one_line(info.reasoning),
        source=info.source,
        created=info.created,
        samples=info.samples,
        signature=_signature(info),
        horizons=sorted_horizons(read_horizons(folder)),
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
