"""Sample complexity: outcomes from logs, statistics, the choice of rates, and the page."""

from __future__ import annotations

import math
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy import stats

from bittoken.training.recipe import load_recipe
from experiments.comparison import read_comparison
from experiments.sample_complexity.__main__ import HERE, RESULTS, render
from experiments.sample_complexity.outcomes import (
    Cell,
    Cost,
    first_in_a_row,
    outcome,
    read_outcomes,
)
from experiments.sample_complexity.page import render_page
from experiments.sample_complexity.rates import Trial, best_trial
from experiments.sample_complexity.statistics import (
    geometric_mean,
    growth_per_bit,
    ratio_to_reference,
)
from tests.experiments.outcome_examples import BUDGET, assert_is_committed, log, seed, store


@pytest.mark.parametrize(
    ("exact", "reached"),
    [
        ([0.2, 0.9, 0.95], 2),
        ([0.2, 0.91, 0.89, 0.9, 0.9], 4),
        ([0.2, 0.91, 0.89, 0.95], None),
        ([0.9], None),
    ],
)
def test_a_target_counts_when_the_next_validation_confirms_it(
    exact: list[float], reached: int | None
) -> None:
    recipe = load_recipe("integers-bittoken")
    result = outcome(recipe, log("multiplication", exact))
    expected = None if reached is None else Cost(4096 * reached, 7 * 4096 * reached, 2.0 * reached)
    assert result.reached[0.9] == expected
    # The second validation is the first of two at 50 %, if there are more.
    assert result.reached[0.5] == (Cost(8192, 7 * 8192, 4.0) if len(exact) > 1 else None)
    assert result.exact == pytest.approx(np.mean(exact[-3:]))
    assert result.curve[-1] == (4096 * len(exact), exact[-1])


def test_first_in_a_row_agrees_with_a_search_in_text() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        values = rng.integers(0, 2, rng.integers(1, 9)).tolist()
        found = re.search("11", "".join(map(str, values)))
        assert first_in_a_row(values, 1, 2) == (found.start() if found else None)


def test_geometric_mean_has_the_t_interval_of_the_logarithms() -> None:
    values = [30_000.0, 50_000.0, 41_000.0]
    logs = np.log(values)
    interval = stats.t.interval(0.95, 2, logs.mean(), stats.sem(logs))
    assert geometric_mean(values) == pytest.approx(
        (stats.gmean(values), *np.exp(interval)), rel=1e-9
    )


def test_ratios_are_paired_by_seed() -> None:
    reference = [seed(1, 40_000), seed(2, 80_000), seed(3, 60_000)]
    others = [seed(3, 90_000), seed(1, 60_000), seed(2, 120_000)]
    ratio = ratio_to_reference(others, reference, 0.9)
    assert ratio is not None
    assert ratio.pairs == pytest.approx((1.5, 1.5, 1.5))
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((1.5, 1.5, 1.5))
    assert ratio.shows_more


def test_a_censored_seed_gives_a_lower_bound() -> None:
    reference = [seed(1, 40_000), seed(2, 44_000), seed(3, 42_000)]
    ratio = ratio_to_reference([seed(1, 400_000), seed(2, None), seed(3, None)], reference, 0.9)
    assert ratio is not None
    assert ratio.high is None
    assert ratio.pairs == pytest.approx((10, BUDGET / 44_000, BUDGET / 42_000))
    assert 1 < ratio.low < ratio.value


def test_there_is_no_ratio_to_a_censored_reference_or_of_one_seed() -> None:
    reached = [seed(1, 40_000), seed(2, 44_000)]
    assert ratio_to_reference(reached, [seed(1, 40_000), seed(2, None)], 0.9) is None
    assert ratio_to_reference(reached[:1], reached, 0.9) is None


def test_one_seed_below_1_shows_nothing() -> None:
    reference = [seed(1, 40_000), seed(2, 40_000), seed(3, 40_000)]
    ratio = ratio_to_reference([seed(1, 39_000), seed(2, 80_000), seed(3, 80_000)], reference, 0.9)
    assert ratio is not None
    assert not ratio.shows_more


def test_growth_is_the_slope_of_the_logarithm() -> None:
    points = [(k, [seed(s, round(1000 * s * 1.5**k)) for s in (1, 2)]) for k in (4, 6, 12)]
    assert growth_per_bit(points, 0.9) == pytest.approx([1.5, 1.5], rel=1e-3)
    censored = [*points[:1], (6, [seed(1, 9000), seed(2, None)])]
    assert growth_per_bit(censored, 0.9) is None
    partial = [*points[:2], (12, [seed(2, round(2000 * 1.5**12))])]
    assert growth_per_bit(partial, 0.9) == pytest.approx([1.5], rel=1e-3)


def test_the_rate_with_the_fewest_questions_is_chosen() -> None:
    slow, fast = Trial(1.0, seed(1, 90_000)), Trial(3.0, seed(1, 80_000))
    better, worse = Trial(0.3, seed(1, None, 0.8)), Trial(2.0, seed(1, None, 0.7))
    assert best_trial([slow, better, fast]) is fast
    assert best_trial([worse, better]) is better


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Results in which BitTokens need half as many questions as all others, in two seeds."""
    for run in read_comparison(HERE / "runs.toml").runs:
        recipe = run.recipe
        if recipe.data.bits != 8 or recipe.training.seed == 3:
            continue
        count = 10 if recipe.model.encoding == "bittoken" else 20 + recipe.training.seed
        store(tmp_path / "runs" / run.name, recipe, [0.4] * (count - 1) + [0.9, 0.92])
    return tmp_path


def test_page_states_what_is_known_and_what_is_missing(stored: Path) -> None:
    page = render(stored)["README.md"].decode()
    (statement,) = re.findall(r"- \*\*8 bits, to 90%\*\*: (.*)", page)
    assert statement.startswith("yes; questions relative to BitTokens: ")
    value = math.sqrt(21 * 22) / 10
    assert f"FoNE × {value:.1f}" in statement
    assert "| 8 bits | **41.0** (41.0–41.0) |" in page
    assert "- Mult, 8 bits: BitToken (1)" in page
    assert "- Mult, 12 bits: BitToken (3)" in page


def test_page_does_not_claim_more_than_one_seed_shows(stored: Path) -> None:
    runs = read_comparison(HERE / "runs.toml")
    outcomes, missing = read_outcomes(runs, stored / "runs")
    single = {cell: seeds[:1] for cell, seeds in outcomes.items()}
    page = render_page("{results}", single, missing, "")
    assert "- **8 bits, to 90%**: not decided" in page
    assert "| 8 bits | 41.0 |" in page


def test_censored_seeds_are_never_averaged() -> None:
    cell = Cell("multiplication", 8, 0, "digit")
    seeds = (seed(1, 40_960), seed(2, None, 0.7), seed(3, 81_920))
    page = render_page("{results}", {cell: seeds}, {}, "")
    assert "| 8 bits | 41.0, 81.9; > 524 (2 of 3 seeds) |" in page
    assert "| 8 bits | 70.0 |" in page


def test_declared_runs_differ_from_their_recipes_only_as_the_plan_says() -> None:
    runs = read_comparison(HERE / "runs.toml").runs
    assert [run.name for run in runs[:2]] == [
        "multiplication-8-bittoken-s1",
        "multiplication-8-digit-s1",
    ]
    first = load_recipe("integers-bittoken")
    for run in runs:
        training = msgspec.structs.replace(run.recipe.training, seed=1)
        assert training == first.training, run.name
        assert run.recipe.data.curriculum == ()
        wide = run.recipe.model.encoding == "base10"
        assert run.recipe.model.width == (208 if wide else 128)


def test_committed_page_is_generated_from_the_committed_logs() -> None:
    assert_is_committed(render(RESULTS), RESULTS)
