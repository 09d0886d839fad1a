"""Cells of a default report, recomputed from the scores by item with numpy and SciPy alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import numbench as nb
from numbench.api import report as report_runs

ROOT = Path(__file__).parents[2]
LIMIT = 60
COMPARED = (("GPT 5", "minimal"), ("Gemini 2.5 Pro", "maximal"), ("Llama 4 Maverick", "none"))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on a baseline that answers the first questions of each task."""
    folder = tmp_path_factory.mktemp("cells")
    run = nb.run("baseline/float32", dataset="paper", limit=LIMIT, out=folder / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("numbench.reporting.figures.FIGURES", ())
        report_runs(run.path, out=folder / "report")
    return folder / "report"


@pytest.fixture(scope="module")
def tables(report: Path) -> dict[str, list[dict[str, Any]]]:
    content: dict[str, Any] = json.loads((report / "report.json").read_text())
    return content["tables"]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def scores(report: Path) -> pd.DataFrame:
    """Model, level, task, item and score in percent, of the run and of the references."""
    own = pd.read_parquet(report / "scores.parquet")
    others = pd.read_parquet(ROOT / "datasets/paper/scores.parquet")
    others = others.assign(model=others["display"], reasoning=others["level"])
    both = pd.concat([own, others])[lambda frame: frame["exact_match"].notna()]
    exact = both["exact_match"].astype(float)
    return both.assign(score=100 * both["log_smape"].fillna(exact))


def values(scores: pd.DataFrame, model: str, level: str, task: str) -> pd.Series[float]:
    known = scores[(scores.model == model) & (scores.reasoning == level) & (scores.task == task)]
    return known.set_index("item_id")["score"]


def wilson_with_effective_size(percent: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Wilson's interval for as many yes-or-no answers as have the standard error of the scores."""
    share, n = percent / 100, len(percent)
    padded = np.append(share, [0, 1])
    of_binary = padded.mean() * (1 - padded.mean())
    effective = n * of_binary / padded.var()
    p, z = share.mean(), stats.norm.ppf(0.975)
    center = (p + z**2 / (2 * effective)) / (1 + z**2 / effective)
    half = z / (1 + z**2 / effective)
    half *= np.sqrt(p * (1 - p) / effective + z**2 / (4 * effective**2))
    return 100 * (center - half), 100 * (center + half)


def test_scores_and_their_intervals(tables: dict[str, Any], scores: pd.DataFrame) -> None:
    checked = 0
    for row in tables["log_smape"]:
        if (row["model"], row["level"]) not in (*COMPARED, ("float32 arithmetic", "none")):
            continue
        means = []
        for task in ("addition", "multiplication", "division", "exponentiation", "mean", "std",
                     "minmax", "interval", "sorting"):  # fmt: skip
            known = values(scores, row["model"], row["level"], task).to_numpy()
            means.append(known.mean())
            assert row[task]["value"] == pytest.approx(known.mean())
            if 10 < known.mean() < 90:
                low, high = wilson_with_effective_size(known)
                assert (row[task]["low"], row[task]["high"]) == pytest.approx((low, high))
                checked += 1
        assert row["all"]["value"] == pytest.approx(np.mean(means))
    assert checked >= 20


def pair(scores: pd.DataFrame, other: tuple[str, str], task: str) -> np.ndarray[Any, Any]:
    """The differences on the questions that both answer."""
    first = values(scores, "float32 arithmetic", "none", task)
    both = pd.concat([first, values(scores, *other, task)], axis=1, join="inner")
    differences = np.asarray(both.iloc[:, 0] - both.iloc[:, 1])
    return np.where(np.abs(differences) < 1e-7, 0.0, differences)


def p_value(differences: np.ndarray[Any, Any]) -> float:
    sizes = np.unique(np.abs(differences[differences != 0]))
    if len(sizes) <= 1:
        counts = (differences > 0).sum(), (differences < 0).sum()
        return float(stats.binomtest(min(counts), sum(counts)).pvalue) if sum(counts) else 1.0
    flips = np.random.default_rng(1).choice([-1.0, 1.0], (9999, len(differences)))
    reached = np.abs(flips @ differences) >= abs(differences.sum()) - 1e-9
    return float((1 + reached.sum()) / 10_000)


def test_paired_differences_and_p_values(tables: dict[str, Any], scores: pd.DataFrame) -> None:
    tasks = {task.display: name for name, task in nb.PAPER_TASKS.items()}
    for model, level in COMPARED:
        rows = [r for r in tables["comparisons"] if r["other"] == f"{model} ({level})"]
        assert len(rows) == 10
        for row in rows:
            if row["task"] == "All":
                continue
            differences = pair(scores, (model, level), tasks[row["task"]])
            n = len(differences)
            assert row["questions"] == n
            squares = (np.sum(differences**2) + 100**2) / (np.count_nonzero(differences) + 1)
            error = np.sqrt(differences.var(ddof=1) / n + 2 * squares / n**2)
            mean, half = differences.mean(), stats.norm.ppf(0.975) * error
            expected = [mean, max(-100, mean - half), min(100, mean + half)]
            assert list(row["difference"].values()) == pytest.approx(expected)
            # Holm multiplies the smallest of the ten p-values by ten, and the largest by one.
            p = p_value(differences)
            assert p - 0.02 <= row["p"] <= 10 * p + 0.02
            assert (row["verdict"] == "not significantly different") == (
                row["p"] > 0.05 or row["difference"]["low"] * row["difference"]["high"] <= 0
            )
