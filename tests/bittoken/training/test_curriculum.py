"""The formulas of curriculum and task balance, compared with values calculated by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittoken.training.curriculum import (
    Curriculum,
    advance_threshold,
    capped,
    generalized_mean,
    need_shares,
    preview_ratios,
    rebalanced,
)


def zeta(level: int, step: int, *, rate: float = 1.0) -> float:
    """Return ζ of one of the levels 0 … 20 in a training of 1000 steps."""
    return advance_threshold(
        level,
        20,
        step=step,
        total_steps=1000,
        learning_rate=rate,
        peak_rate=1.0,
        decay_start_rate=0.6,
    )


def test_threshold_is_0_9_until_step_or_rate_lower_it() -> None:
    # S = 500. At step 100 and level 20: 500 / 100 · 20 / 20 = 5, cut to 1.
    assert zeta(20, 100) == 0.9
    assert zeta(20, 500) == 0.9
    assert zeta(20, 0) == 0.9


def test_threshold_falls_in_the_second_half() -> None:
    # 500 / 625 = 0.8; 0.8 · 0.9 = 0.72. At the end 500 / 1000 · 0.9 = 0.45.
    assert zeta(20, 625) == pytest.approx(0.72)
    assert zeta(20, 1000) == pytest.approx(0.45)


def test_threshold_falls_for_the_easiest_levels_first() -> None:
    # Level 5 of 20: 500 / 250 · 5 / 20 = 0.5, times 0.9; level 10 there: 2 · 0.5 = 1.
    assert zeta(5, 250) == pytest.approx(0.45)
    assert zeta(10, 250) == 0.9
    # It starts to fall at step 500 · 5 / 20 = 125.
    assert zeta(5, 125) == 0.9
    assert zeta(5, 126) < 0.9


def test_low_learning_rate_lowers_the_threshold() -> None:
    # L / (peak − rate) = 0.6 / (1 − 0.2) = 0.75, below 500 / 600 = 0.83: 0.75 · 0.9 = 0.675.
    assert zeta(20, 600, rate=0.2) == pytest.approx(0.675)
    # 0.6 / (1 − 0.5) = 1.2 is not: 500 / 600 · 0.9 = 0.75.
    assert zeta(20, 600, rate=0.5) == pytest.approx(0.75)
    # At the peak there is nothing to divide by.
    assert zeta(20, 100, rate=1.0) == 0.9


def test_preview_has_a_fifth_and_decays_by_0_8() -> None:
    # Levels 2, 3, 4 beyond frontier 1 weigh 0.8, 0.64, 0.512, together 1.952:
    # 0.2 · 0.8 / 1.952 = 0.0819672, 0.0655738, 0.0524590.
    ratios = preview_ratios(5, 1)
    assert ratios == pytest.approx([0, 0, 0.0819672, 0.0655738, 0.0524590], abs=1e-7)
    assert ratios.sum() == pytest.approx(0.2)
    assert preview_ratios(5, 3) == pytest.approx([0, 0, 0, 0, 0.2])
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
def test_need_shares(exponent: float, expected: list[float]) -> None:
    assert need_shares(np.array([0.9, 0.6, 0.5]), exponent) == pytest.approx(expected)


def test_shares_are_equal_if_every_task_is_mastered() -> None:
    assert need_shares(np.ones(4), -1.0).tolist() == [0.25] * 4


def test_curriculum_starts_at_a_tenth_of_the_hardest_level() -> None:
    assert Curriculum.start(41).frontier == 4
    # At least 1, at most the last level.
    assert Curriculum.start(3).frontier == 1
    assert Curriculum.start(1).frontier == 0


def test_initial_shares_are_equal_up_to_the_frontier_and_the_preview_beyond() -> None:
    # 21 levels, frontier 2: 0.8 / 3 for each of three levels, 0.2 beyond.
    shares = Curriculum.start(21).shares()
    assert shares[:3] == pytest.approx([0.8 / 3] * 3)
    assert shares[3:] == pytest.approx(preview_ratios(21, 2)[3:])
    assert shares.sum() == pytest.approx(1)


def test_without_levels_beyond_the_frontier_there_is_no_preview() -> None:
    assert Curriculum.start(1).shares().tolist() == [1.0]
    assert Curriculum.start(2).shares() == pytest.approx([0.5, 0.5])


def test_scores_update_the_running_mean_and_the_ratios() -> None:
    curriculum = Curriculum.start(21)
    level = np.repeat([0, 1, 2, 5], [24, 8, 8, 8])
    score = np.repeat([1.0, 0.5, 0.0, 0.25], [24, 8, 8, 8])
    curriculum.update(level, score)
    # 24 items weigh 24 / (24 + 8) = 3/4, 8 items 1/2; means 1, 0.5, 0 and, in the preview, 0.25.
    assert curriculum.performance[[0, 1, 2, 5]] == pytest.approx([0.75, 0.25, 0, 0.125])
    assert curriculum.performance[[3, 4]].tolist() == [0, 0]
    # Needs (λ = 0) 0.25, 0.75, 1 over 2: 0.125, 0.375, 0.5. Half the old 1/3, half these.
    assert curriculum.ratios[:4] == pytest.approx([0.229167, 0.354167, 0.416667, 0], abs=1e-6)
    assert curriculum.seen == 8
    curriculum.update(np.array([0] * 8), np.full(8, 0.25))
    # 0.75 + 1/2 · (0.25 − 0.75) = 0.5; levels without items keep their mean.
    assert curriculum.performance[:3] == pytest.approx([0.5, 0.25, 0])


def mastered(items: int) -> Curriculum:
    curriculum = Curriculum.start(21)
    for _ in range(items // 4):
        curriculum.update(np.array([0, 1, 2, 2, 2, 2]), np.ones(6))
    return curriculum


def test_mastered_frontier_unlocks_one_level() -> None:
    curriculum = mastered(80)
    # p after n rounds of 4 items right: 1 − (2/3)^n.
    assert curriculum.performance[2] == pytest.approx(1 - (2 / 3) ** 20)
    assert not curriculum.advance(0.9999)
    assert curriculum.frontier == 2
    assert curriculum.advance(0.9)
    assert curriculum.frontier == 3
    # No item of the new level has been measured yet.
    assert curriculum.seen == 0
    assert not curriculum.advance(0.0)


def test_frontier_needs_eight_items_to_advance() -> None:
    assert not mastered(4).advance(0.1)
    assert mastered(8).advance(0.1)


def test_unlocked_level_gets_a_share_immediately() -> None:
    curriculum = mastered(80)
    old = curriculum.ratios.copy()
    before = curriculum.shares()[3]
    curriculum.advance(0.9)
    need = 1 - np.array([*curriculum.performance[:3], 0.0])
    expected = 0.5 * old[:4] + 0.5 * need / need.sum()
    assert curriculum.ratios[:4] == pytest.approx(expected)
    assert curriculum.shares()[3] > before
    assert curriculum.shares().sum() == pytest.approx(1)


def test_frontier_stops_at_the_last_level() -> None:
    curriculum = Curriculum.start(2)
    curriculum.update(np.ones(100, np.int64), np.ones(100))
    assert not curriculum.advance(0.1)
    assert curriculum.frontier == 1


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        # Of 0.5 and 0.125: 2 / (2 + 8), √(0.5 · 0.125), 0.625 / 2.
        (-1.0, 0.2),
        (0.0, 0.25),
        (1.0, 0.3125),
    ],
)
def test_generalized_means(exponent: float, expected: float) -> None:
    values = np.array([0.5, 0.125])
    assert generalized_mean(values, exponent, epsilon=0) == pytest.approx(expected)
    assert generalized_mean(values, exponent) == pytest.approx(expected, abs=1e-5)


def test_task_that_scores_0_keeps_the_harmonic_mean_near_0() -> None:
    # 2 / (1/1 + 1/0.000001) is about 0.000002.
    assert generalized_mean(np.array([1.0, 0.0]), -1.0) == pytest.approx(2e-6, rel=1e-5)


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        # Old 0.6 and 0.4; p = 0.75 and 0.25. λ = 1: half of 0.6 + 0.5, half of 0.4 + 0.5.
        (1.0, [0.55, 0.45]),
        # λ = 0: needs 0.25 and 0.75.
        (0.0, [0.425, 0.575]),
        # λ = −1: 0.0625 and 0.5625 over 0.625 are 0.1 and 0.9.
        (-1.0, [0.35, 0.65]),
    ],
)
def test_rebalanced_ratios_are_half_old_half_need(exponent: float, expected: list[float]) -> None:
    new = rebalanced(np.array([0.6, 0.4]), np.array([0.75, 0.25]), exponent)
    assert new == pytest.approx(expected)


def test_excess_over_the_cap_goes_to_the_others_in_proportion() -> None:
    # 0.7 is cut to 0.4; 0.6 is left for 0.2 and 0.1, two to one: 0.4 and 0.2.
    assert capped(np.array([0.7, 0.2, 0.1]), 0.4) == pytest.approx([0.4, 0.4, 0.2])
    # 0.6 → 0.35; 0.65 for 0.3 and 0.1 is 0.4875 and 0.1625; 0.4875 → 0.35; 0.3 is left.
    assert capped(np.array([0.6, 0.3, 0.1]), 0.35) == pytest.approx([0.35, 0.35, 0.3])


def test_cap_above_all_ratios_changes_nothing() -> None:
    assert capped(np.array([0.7, 0.2, 0.1]), 1.0) == pytest.approx([0.7, 0.2, 0.1])


def test_cap_below_an_equal_share_means_equal_shares() -> None:
    assert capped(np.array([0.7, 0.2, 0.1]), 0.1) == pytest.approx([1 / 3] * 3)


def test_excess_is_divided_equally_among_zero_ratios() -> None:
    assert capped(np.array([1.0, 0.0, 0.0]), 0.5) == pytest.approx([0.5, 0.25, 0.25])


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=9), st.floats(0, 1))
def test_capped_ratios_sum_to_1_and_keep_their_order(values: list[float], max_share: float) -> None:
    ratios = np.array(values) / sum(values)
    result = capped(ratios, max_share)
    assert result.sum() == pytest.approx(1)
    assert result.max() <= max(max_share, 1 / len(values)) + 1e-9
    assert (np.diff(result[np.argsort(ratios)]) >= -1e-9).all()
