"""The scores of six configurations of the study, item by item, by exact answers."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from numbench.dataset.audit import audit
from numbench.dataset.store import Dataset
from numbench.records import Item, Score
from numbench.reporting.entries import measure
from numbench.scoring import score_run
from numbench.scoring.scored_run import counted_rows
from numbench.study_import import import_study

CONFIGURATIONS = (
    "gemini-2.5-flash_none",
    "gemini-2.5-pro_minimal",
    "gpt-5_minimal",
    "gpt-oss-120b_maximal",
    "llama-4-maverick_none",
    "qwen3-235b-2507_none",
)
"""Run folders of the configurations that these pages are about."""

Config = tuple[str, str]
"""Displayed name of a model and reasoning level."""


class ItemScores(NamedTuple):
    """The answered items of a task, and their scores in [0, 1].

    log_smape: None for the tasks that it does not score.
    """

    items: tuple[Item, ...]
    exact_match: tuple[float, ...]
    log_smape: tuple[float, ...] | None


StudyScores = Mapping[Config, Mapping[str, ItemScores]]
"""Configuration → task → scores, in the order of the published tables."""


class Study(NamedTuple):
    """The study's scores, its items by task, and the number of its labels that are wrong."""

    scores: StudyScores
    items: Mapping[str, Sequence[Item]]
    wrong_labels: int


def read_study_scores(folder: Path) -> StudyScores:
    """Return the scores of the responses in the study's files.

    Raises BadInput like `import_study`.
    """
    return read_study(folder).scores


def read_study(folder: Path) -> Study:
    """Return the scores and items in the study's files. Raises BadInput like `import_study`."""
    with tempfile.TemporaryDirectory() as runs:
        scored = [score_run(path) for path in import_configurations(folder, Path(runs))]
        dataset = Dataset(Path(runs) / "dataset")
        scores = {
            (run.entry.name, run.entry.reasoning): {
                task: _item_scores(
                    [(row.item, row.score) for row in counted_rows(run.scored, task)]
                )
                for task in run.scored.rows
            }
            for run in measure(scored)
        }
        wrong = sum(map(len, audit(folder).wrong.values()))
        return Study(scores, dict(dataset.by_task), wrong)


def import_configurations(folder: Path, runs: Path) -> list[Path]:
    """Import the study's files to `runs` and return the run folders of `CONFIGURATIONS`."""
    imported = import_study(folder, runs, lambda _: None)
    return [path for path in imported if path.name in CONFIGURATIONS]


def _item_scores(rows: list[tuple[Item, Score]]) -> ItemScores:
    accuracies = [score.log_smape for _, score in rows]
    known = [accuracy for accuracy in accuracies if accuracy is not None]
    return ItemScores(
        tuple(item for item, _ in rows),
        tuple(float(score.exact_match) for _, score in rows),
        tuple(known) if known and len(known) == len(rows) else None,
    )
