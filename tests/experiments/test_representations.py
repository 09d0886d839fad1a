"""Fixed and floating point: contrasts, predictions, the choice of rates, and the page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from experiments.comparison import read_comparison
from experiments.representations.__main__ import CURVES, HERE, RESULTS, render
from experiments.representations.contrasts import ENCODINGS, contrast
from experiments.representations.page import OPERATIONS, render_page
from experiments.representations.rates import chosen_factor, rate_scores
from experiments.sample_complexity.outcomes import Cell, Outcome, Outcomes
from tests.experiments.outcome_examples import assert_is_committed, seed, store

TRAIN = "python -m experiments.queue --declared experiments/representations"
"""The command that trains the runs, up to the name of the declaration."""


def cells(task: str, fixed: Sequence[Outcome], floating: Sequence[Outcome]) -> Outcomes:
    return {
        Cell(task, 8, 0, "base2-fixed"): tuple(fixed),
        Cell(task, 8, 0, "bittoken-no-reciprocal"): tuple(floating),
    }


def seeds(*questions: int | None, exact: float = 0.2) -> list[Outcome]:
    return [seed(n, q, exact + n / 100) for n, q in enumerate(questions, 1)]


def test_difference_is_the_paired_t_interval() -> None:
    fixed = [seed(n, None, x) for n, x in ((1, 0.3), (2, 0.5), (3, 0.45))]
    floating = [seed(n, None, x) for n, x in ((3, 0.1), (1, 0.2), (2, 0.15))]
    one = contrast(cells("addition", fixed, floating), "addition", 2)
    assert one is not None
    assert one.difference is not None
    test = stats.ttest_rel([0.3, 0.5, 0.45], [0.2, 0.15, 0.1])
    interval = test.confidence_interval(0.95)
    assert one.difference == pytest.approx((np.mean([0.1, 0.35, 0.35]), *interval))
    assert one.slower == {"fixed": None, "floating": None}


@pytest.mark.parametrize(
    ("fixed", "floating", "verdict"),
    [
        (seeds(40_000, 44_000, 42_000), seeds(150_000, 160_000, 170_000), "holds"),
        (seeds(150_000, 160_000, 170_000), seeds(40_000, 44_000, 42_000), "opposite"),
        (seeds(40_000, 44_000, 42_000), seeds(40_000, 41_000, 45_000), "not shown"),
        (seeds(40_000, 44_000, 42_000), seeds(None, None, None), "holds"),
        (seeds(None, None, None), seeds(None, None, None), "not shown"),
        (seeds(None, None, None, exact=0.1), seeds(None, None, None, exact=0.4), "opposite"),
        (seeds(40_000), seeds(90_000), "not decided"),
    ],
)
def test_verdict_follows_the_plan(
    fixed: list[Outcome], floating: list[Outcome], verdict: str
) -> None:
    one = contrast(cells("addition", fixed, floating), "addition", 2)
    assert one is not None
    assert one.verdict("fixed") == verdict
    mirrored = contrast(cells("addition", floating, fixed), "addition", 2)
    assert mirrored is not None
    assert mirrored.verdict("floating") == verdict


def test_fixed_point_that_scores_higher_but_later_is_contradictory() -> None:
    fixed = [seed(n, 100_000 + n, 0.9) for n in (1, 2, 3)]
    floating = [
        one._replace(reached={0.5: one.reached[0.5], 0.9: None}, exact=0.6 + one.seed / 100)
        for one in (seed(n, 50_000 + n) for n in (1, 2, 3))
    ]
    one = contrast(cells("addition", fixed, floating), "addition", 2)
    assert one is not None
    assert one.verdict("fixed") == "contradictory"


def test_page_has_ratio_and_verdict() -> None:
    outcomes = dict(cells("addition", seeds(40_000, 40_000, 40_000), seeds(None, None, None)))
    page = render_page("{results}", outcomes, {}, "")
    row = next(line for line in page.splitlines() if line.startswith("| Add | 2 |"))
    # The floating form needs at least 524,288 / 40,000 = 13.1 times as many questions.
    assert "| at most × 0.08 (upper bound 0.08) |" in row
    assert row.endswith("| fixed | holds |")
    assert "| Base 2, fixed | **40.0** (40.0–40.0) |" in page


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Results in which the fixed form learns addition only, and the floating form the others."""
    for run in read_comparison(HERE / "runs.toml").runs:
        recipe = run.recipe
        (task,) = recipe.data.tasks
        is_better = recipe.model.encoding.endswith("fixed") == (task == "addition")
        count = recipe.training.seed + (10 if is_better or task == "minmax" else 30)
        store(tmp_path / "runs" / run.name, recipe, [0.4] * (count - 1) + [0.9, 0.92])
    for run in read_comparison(HERE / "sweep.toml").runs:
        best = 3.0 if run.recipe.model.encoding == "base10" else 1.0
        exact = 0.5 if run.recipe.optimizer.scale == best else 0.3
        store(tmp_path / "sweep" / run.name, run.recipe, [exact] * 4)
    return tmp_path


def test_page_decides_the_predictions(stored: Path) -> None:
    page = render(stored)["README.md"].decode()
    verdicts = re.findall(r"^\| (\w+) \| (\d+) \|.*\| ([^|]+) \|$", page, flags=re.MULTILINE)
    assert [(task, verdict) for task, _, verdict in verdicts[:6]] == [
        *[("Add", "holds")] * 2,
        *[("Mult", "holds")] * 2,
        *[("Div", "holds")] * 2,
    ]
    # All end at 90 %, so that MinMax does not differ less than the others.
    assert verdicts[6] == ("MinMax", "2", "does not hold")
    assert "Not complete" not in page


def test_rate_with_the_highest_score_is_chosen(stored: Path) -> None:
    sweep = read_comparison(HERE / "sweep.toml")
    scores = rate_scores(sweep, stored / "sweep")
    assert {name: chosen_factor(of) for name, of in scores.items()} == {
        "bittoken-no-reciprocal": 1.0,
        "base2-fixed": 1.0,
        "base10": 3.0,
        "base10-fixed": 1.0,
    }
    assert scores["base10"] == pytest.approx({0.33: 0.3, 1.0: 0.3, 3.0: 0.5})


def test_declared_runs_differ_in_encoding_operation_and_rate_only() -> None:
    encodings = [name for forms in ENCODINGS.values() for name in forms.values()]
    runs = read_comparison(HERE / "runs.toml").runs
    assert len(runs) == len(encodings) * len(OPERATIONS) * 3
    assert set(CURVES) == set(encodings)
    assert len({(run.recipe.data.bits, run.recipe.training.questions) for run in runs}) == 1
    assert len({run.recipe.model.width for run in runs}) == 1
    sweep = read_comparison(HERE / "sweep.toml").runs
    assert {run.recipe.training.questions * 4 for run in sweep} == {524_288}


@pytest.mark.skipif(
    not (RESULTS / "runs").is_dir(),
    reason=f"no runs are stored; {TRAIN}/runs.toml",
)
def test_committed_page_is_generated_from_the_committed_logs() -> None:
    assert_is_committed(render(RESULTS), RESULTS)


@pytest.mark.skipif(
    not (RESULTS / "sweep").is_dir(),
    reason=f"no sweep is stored; {TRAIN}/sweep.toml",
)
def test_declared_rates_are_those_of_the_sweep() -> None:
    scores = rate_scores(read_comparison(HERE / "sweep.toml"), RESULTS / "sweep")
    for run in read_comparison(HERE / "runs.toml").runs:
        assert run.recipe.optimizer.scale == chosen_factor(scores[run.recipe.model.encoding])
