"""The runs of plan.md, and what its sweep of learning rates chose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path("results/multitask")

FACTORS = (1.0, 3.0)
SWEPT = ("bittoken", "fone", "digit")

_BITTOKEN = {"encoding": "bittoken", "rate": "bittoken"}
RUNS: dict[str, dict[str, Any]] = {
    "bittoken-1": {**_BITTOKEN, "seed": 1},
    "fone-1": {"encoding": "fone", "rate": "fone", "seed": 1},
    "digit-1": {"encoding": "digit", "rate": "digit", "seed": 1},
    "xval-1": {"encoding": "xval", "rate": "", "seed": 1},
    "no-reciprocal-1": {**_BITTOKEN, "encoding": "bittoken-no-reciprocal", "seed": 1},
    "aligned-1": {**_BITTOKEN, "encoding": "aligned", "seed": 1},
    "wide-1": {**_BITTOKEN, "seed": 1, "width": 256},
    "bittoken-2": {**_BITTOKEN, "seed": 2},
    "fone-2": {"encoding": "fone", "rate": "fone", "seed": 2},
    "digit-2": {"encoding": "digit", "rate": "digit", "seed": 2},
    "bittoken-3": {**_BITTOKEN, "seed": 3},
    "fone-3": {"encoding": "fone", "rate": "fone", "seed": 3},
    "digit-3": {"encoding": "digit", "rate": "digit", "seed": 3},
}
"""The runs, in their order. rate: the encoding whose sweep decides the learning rates.

The first seed of a swept encoding is the better training of its sweep.
"""


def sweep_folder(folder: Path, encoding: str, factor: float) -> Path:
    """Return the folder of a training of the sweep."""
    return folder / "sweep" / f"{encoding}-x{factor:g}"


def sweep_score(folder: Path) -> float:
    """Return what decides the sweep: the mean of the tasks' scores in the last validation."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    scores = [task["score"] for task in json.loads(lines[-1])["tasks"].values()]
    return float(sum(scores) / len(scores))


def best_factor(folder: Path, encoding: str) -> float:
    """Return the factor of the learning rates that the sweep chose; 1 where none was made."""
    if encoding not in SWEPT:
        return 1.0
    return max(FACTORS, key=lambda factor: sweep_score(sweep_folder(folder, encoding, factor)))


def is_from_sweep(name: str) -> bool:
    """Return whether a run is a training of the sweep."""
    return name.rpartition("-")[0] in SWEPT and RUNS[name]["seed"] == 1
