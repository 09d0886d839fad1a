"""Datasets drawn, and their difficulty held against the scores of models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def describe(dataset: str | Path, out: Path | None = None) -> list[Path]:
    """Draw what a dataset asks; return the files written under `out`.

    `dataset` is a folder or a name; `out` is `<dataset folder>/figures` by default. Each figure
    is drawn as png, pdf and svg, where the dataset has a task for it: pairs (magnitudes of two
    operands), lists (magnitude and spread), digits, difficulty and difficulty_base2. BadInput
    for a dataset that cannot be read or holds no item.
    """
    # Drawing libraries load slowly, and whoever imports this package may not draw.
    from bench.describe.build import describe_dataset

    return describe_dataset(dataset, out)


def difficulty_check(runs: Sequence[Path], out: Path) -> Path:
    """Whether scores fall as difficulty rises; returns `out`, the folder written.

    `runs` are folders with runs at or below, scored under the exact protocol. Writes
    difficulty_check.png, .pdf and .svg (score over difficulty, one panel per task), and .csv
    and .md (Spearman's rank correlations per task and model, and of the models' mean score).
    BadInput where there is no run, or nothing of it was answered.
    """
    from bench.describe.check import check_difficulty

    return check_difficulty(runs, out)


__all__ = ["describe", "difficulty_check"]
