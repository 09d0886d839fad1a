"""The runs of plan.md, in its order."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

RESULTS = Path("results/multitask")


class Settings(NamedTuple):
    """How a run differs from recipe.toml. scale: a factor of all learning rates."""

    encoding: str
    scale: float = 1.0
    width: int = 128
    seed: int = 1


RUNS = {
    "bittoken-1": Settings("bittoken"),
    "fone-1": Settings("fone"),
    "digit-1": Settings("digit"),
    "aligned-1": Settings("aligned"),
    "no-reciprocal-1": Settings("bittoken-no-reciprocal"),
    "bittoken-x3-1": Settings("bittoken", scale=3.0),
    "fone-x3-1": Settings("fone", scale=3.0),
    "digit-x3-1": Settings("digit", scale=3.0),
    "xval-1": Settings("xval"),
    "wide-1": Settings("bittoken", width=256),
    "bittoken-2": Settings("bittoken", seed=2),
    "fone-2": Settings("fone", seed=2),
    "digit-2": Settings("digit", seed=2),
    "bittoken-3": Settings("bittoken", seed=3),
    "fone-3": Settings("fone", seed=3),
    "digit-3": Settings("digit", seed=3),
}
