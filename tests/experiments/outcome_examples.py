"""Invented logs and outcomes of trainings on short integers, and the check of committed pages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bittoken.training.recipe import Recipe
from experiments.sample_complexity.outcomes import Cost, Outcome
from numbench.jsonl import write_json

BUDGET = 524_288


def log(task: str, exact: Sequence[float]) -> list[dict[str, object]]:
    return [
        {
            "step": 16 * n,
            "questions": 4096 * n,
            "tokens": 7 * 4096 * n,
            "cpu_seconds": 2.0 * n,
            "tasks": {task: {"exact": score}},
        }
        for n, score in enumerate(exact, 1)
    ]


def seed(number: int, questions: int | None, exact: float = 0.95) -> Outcome:
    """Return the outcome of a seed that reached 90 % after some questions, or never."""
    end = Cost(questions or BUDGET, 7 * (questions or BUDGET), 100.0)
    cost = end if questions else None
    return Outcome(number, {0.5: cost, 0.9: cost}, end, exact, ())


def store(folder: Path, recipe: Recipe, exact: Sequence[float]) -> None:
    folder.mkdir(parents=True)
    write_json(folder / "recipe.json", recipe)
    lines = [json.dumps({"step": 0, "event": "started"})]
    lines += [json.dumps(entry) for entry in log(recipe.data.tasks[0], exact)]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")


def assert_is_committed(files: Mapping[str, bytes], folder: Path) -> None:
    """Check that generated files are those in the folder, figures by labels and markers only."""
    for name, data in files.items():
        committed = (folder / name).read_bytes()
        if name.endswith(".svg"):
            # The other bytes depend on the version of matplotlib.
            assert labels(committed) == labels(data), name
            assert positions(committed) == pytest.approx(positions(data), abs=0.1), name
        else:
            assert committed == data, name


def labels(svg: bytes) -> list[str]:
    return re.findall(r"<!-- (.*) -->", svg.decode())


def positions(svg: bytes) -> list[float]:
    """Return the coordinates of all markers."""
    return [float(x) for x in re.findall(r' [xy]="(-?[\d.]+)"', svg.decode())]
