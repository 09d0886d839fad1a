"""Stored runs with given scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bittoken.training.recipe import Recipe
from experiments.results_store import NamedHash, ScoreEstimate, TaskScore, TrainingScores
from numbench.jsonl import write_json

TaskScores = Mapping[str, tuple[float, float | None]]
"""Exact match and log-sMAPE of each task."""


def store_scores(
    folder: Path,
    recipe: Recipe,
    tasks: TaskScores | None = None,
    *,
    dataset_sha256: str = "abcdef" * 10,
    tokens_a_question: float = 47.1,
) -> TrainingScores:
    """Write the results of a run into its folder."""
    tasks = {"minmax": (50.0, None)} if tasks is None else tasks
    scores = TrainingScores(
        run=recipe.name,
        tasks={
            task: TaskScore(500, estimate(exact), None if smape is None else estimate(smape))
            for task, (exact, smape) in tasks.items()
        },
        dataset=NamedHash("short", dataset_sha256),
        prompt=NamedHash("paper", "fedcba" * 10),
        protocol="exact",
        model_sha256="012345" * 10,
        parameters=1_600_000,
        tokens=4_990_000,
        seconds=1234.4,
        tokens_a_question=tokens_a_question,
        best_step=64,
        device="a_test CPU, 2 cores",
        threads=1,
        torch="2.0",
        version="0.1.0",
        recipe=recipe,
    )
    write_json(folder / "scores.json", scores)
    entries = [
        {"step": step, "tokens": 2048 * step, "tasks": {task: {"score": 0.1} for task in tasks}}
        for step in (64, 128)
    ]
    text = "\n".join(json.dumps(entry) for entry in entries) + "\n"
    (folder / "metrics.jsonl").write_text(text)
    return scores


def estimate(value: float) -> ScoreEstimate:
    return ScoreEstimate(value, value - 2, value + 2)
