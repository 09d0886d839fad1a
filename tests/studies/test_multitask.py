"""The page about five tasks at once: from invented runs, and recomputed from the stored ones."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from bittoken.recipe import load_recipe
from studies.multitask.__main__ import MEASURES, TASKS, read_runs, render
from studies.multitask.controls import AlignedBits
from studies.multitask.gpu import RECIPE, common_questions
from studies.multitask.runs import FACTORS, RESULTS, RUNS, SWEPT, best_factor
from studies.multitask.train import evaluate, recipe_of
from tests.studies.files import assert_is_committed

ROOT = Path(__file__).parents[2]
STORED = ROOT / RESULTS
BUDGET = 40_000


def store(folder: Path, name: str, correct: Mapping[str, int], budget: int = BUDGET) -> None:
    """Store a run that learns linearly, and its scores out of 1,000, or 500 for an operator."""
    (folder / "runs" / name).mkdir(parents=True)
    parts: dict[str, dict[str, object]] = {task: {"exact": 0.0} for task in TASKS}
    lines = [json.dumps({"step": 0, "event": "started"})]
    for quarter in range(1, 5):
        for task in TASKS:
            parts[task] |= {"exact": quarter / 4, "frontier": quarter, "levels": 9}
        parts["addition"]["operators"] = {"+": quarter / 4, "-": quarter / 8}
        lines.append(json.dumps({"questions": budget * quarter // 4, "tasks": parts}))
    (folder / "runs" / name / "metrics.jsonl").write_text("\n".join(lines))
    tasks: dict[str, dict[str, object]] = {
        task: {"correct": correct.get(task, 990), "questions": 1000} for task in TASKS
    }
    counts = {"+": correct.get("+", 480), "-": correct.get("-", 400)}
    tasks["addition"]["operators"] = {
        operator: {"correct": count, "questions": 500} for operator, count in counts.items()
    }
    (folder / "runs" / name / "scores.json").write_text(json.dumps({"tasks": tasks}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a sweep, in which FoNE is best at three times the rates."""
    for encoding in SWEPT:
        for factor in FACTORS:
            log = tmp_path / "sweep" / f"{encoding}-x{factor:g}" / "metrics.jsonl"
            log.parent.mkdir(parents=True)
            last = 0.4 if (encoding == "fone") == (factor == 3) else 0.3
            entries = [{"a": {"score": score}, "b": {"score": 0.1}} for score in (0.9, last)]
            log.write_text("\n".join(json.dumps({"tasks": entry}) for entry in entries))
    return tmp_path


def page(folder: Path) -> str:
    return render(folder)["README.md"].decode()


def test_verdicts_need_every_seed_to_be_above(folder: Path) -> None:
    sums = {
        "bittoken": [100, 120, 90], "fone": [300, 121, 400], "digit": [80, 110, 70], "xval": [0],
        "no-reciprocal": [130], "aligned": [400], "wide": [105],
    }  # fmt: skip
    for name in RUNS:
        kind, _, seed = name.rpartition("-")
        store(folder, name, {"+": sums[kind][int(seed) - 1], "multiplication": 500})
    text = page(folder)
    assert "| Add, sums | BitTokens trail | not separated |" in text
    assert "| Mult | not separated | not separated |" in text
    assert "| probability that either leads if equal | 1/10 | 1/10 |" in text
    assert "| BitTokens, seed 2 | 50.0 | 99.0 | 99.0 | 99.0 | 24.0 | 80.0 | 50.0 | 5 of 9 |" in text
    # Validations reach 50% at the second quarter, differences at the last.
    assert "| BitTokens, seed 2 | 20,000 | 20,000 | 20,000 | 20,000 | 40,000 | 20,000 |" in text
    # 130 and 100 of 500: intervals 22.3 to 30.0 and 16.7 to 23.7 overlap; 400 and 130 do not.
    assert "26.0 against 20.0: not separated" in text
    assert "80.0 against 26.0: above" in text
    assert "All planned runs are complete." in text


def test_runs_that_are_not_complete_are_named_and_one_seed_gives_no_verdict(folder: Path) -> None:
    for name, sums in {"bittoken-1": 50, "fone-1": 200, "digit-1": 60}.items():
        store(folder, name, {"+": sums})
    text = page(folder)
    assert "| Add, sums | below | not separated |" in text
    assert "| probability that either leads if equal | no verdict | no verdict |" in text
    missing = ", ".join(name for name in RUNS if name not in ("bittoken-1", "fone-1", "digit-1"))
    assert f"Planned, but not complete in the time: {missing}." in text
    store(folder, "xval-1", {}, budget=BUDGET // 2)
    with pytest.raises(ValueError, match="equally many questions"):
        render(folder)


def test_the_sweep_decides_the_learning_rates(folder: Path) -> None:
    """The mean of the last scores counts: 0.25 or 0.2, whatever the first."""
    assert [best_factor(folder, encoding) for encoding in SWEPT] == [1.0, 3.0, 1.0]
    scales = {name: recipe_of(name, folder).optimizer.scale for name in RUNS}
    assert {name for name, scale in scales.items() if scale == 3} == {"fone-1", "fone-2", "fone-3"}
    recipes = [recipe_of(name, folder) for name in RUNS]
    assert len({(r.data, r.training.questions, r.training.batch_questions) for r in recipes}) == 1


def test_the_committed_page_follows_from_the_stored_runs() -> None:
    assert_is_committed(render(STORED), STORED)


def test_the_committed_scores_are_those_of_the_stored_runs() -> None:
    """Recompute the tables of the page from the files alone."""
    text = (STORED / "README.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    runs = sorted((STORED / "runs").glob("*/scores.json"))
    assert len(runs) >= 3
    operators = {"addition": ("+", "-")}
    sums = set()
    for path in runs:
        tasks = json.loads(path.read_text())["tasks"]
        exact = []
        for task in ("minmax", "interval", "sorting", "addition", "multiplication"):
            parts = [tasks[task]["operators"][o] for o in operators.get(task, ())] or [tasks[task]]
            exact += [f"{100 * part['correct'] / part['questions']:.1f}" for part in parts]
        minimum = min(100 * task["correct"] / task["questions"] for task in tasks.values())
        assert [f"{minimum:.1f}", *exact] in [row[1:-1] for row in rows], path
        log = [json.loads(line) for line in path.with_name("metrics.jsonl").open()]
        validations = [entry for entry in log if "tasks" in entry]
        reached = []
        for task in ("minmax", "interval", "sorting", "addition", "multiplication"):
            for operator in operators.get(task, ("",)):
                first = "not reached"
                for entry in reversed(validations):
                    of = entry["tasks"][task]
                    if (of["operators"][operator] if operator else of["exact"]) >= 0.5:
                        first = f"{entry['questions']:,}"
                reached.append(first)
        assert reached in [row[1:] for row in rows], path
        sums.add((validations[-1]["questions"], *validations[-1]["ratio"].values()))
    assert len(sums) == 1  # Every run saw the same number of questions of every task.


def test_every_stored_run_has_the_recipe_of_the_plan() -> None:
    for run in read_runs(STORED):
        name = f"{run.kind}-{run.seed}"
        stored = json.loads((STORED / "runs" / name / "recipe.json").read_text())
        recipe = recipe_of(name, STORED)
        assert stored["optimizer"]["scale"] == recipe.optimizer.scale
        assert stored["training"]["seed"] == run.seed
        assert tuple(stored["data"]["shares"]) == recipe.data.shares
        assert stored["model"]["encoding"] == recipe.model.encoding
        assert stored["model"]["width"] == recipe.model.width


def test_aligned_bits_keep_integers() -> None:
    values = np.array([0.0, 1.0, -1.0, 255.0, -65025.0, 2.0**53, 1e300, -np.inf])
    codes = AlignedBits().encode(values)
    limited = np.clip(values, -(2.0**53), 2.0**53)
    assert AlignedBits().decode(codes).tolist() == limited.tolist()
    assert codes[[3, 4], 0].view(np.uint64).tolist() == [255, 65025 + 2**63]


def test_the_gpu_run_gives_every_encoding_the_questions_that_fit() -> None:
    # A question takes 1/100 + 1/50 + 1/25 = 0.07 s in all three; 70 s are 1000, or 15 of 64.
    assert common_questions([100, 50, 25], 70.1, 64) == 15 * 64
    assert common_questions([100, 50, 25], 0.1, 64) == 64
    recipe = load_recipe(RECIPE)
    assert 256 <= recipe.model.width <= 512 and recipe.data.bits is None
    assert recipe.data.digits == 15 and len(set(recipe.data.shares)) == 1


def test_names_of_operators_are_those_of_the_benchmark() -> None:
    assert set(MEASURES) - {"+", "-"} == set(TASKS) - {"addition"}


@pytest.mark.slow
def test_an_evaluation_counts_the_correct_answers_of_each_task_and_operator(tmp_path: Path) -> None:
    run = tmp_path / "bittoken-1"
    shutil.copytree(ROOT / "bench/bittoken/checkpoints/small", run / "checkpoint")
    scores = evaluate(run, tmp_path / "bits8", size=20)
    counts = scores["tasks"]
    assert list(counts) == list(TASKS)
    assert all(each["questions"] == 20 and 14 <= each["correct"] <= 20 for each in counts.values())
    parts = counts["addition"]["operators"]
    assert list(parts) == ["+", "-"]
    for key in ("correct", "questions"):
        assert sum(part[key] for part in parts.values()) == counts["addition"][key]
    assert evaluate(run, tmp_path / "bits8", size=20) == scores
    assert re.fullmatch("[0-9a-f]{64}", scores["dataset"]["sha256"])
