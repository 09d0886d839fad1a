"""The page about five tasks at once: from invented runs, and recomputed from the stored ones."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest

from bittoken.encodings import ENCODINGS
from bittoken.recipe import load_recipe
from studies.multitask.__main__ import (
    MEASURES,
    TASKS,
    Run,
    at_better_rate,
    of_kind,
    read_runs,
    render,
    separation,
)
from studies.multitask.controls import AlignedBits
from studies.multitask.gpu import RECIPE, common_questions
from studies.multitask.runs import RESULTS, RUNS
from studies.multitask.train import evaluate, recipe_of
from tests.studies.files import assert_is_committed

ROOT = Path(__file__).parents[2]
STORED = ROOT / RESULTS
BUDGET = 40_000


def store(
    folder: Path, name: str, correct: Mapping[str, int], budget: int = BUDGET, score: float = 0.5
) -> None:
    """Store a run that learns linearly, and its scores out of 1,000, or 500 for an operator."""
    (folder / "runs" / name).mkdir(parents=True)
    parts: dict[str, dict[str, object]] = {task: {"exact": 0.0} for task in TASKS}
    lines = [json.dumps({"step": 0, "event": "started"})]
    for quarter in range(1, 5):
        for task in TASKS:
            parts[task] |= {"exact": quarter / 4, "score": score, "frontier": quarter, "levels": 9}
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


def page(folder: Path) -> str:
    return render(folder)["README.md"].decode()


def test_verdicts_need_every_seed_to_be_above(tmp_path: Path) -> None:
    sums = {
        "bittoken": [100, 120, 90], "fone": [300, 121, 400], "digit": [80, 110, 70], "xval": [0],
        "no-reciprocal": [130], "aligned": [400], "wide": [105],
        "bittoken-x3": [499], "fone-x3": [0], "digit-x3": [499],
    }  # fmt: skip
    for name in RUNS:
        kind, _, seed = name.rpartition("-")
        store(tmp_path, name, {"+": sums[kind][int(seed) - 1], "multiplication": 500},
              score=0.4 if "x3" in kind else 0.5)  # fmt: skip
    text = page(tmp_path)
    assert "| Add, sums | BitTokens trail | not separated |" in text
    assert "| Mult | not separated | not separated |" in text
    assert "| probability that either leads if equal | 1/10 | 1/10 |" in text
    assert (
        "| BitTokens, seed 2 | 50.0 | 99.0 | 99.0 | 99.0 | 24.0 | 80.0 | 50.0 | 50.0 | 5 of 9 |"
        in text
    )
    # Validations reach 50% at the second quarter, differences at the last.
    assert "| BitTokens, seed 2 | 20,000 | 20,000 | 20,000 | 20,000 | 40,000 | 20,000 |" in text
    # 130 and 100 of 500: intervals 22.3 to 30.0 and 16.7 to 23.7 overlap; 400 and 130 do not.
    assert "26.0 against 20.0: not separated" in text
    assert "80.0 against 26.0: above" in text
    assert "All planned runs are complete." in text


def test_runs_that_are_not_complete_are_named_and_one_seed_gives_no_verdict(tmp_path: Path) -> None:
    for name, sums in {"bittoken-1": 50, "fone-1": 200, "digit-1": 60}.items():
        store(tmp_path, name, {"+": sums})
    text = page(tmp_path)
    assert "| Add, sums | below | not separated |" in text
    assert "| probability that either leads if equal | no verdict | no verdict |" in text
    missing = ", ".join(name for name in RUNS if name not in ("bittoken-1", "fone-1", "digit-1"))
    assert f"Planned, but not complete in the time: {missing}." in text
    store(tmp_path, "xval-1", {}, budget=BUDGET // 2)
    with pytest.raises(ValueError, match="equally many questions"):
        render(tmp_path)


def test_the_better_rate_by_validation_counts(tmp_path: Path) -> None:
    for name in ("bittoken-1", "fone-1", "digit-1"):
        store(tmp_path, name, {"+": 50})
    store(tmp_path, "bittoken-x3-1", {"+": 400}, score=0.6)
    store(tmp_path, "digit-x3-1", {"+": 499}, score=0.4)
    assert "| Add, sums | above | above |" in page(tmp_path)
    assert "| BitTokens, rates × 3 and FoNE | BitTokens, rates × 3 and digits |" in page(tmp_path)


def test_the_recipes_differ_in_what_the_plan_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENCODINGS.data, "aligned", AlignedBits())  # type: ignore[attr-defined]
    recipes = {name: recipe_of(name) for name in RUNS}
    assert len({msgspec.json.encode(recipe.data) for recipe in recipes.values()}) == 1
    for name, recipe in recipes.items():
        trained = recipe.training
        assert (trained.questions, trained.seed) == (81_920, int(name[-1]))
        assert recipe.optimizer.scale == (3 if "x3" in name else 1)
        assert recipe.model.width == (256 if name.startswith("wide") else 128)


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
        assert [f"{minimum:.1f}", *exact] in [row[1:-2] for row in rows], path
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


def test_the_sentences_of_the_pages_hold() -> None:
    runs = read_runs(STORED)
    sums, differences, products = (
        {e: verdict_runs(runs, e, measure) for e in ("bittoken", "fone", "digit")}
        for measure in ("+", "-", "multiplication")
    )
    for of in (sums, differences):
        assert max(of["bittoken"]) < min(of["digit"] + of["fone"])
    assert sorted(value > 50 for value in sums["fone"]) == [False, False, True]
    assert min(products["bittoken"]) > max(products["digit"] + products["fone"])
    (aligned,), (plain,) = of_kind(runs, "aligned"), of_kind(runs, "no-reciprocal")
    assert separation(aligned, plain, "+") == "above"
    text = (ROOT / "docs" / "bittoken.md").read_text(encoding="utf-8")
    bullet = text.partition("- **[Five tasks at once]")[2].partition("\n- **")[0]
    page = (STORED / "README.md").read_text(encoding="utf-8")
    numbers = re.findall(r"\d[\d,]*(?:\.\d+)?(?=%| questions)", bullet)
    assert len(numbers) >= 8
    assert not [number for number in numbers if number not in page]


def verdict_runs(runs: list[Run], encoding: str, measure: str) -> list[float]:
    return [run.exact(measure) for run in at_better_rate(runs, encoding)]


def test_every_stored_run_has_the_recipe_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENCODINGS.data, "aligned", AlignedBits())  # type: ignore[attr-defined]
    for run in read_runs(STORED):
        name = f"{run.kind}-{run.seed}"
        stored = json.loads((STORED / "runs" / name / "recipe.json").read_text())
        assert stored == json.loads(msgspec.json.encode(recipe_of(name)))


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
