"""Names of runs: on one line, and distinguishable from each other."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Sequence
from pathlib import Path

from numbench.records import PAPER, RunInfo
from numbench.scoring import ScoredRun
from numbench.scoring.scored_run import few_shot_count

LEVELS = ("maximal", "high", "medium", "low", "minimal", "none")
"""Reasoning levels, highest first."""


def one_line(text: str) -> str:
    """Return an untrusted name on one line: control and format characters become spaces."""
    clean = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text)
    return " ".join(clean.split()) or "unnamed"


def level_rank(level: str) -> int:
    """Return the index of a reasoning level in `LEVELS`, their number if it is unknown."""
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)


def dataset_label(run: ScoredRun) -> str:
    """Return `v1@3f9c2a`: the dataset's name and the first six digits of its hash."""
    return one_line(f"{run.dataset.name}@{run.dataset.manifest.sha256[:6]}")


def variant_name(info: RunInfo) -> str:
    """Return the wording, form and examples of a run; empty if they are the paper's."""
    prompt, shots = info.prompt.name, few_shot_count(info)
    parts = ("" if prompt == PAPER else prompt, info.transform, f"{shots}-shot" if shots else "")
    return one_line(", ".join(filter(None, parts))) if any(parts) else ""


def folder_notes(names: Sequence[Hashable], folders: Sequence[Path]) -> list[str]:
    """Return, for each run whose name another one has, its folder; otherwise an empty text."""
    notes = []
    for name, folder in zip(names, folders, strict=True):
        alike = [other.name for other, known in zip(folders, names, strict=True) if known == name]
        path = folder.name if alike.count(folder.name) == 1 else folder.as_posix()
        notes.append(one_line(path) if len(alike) > 1 else "")
    return notes
