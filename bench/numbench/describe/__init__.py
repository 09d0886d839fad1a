"""Figures of a dataset's distributions, and of its difficulty against the scores of models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def describe(dataset: str | Path, out: Path | None = None) -> list[Path]:
    """Draw the distributions of a dataset; return the files written to `out`.

    dataset: a folder or a name. out: default `results/describe/NAME`. Each figure is written as
    png, pdf and svg: pairs (magnitudes of two operands) and lists (magnitude and spread) if the
    dataset has tasks for them, digits, difficulty, difficulty_base2. Raises BadInput if the dataset
    cannot be read or is empty.
    """
    # matplotlib loads slowly, and not every caller draws.
    from numbench.describe.dataset_figures import describe_dataset

    return describe_dataset(dataset, out)


def difficulty_check(runs: Sequence[Path], out: Path) -> Path:
    """Correlate scores with difficulty; return `out`, the folder written.

    runs: folders with runs at or below, scored under the exact protocol. Writes
    difficulty_check.png, .pdf and .svg (score over difficulty, one panel per task), and .csv and
    .md (Spearman's rank correlations per task and model, and of the models' mean score). Raises
    BadInput if there is no run, or no answer in them.
    """
    from numbench.describe.difficulty_correlation import write_difficulty_correlation

    return write_difficulty_correlation(runs, out)


__all__ = ["describe", "difficulty_check"]
