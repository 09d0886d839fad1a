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
from bittoken.train import read_validations, train
from studies.multitask.controls import install

RESULTS = Path("results/multitask")
RECIPE = Path(__file__).with_name("recipe.toml")
TASKS = ("minmax", "interval", "sorting", "addition", "multiplication")
SIZE, SEED = 1000, 20261127
"""Questions per task in an evaluation, and the seed of its dataset."""

FACTORS = (1.0, 3.0)
SWEEP_SEED, SWEEP_QUESTIONS = 101, 16_384
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
"""The runs, in their order. rate: the encoding whose sweep decides the learning rates."""


def sweep_folder(folder: Path, encoding: str, factor: float) -> Path:
    """Return the folder of a training of the sweep."""
    return folder / "sweep" / f"{encoding}-x{factor:g}"


def sweep_score(folder: Path) -> float:
    """Return what decides the sweep: the mean of the last two harmonic means of the scores."""
    means = [entry["harmonic_mean"] for entry in read_validations(folder)[-2:]]
    return float(sum(means) / len(means))


def best_factor(folder: Path, encoding: str) -> float:
    """Return the factor of the learning rates that the sweep chose; 1 where none was made."""
    if encoding not in SWEPT:
        return 1.0
    return max(FACTORS, key=lambda factor: sweep_score(sweep_folder(folder, encoding, factor)))


def recipe_of(name: str, folder: Path, settings: Sequence[str] = ()) -> Recipe:
    """Return the recipe of a run; `settings` override it, as in `bittoken train --set`."""
    run = RUNS[name]
    overrides = [
        f"name={name}",
        f"model.encoding={run['encoding']}",
        f"training.seed={run['seed']}",
    ]
    overrides += [f"optimizer.scale={best_factor(folder, run['rate'])}"]
    overrides += [f"model.width={run.get('width', 128)}"]
    return load_recipe(RECIPE, [*overrides, *settings])


def sweep(folder: Path, settings: Sequence[str] = ()) -> None:
    """Train the short runs that choose the learning rates of each encoding."""
    for encoding in SWEPT:
        for factor in FACTORS:
            overrides = [
                f"name={encoding}-x{factor:g}", f"model.encoding={encoding}",
                f"optimizer.scale={factor}", f"training.seed={SWEEP_SEED}",
                f"training.questions={SWEEP_QUESTIONS}",
            ]  # fmt: skip
            train(
                load_recipe(RECIPE, [*overrides, *settings]), sweep_folder(folder, encoding, factor)
            )


def evaluate(folder: Path, dataset: Path, size: int = SIZE) -> dict[str, Any]:
    """Answer fresh questions with the best checkpoint of a run; return its scores by operator."""
    if not dataset.exists():
        nb.generate("bits8", tasks=TASKS, size=size, seed=SEED, numbers="8 bits", out=dataset)
    nb.run(model=f"checkpoint/{folder / 'checkpoint'}", dataset=dataset, out=folder / "answers")
    scores = nb.load_scores(folder / "answers").set_index("item_id")
    source = nb.load_dataset(dataset)
    tasks: dict[str, Any] = {}
    for task in TASKS:
        exact = {item.id: int(scores.loc[item.id, "exact_match"]) for item in source.by_task[task]}
        operators = {item.id: item.operator for item in source.by_task[task]}
        tasks[task] = {"correct": sum(exact.values()), "questions": len(exact)}
        if len(set(operators.values())) > 1:
            tasks[task]["operators"] = {
                each: {
                    "correct": sum(exact[item] for item, of in operators.items() if of == each),
                    "questions": sum(of == each for of in operators.values()),
                }
                for each in sorted(set(operators.values()))
            }
    used = json.loads((folder / "answers" / "run.json").read_text(encoding="utf-8"))["dataset"]
    return {"dataset": {"name": used["name"], "sha256": used["sha256"]}, "tasks": tasks}


def run(name: str, folder: Path, settings: Sequence[str] = (), size: int = SIZE) -> None:
    """Train and evaluate a run, unless it is complete."""
    out = folder / "runs" / name
    if (out / "scores.json").is_file():
        return
    if train(recipe_of(name, folder, settings), out).is_complete:
        content = json.dumps(evaluate(out, folder / "runs" / "bits8", size), indent=1)
        (out / "scores.json").write_text(f"{content}\n", encoding="utf-8")


def main(names: Sequence[str], folder: Path = RESULTS) -> None:
    """Train the sweep and the named runs, or all."""
    torch.set_num_threads(1)
    install()
    sweep(folder)
    for name in names or RUNS:
        run(name, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
