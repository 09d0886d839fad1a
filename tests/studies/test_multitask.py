"""The page about five tasks at once, from invented trainings; and one evaluation."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from studies.multitask.__main__ import BUDGET, SEEDS, render
from studies.multitask.evaluate import TASKS, evaluate

ROOT = Path(__file__).parents[2]


def store(
    folder: Path, run: str, end: int = BUDGET, correct: Mapping[str, int] | None = None
) -> None:
    """Store a training that learns linearly until `end`, and its scores out of 2,000."""
    (folder / run).mkdir()
    entries: list[dict[str, object]] = [{"step": 0, "event": "started"}]
    for tenth in range(1, 11):
        questions = end * tenth // 10
        mean = {"tasks": {}, "harmonic_mean": 0.95 * questions / BUDGET}
        entries.append({"step": tenth, "questions": questions, **mean})
    text = "".join(json.dumps(entry) + "\n" for entry in entries)
    (folder / run / "metrics.jsonl").write_text(text)
    if correct:
        tasks = {task: {"correct": n, "questions": 2000} for task, n in correct.items()}
        (folder / run / "scores.json").write_text(json.dumps({"tasks": tasks}))


def store_all(folder: Path, minimum: Mapping[str, list[int]]) -> None:
    """Store all declared trainings, with 1,990 correct answers but for Mult, the minimum."""
    for encoding, seeds in SEEDS.items():
        for seed, correct in zip(seeds, minimum[encoding], strict=True):
            scores = {**dict.fromkeys(TASKS, 1990), "multiplication": correct}
            store(folder, f"{encoding}-{seed}", correct=scores)


def page(folder: Path) -> str:
    """Return the page."""
    return render(folder)["README.md"].decode()


def test_verdicts_need_every_seed_to_be_above(tmp_path: Path) -> None:
    minimum = {"bittoken": [1900, 1920, 1880], "fone": [1700, 1800, 1879], "digit": [1880, 1000]}
    store_all(tmp_path, {**minimum, "xval": [3]})
    text = page(tmp_path)
    assert "compared with FoNE: BitTokens lead; digits: not separated.**" in text
    assert "| minimum of the five tasks | BitTokens lead | not separated |" in text
    assert "| Mult | BitTokens lead | not separated |" in text
    assert "| Add | not separated | not separated |" in text
    assert "| BitTokens, seed 3 | 94.0 | 99.5 | 99.5 | 99.5 | 99.5 | 94.0 |" in text
    assert "599,961 | 999,936 |" in text  # 50% and 90% of the harmonic mean
    assert "All declared trainings are complete." in text
    assert "| probability that either leads if equal | 1/10 | 1/5 |" in text


def test_other_encodings_may_lead(tmp_path: Path) -> None:
    minimum = {"bittoken": [1700, 1720, 1690], "fone": [1800, 1801, 1802], "digit": [1600, 1650]}
    store_all(tmp_path, {**minimum, "xval": [3]})
    assert "compared with FoNE: BitTokens trail; digits: BitTokens lead.**" in page(tmp_path)


def test_trainings_that_are_not_complete_are_named_and_do_not_count(tmp_path: Path) -> None:
    minimum = {"bittoken": [1900, 1920, 1880], "fone": [1700, 1950, 1850], "digit": [1500, 1900]}
    store_all(tmp_path, {**minimum, "xval": [3]})
    shutil.rmtree(tmp_path / "fone-2")
    (tmp_path / "digit-2" / "scores.json").unlink()
    shutil.rmtree(tmp_path / "bittoken-3")
    store(tmp_path, "bittoken-3", end=500_000, correct=dict.fromkeys(TASKS, 3))
    text = page(tmp_path)
    missing = "BitTokens, seed 3; FoNE, seed 2; digits, seed 2."
    assert f"Declared, but not trained for lack of time: {missing}" in text
    assert "| minimum of the five tasks | BitTokens lead | BitTokens lead |" in text
    assert "| probability that either leads if equal | 1/3 | 2/3 |" in text


@pytest.mark.slow
def test_an_evaluation_counts_the_correct_answers_of_each_task(tmp_path: Path) -> None:
    training = tmp_path / "bittoken-1"
    shutil.copytree(ROOT / "bench/bittoken/checkpoints/small", training / "checkpoint")
    scores = evaluate(training, size=20)
    counts = scores["tasks"]
    assert isinstance(counts, dict) and list(counts) == list(TASKS)
    assert all(
        count["questions"] == 20 and 14 <= count["correct"] <= 20 for count in counts.values()
    )
    assert evaluate(training, size=20) == scores
