"""Train and evaluate the networks of plan.md: python -m studies.multitask.train [RUN...].

Without RUN, all of them, in the order of the plan; complete ones are skipped, an interrupted one is
resumed. A run has a folder in results/multitask/runs with `recipe.json`, `metrics.jsonl` and, once
it is complete, `scores.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import numbench as nb
from bittoken.recipe import Recipe, load_recipe
from bittoken.train import train
from studies.multitask.controls import install
from studies.multitask.runs import RESULTS, RUNS

RECIPE = Path(__file__).with_name("recipe.toml")
TASKS = ("minmax", "interval", "sorting", "addition", "multiplication")
SIZE, SEED = 1000, 20261127
"""Questions per task in an evaluation, and the seed of its dataset."""


def recipe_of(name: str, settings: Sequence[str] = ()) -> Recipe:
    """Return the recipe of a run; `settings` override it, as in `bittoken train --set`."""
    run = RUNS[name]
    overrides = [
        f"name={name}", f"model.encoding={run.encoding}", f"model.width={run.width}",
        f"training.seed={run.seed}", f"optimizer.scale={run.scale}",
    ]  # fmt: skip
    return load_recipe(RECIPE, [*overrides, *settings])


def evaluate(
    folder: Path, dataset: Path, size: int = SIZE, tasks: Sequence[str] = TASKS,
    numbers: str = "8 bits",
) -> dict[str, Any]:  # fmt: skip
    """Answer fresh questions with the best checkpoint of a run; return its scores by operator.

    dataset: the folder of the questions, which are generated if it does not exist.
    """
    if not dataset.exists():
        nb.generate(dataset.name, tasks=tasks, size=size, seed=SEED, numbers=numbers, out=dataset)
    nb.run(model=f"checkpoint/{folder / 'checkpoint'}", dataset=dataset, out=folder / "answers")
    scores = nb.load_scores(folder / "answers").set_index("item_id")
    exact_match = scores["exact_match"].to_dict()
    source = nb.load_dataset(dataset)
    counts: dict[str, Any] = {}
    for task in tasks:
        exact = {item.id: int(exact_match[item.id]) for item in source.by_task[task]}
        operators = {item.id: item.operator for item in source.by_task[task]}
        counts[task] = {"correct": sum(exact.values()), "questions": len(exact)}
        if len(set(operators.values())) > 1:
            counts[task]["operators"] = {
                each: {
                    "correct": sum(exact[item] for item, of in operators.items() if of == each),
                    "questions": sum(of == each for of in operators.values()),
                }
                for each in sorted(set(operators.values()))
            }
    used = json.loads((folder / "answers" / "run.json").read_text(encoding="utf-8"))["dataset"]
    return {"dataset": {"name": used["name"], "sha256": used["sha256"]}, "tasks": counts}


def run(name: str, folder: Path, settings: Sequence[str] = (), size: int = SIZE) -> None:
    """Train and evaluate a run, unless it is complete."""
    out = folder / "runs" / name
    if (out / "scores.json").is_file():
        return
    if train(recipe_of(name, settings), out).is_complete:
        content = json.dumps(evaluate(out, folder / "runs" / "bits8", size), indent=1)
        (out / "scores.json").write_text(f"{content}\n", encoding="utf-8")


def main(names: Sequence[str], folder: Path = RESULTS) -> None:
    """Train and evaluate the named runs, or all."""
    torch.set_num_threads(1)
    install()
    for name in names or RUNS:
        run(name, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
