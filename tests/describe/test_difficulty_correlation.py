"""The difficulty check: scores that enter, correlations, and the files written."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from numbench.describe import difficulty_check
from numbench.describe.difficulty_correlation import correlations, read_scores
from numbench.errors import BadInput
from numbench.reporting.difficulty_curves import BINS, binned_curves
from numbench.reporting.task_scores import POOLED_LABEL, RunScores, TaskScores
from numbench.study_import import import_study
from tests.reporting import runs

pytestmark = pytest.mark.slow


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """GPT 5, mixed (harder additions worse), and Other: one sorting wrong, one mean missing."""
    mixed = runs.mixed_run(tmp_path)
    responses = runs.all_right()
    responses["sorting-0"] = runs.said("sorting", 0, '{"answer": [2, 1]}')
    del responses["mean-1"]
    data = runs.dataset(tmp_path)
    return [mixed, runs.run(tmp_path / "runs" / "other", data, responses, display="Other")]


def series(base10: list[float], score: list[float]) -> RunScores:
    x = np.array(base10)
    return RunScores("m", "none", np.array(score), x, 2 * x)


def test_items_without_an_answer_are_left_out(two: list[Path]) -> None:
    tasks = {scores.task: scores for scores in read_scores(two)}
    mixed, other = tasks["addition"].runs
    assert (mixed.model, other.model) == ("GPT 5", "Other")
    assert mixed.base10.tolist() == [0, 1, 2] and mixed.base2.tolist() == [0, 2, 4]
    assert mixed.score[:2].tolist() == [100, 100] and mixed.score[2] < 100
    assert other.score.tolist() == [100] * 4


def test_the_mean_is_over_the_items_that_all_answered(two: list[Path]) -> None:
    tasks = {scores.task: scores for scores in read_scores(two)}
    pooled = tasks["addition"].pooled
    mixed = tasks["addition"].runs[0]
    assert pooled is not None and pooled.model == POOLED_LABEL
    assert pooled.base10.tolist() == [0, 1, 2]
    assert pooled.score == pytest.approx((mixed.score + 100) / 2)
    for task, remaining in (("multiplication", [1, 2, 3]), ("mean", [0, 2, 3])):
        pooled = tasks[task].pooled
        assert pooled is not None and pooled.base10.tolist() == remaining


def test_a_single_run_has_no_mean_over_models(two: list[Path]) -> None:
    assert all(scores.pooled is None for scores in read_scores(two[:1]))


def test_runs_of_different_tasks_have_their_own_panels(tmp_path: Path) -> None:
    data = runs.dataset(tmp_path)
    folders = [
        runs.run(tmp_path / "runs" / task, data, runs.all_right(), display=task, tasks=(task,))
        for task in ("mean", "addition")
    ]
    results = read_scores(folders)
    assert [(s.task, [r.model for r in s.runs], s.pooled) for s in results] == [
        ("addition", ["addition"], None),
        ("mean", ["mean"], None),
    ]


def test_the_tables_contain_rank_correlations(two: list[Path], tmp_path: Path) -> None:
    out = difficulty_check(two, tmp_path / "out")
    with open(out / "difficulty_check.csv", newline="") as file:
        rows = {(row["task"], row["model"]): row for row in csv.DictReader(file)}
    assert len(rows) == 9 * 3
    addition = rows["addition", "GPT 5"]
    # Scores 100, 100, less: ranks 2.5, 2.5, 1 against 1, 2, 3.
    assert addition["n"] == "3" and addition["rho_base10"] == addition["rho_base2"] == "-0.866"
    assert addition["chance"] == f"{1.96 / 2**0.5:.3f}"
    assert rows["addition", "Other"]["rho_base10"] == ""
    # Only the easiest was wrong: ranks 1, 3, 3, 3 against 1 … 4.
    assert rows["sorting", "Other"]["rho_base10"] == "0.775"
    assert rows["sorting", POOLED_LABEL]["rho_base10"] == "0.775"
    text = (out / "difficulty_check.md").read_text()
    assert "ρ, difficulty in base 10" in text and "-0.87" in text
    assert text.index("| Other") < text.index(f"| {POOLED_LABEL}")


def test_the_figure_has_the_same_bytes_when_drawn_again(two: list[Path], tmp_path: Path) -> None:
    one, again = (difficulty_check(two, tmp_path / name) for name in ("one", "again"))
    for form in ("png", "pdf", "svg"):
        drawn = (one / f"difficulty_check.{form}").read_bytes()
        assert len(drawn) > 10_000
        assert drawn == (again / f"difficulty_check.{form}").read_bytes()


def test_a_curve_averages_every_item_once() -> None:
    rng = np.random.default_rng(1)
    drawn = series(rng.integers(0, 50, 200).tolist(), (100.0 * rng.integers(0, 2, 200)).tolist())
    curve = binned_curves([TaskScores("sorting", (drawn,), None)])["sorting", 0]
    assert len(curve.score) == BINS
    assert (np.diff(curve.difficulty) > 0).all()
    assert ((curve.low < curve.score) & (curve.score < curve.high)).all()
    assert drawn.score.mean() == pytest.approx(curve.score.mean(), abs=2)


def test_a_curve_of_equal_difficulties_is_one_point() -> None:
    drawn = series([4, 4, 4, 4], [100, 100, 100, 20])
    curve = binned_curves([TaskScores("addition", (drawn,), None)])["addition", 0]
    assert curve.difficulty.tolist() == [4] and curve.score.tolist() == [80]
    assert curve.low[0] < 80 <= curve.high[0] <= 100


def test_runs_without_scored_answers_are_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        difficulty_check([tmp_path], tmp_path / "out")
    with pytest.raises(BadInput, match="no folder given: no scored answers"):
        difficulty_check([], tmp_path / "out")
    silent = runs.run(tmp_path / "silent", runs.dataset(tmp_path), {})
    with pytest.raises(BadInput, match="silent: no scored answers"):
        difficulty_check([silent], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_study_scores_fall_with_the_difficulty_of_the_papers_tasks(
    paper_results: Path, tmp_path: Path
) -> None:
    folders = import_study(paper_results, tmp_path, on_message=lambda _: None)
    pooled = {c.task: c for c in correlations(read_scores(folders)) if c.model == POOLED_LABEL}
    assert pooled["multiplication"].base10 == pytest.approx(-0.72, abs=0.02)
    assert pooled["division"].base10 == pytest.approx(-0.65, abs=0.02)
    assert pooled["mean"].base10 == pytest.approx(-0.67, abs=0.02)
    # Failed requests of the study do not count.
    assert {task: c.n for task, c in pooled.items()} == {
        "minmax": 499, "interval": 498, "sorting": 498, "addition": 498, "multiplication": 499,
        "division": 493, "exponentiation": 497, "mean": 499, "std": 477,
    }  # fmt: skip
