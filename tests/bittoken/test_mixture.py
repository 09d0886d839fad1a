"""Shares of tasks and levels, compared with values calculated by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bittoken.mixture import (
    Curriculum,
    Mixture,
    advance_threshold,
    harmonic_mean,
    need_shares,
    preview_ratios,
)
from bittoken.recipe import load_recipe


@pytest.mark.parametrize(
    ("level", "step", "expected"),
    [
        # 1000 steps, 400 of them warm-up: S = 500, L = (1 + cos(π/6)) / 2 = 0.9330127.
        # At step 100 and level 20: 500 / 100 · 20 / 20 = 5, cut to 1.
        (20, 0, 0.9),
        (20, 100, 0.9),
        (20, 500, 0.9),
        # 500 / 625 = 0.8; 0.8 · 0.9 = 0.72. At the end 500 / 1000 · 0.9 = 0.45.
        (20, 625, 0.72),
        (20, 1000, 0.45),
        # The easiest levels fall first. Level 5 of 20: 500 / 250 · 5 / 20 = 0.5, times 0.9.
        (5, 125, 0.9),
        (5, 250, 0.45),
    ],
)
def test_threshold_of_a_level(level: int, step: int, expected: float) -> None:
    settings = ["training.tokens=1000", "training.batch_tokens=1", "optimizer.warmup=0.4"]
    assert advance_threshold(load_recipe("cpu", settings), level, 20, step) == pytest.approx(
        expected
    )


def test_the_learning_rate_limits_the_threshold() -> None:
    """Without warm-up, S = 500 and L = 0.5. At step 510, L / (1 − rate) is below 500 / 510."""
    settings = ["training.tokens=1000", "training.batch_tokens=1", "optimizer.warmup=0"]
    recipe = load_recipe("cpu", settings)
    # rate = (1 + cos(0.51 π)) / 2 = 0.4842946; 0.5 / 0.5157054 = 0.9695458, times 0.9.
    assert advance_threshold(recipe, 20, 20, 510) == pytest.approx(0.8725912)


def test_preview_has_a_fifth_and_decays_by_0_8() -> None:
    # Levels 2, 3, 4 beyond frontier 1 weigh 0.8, 0.64, 0.512, together 1.952:
    # 0.2 · 0.8 / 1.952 = 0.0819672, 0.0655738, 0.0524590.
    assert preview_ratios(5, 1) == pytest.approx([0, 0, 0.0819672, 0.0655738, 0.0524590], abs=1e-7)
    assert preview_ratios(5, 4).tolist() == [0] * 5


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        # (1 − p) = 0.1, 0.4, 0.5. λ = 1: power 0, thirds.
        (1.0, [1 / 3, 1 / 3, 1 / 3]),
        # λ = 0: power 1, the sum is 1.
        (0.0, [0.1, 0.4, 0.5]),
        # λ = −1: squares 0.01, 0.16, 0.25, together 0.42.
        (-1.0, [0.01 / 0.42, 0.16 / 0.42, 0.25 / 0.42]),
    ],
)
def test_weak_tasks_get_larger_shares(exponent: float, expected: list[float]) -> None:
    assert need_shares(np.array([0.9, 0.6, 0.5]), exponent) == pytest.approx(expected)
    mixture = Mixture(load_recipe("cpu", [f"data.balance={exponent}"]), {})
    mixture.ratios = old = np.array([0.2, 0.2, 0.6])
    mixture.update_ratios(np.array([0.9, 0.6, 0.5]))
    assert mixture.ratios == pytest.approx((old + expected) / 2)
    assert need_shares(np.ones(4), exponent).tolist() == [0.25] * 4


def test_a_curriculum_starts_at_a_tenth_of_the_hardest_level() -> None:
    assert [Curriculum.start(levels).frontier for levels in (41, 3, 2, 1)] == [4, 1, 1, 0]
    # 21 levels, frontier 2: 0.8 / 3 for each of three levels, 0.2 beyond.
    shares = Curriculum.start(21).shares()
    assert shares[:3] == pytest.approx([0.8 / 3] * 3)
    assert shares[3:] == pytest.approx(preview_ratios(21, 2)[3:])
    assert Curriculum.start(2).shares() == pytest.approx([0.5, 0.5])


def test_scores_update_the_running_mean_and_the_ratios() -> None:
    curriculum = Curriculum.start(21)
    level = np.repeat([0, 1, 2, 5], [24, 8, 8, 8])
    curriculum.update(level, np.repeat([1.0, 0.5, 0.0, 0.25], [24, 8, 8, 8]))
    # 24 items weigh 24 / (24 + 8) = 3/4, 8 items 1/2; means 1, 0.5, 0 and, in the preview, 0.25.
    assert curriculum.performance[[0, 1, 2, 5]] == pytest.approx([0.75, 0.25, 0, 0.125])
    # Needs (λ = 0) 0.25, 0.75, 1 over 2: 0.125, 0.375, 0.5. Half the old 1/3, half these.
    assert curriculum.ratios[:4] == pytest.approx([0.229167, 0.354167, 0.416667, 0], abs=1e-6)
    curriculum.update(np.array([0] * 8), np.full(8, 0.25))
    # 0.75 + 1/2 · (0.25 − 0.75) = 0.5; levels without items keep their mean.
    assert curriculum.performance[:3] == pytest.approx([0.5, 0.25, 0])


def test_a_mastered_frontier_unlocks_one_level() -> None:
    curriculum = Curriculum.start(21)
    curriculum.update(np.array([2] * 7), np.ones(7))
    assert not curriculum.advance(0.1)  # eight items of the frontier have to be measured
    curriculum.update(np.array([0, 1, 2] * 80), np.ones(240))
    before = curriculum.shares()[3]
    assert not curriculum.advance(0.9999)
    assert curriculum.advance(0.9)
    assert (curriculum.frontier, curriculum.seen) == (3, 0)
    assert curriculum.shares()[3] > before
    assert curriculum.shares().sum() == pytest.approx(1)
    assert not curriculum.advance(0.0)
    curriculum.unlock(1.0)
    curriculum.update(np.array([20] * 99), np.ones(99))
    assert not curriculum.advance(0.1)
    assert curriculum.frontier == 20


def test_a_task_that_scores_0_leaves_the_order_of_harmonic_means() -> None:
    assert harmonic_mean(np.array([0.5, 0.125]), epsilon=0) == pytest.approx(0.2)
    # 2 / (1/1 + 1/0.000001) is about 0.000002.
    assert harmonic_mean(np.array([1.0, 0.0])) == pytest.approx(2e-6, rel=1e-5)
    assert harmonic_mean(np.array([1.0, 0.0])) > harmonic_mean(np.array([0.9, 0.0]))


@pytest.mark.parametrize(
    ("settings", "step", "frontier"),
    [
        # Nothing is mastered; level 2 of 20 falls below a score of 0.3 after
        # 500 · 0.1 · 0.9 / 0.3 = 150 steps, level 3 after 225 steps.
        (["data.falling_threshold=true"], 140, 2),
        (["data.falling_threshold=true"], 160, 3),
        (["data.falling_threshold=false"], 900, 2),
        # Half of the way to the end of the curriculum, half of the levels.
        (["data.falling_threshold=false", "data.curriculum_end=0.5"], 250, 10),
        (["data.falling_threshold=false", "data.curriculum_end=0"], 1, 20),
    ],
)
def test_time_unlocks_levels(settings: list[str], step: int, frontier: int) -> None:
    sizes = ["training.tokens=1000", "training.batch_tokens=1", "optimizer.warmup=0.5"]
    recipe = load_recipe("cpu", [*sizes, *settings])
    mixture = Mixture(recipe, {"addition": 21})
    level = np.repeat(np.arange(21), 1000)
    mixture.update_curriculum("addition", level, np.full(len(level), 0.3), step)
    assert mixture.curricula["addition"].frontier == frontier
    mixture.update_ratios(np.array([0.5, 0.25]))
    restored = Mixture(recipe, {"addition": 21})
    restored.restore(mixture.state())
    assert restored.state() == mixture.state()
    assert restored.curricula["addition"].shares().tolist() == (
        mixture.curricula["addition"].shares().tolist()
    )
