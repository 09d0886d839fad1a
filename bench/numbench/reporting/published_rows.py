"""Which runs are shown with the scores published in the paper, and the note below them."""

from __future__ import annotations

from collections.abc import Sequence

from numbench.dataset.store import RELEASED_DATASETS, Dataset
from numbench.scoring.published_labels import has_published_labels

MARK = "†"
"""Marks published scores beside runs on other questions."""

NOTE = f"{MARK} Other questions than v1, mostly harder: Div by an estimated 1 to 9 points."
"""The estimates of eleven configurations differ; see `docs/study.md`."""


def is_comparable(dataset: Dataset) -> bool:
    """Return whether reports show published scores next to runs on a dataset.

    It has the paper's questions, or is `v1`, where they have a mark and a note.
    """
    return _is_v1(dataset) or has_published_labels(dataset.path)


def published_note(datasets: Sequence[Dataset]) -> str:
    """Return the note below published scores beside runs on `v1`; empty without such a run."""
    return NOTE if any(map(_is_v1, datasets)) else ""


def _is_v1(dataset: Dataset) -> bool:
    return dataset.manifest.sha256 == RELEASED_DATASETS["v1"]
