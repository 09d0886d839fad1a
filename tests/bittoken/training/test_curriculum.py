"""The curriculum's formulas, against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bench.bittoken.training.curriculum import Curriculum, needs, preview_ratios, threshold


def zeta(level: int, step: int, *, rate: float = 1.0) -> float:
    """ζ of one of the levels 0 … 20 in a training of 1000 steps."""
    return threshold(level, 20, step=step, last=1000, rate=rate, peak=1.0, turn=0.6)


def test_the_threshold_is_0_9_while_neither_step_nor_rate_lower_it() -> None:
    # S = 500. At step 100 and level 20: 500 / 100 · 20 / 20 = 5, cut to 1.
    assert zeta(20, 100) == 0.9
    assert zeta(20, 500) == 0.9
    assert zeta(20, 0) == 0.9


def test_the_threshold_falls_in_the_second_half() -> None:
    # 500 / 625 = 0.8; 0.8 · 0.9 = 0.72. At the end 500 / 1000 · 0.9 = 0.45.
    assert zeta(20, 625) == pytest.approx(0.72)
    assert zeta(20, 1000) == pytest.approx(0.45)


def test_the_threshold_falls_for_the_lowest_levels_first() -> None:
    # Level 5 of 20: 500 / 250 · 5 / 20 = 0.5, times 0.9; level 10 there: 2 · 0.5 = 1.
    assert zeta(5, 250) == pytest.approx(0.45)
    assert zeta(10, 250) == 0.9
    # It begins at step 500 · 5 / 20 = 125.
    assert zeta(5, 125) == 0.9
    assert zeta(5, 126) < 0.9


def test_a_low_learning_rate_lowers_the_threshold() -> None:
    # L / (peak − rate) = 0.6 / (1 − 0.2) = 0.75, below 500 / 600 = 0.83: 0.75 · 0.9 = 0.675.
    assert zeta(20, 600, rate=0.2) == pytest.approx(0.675)
    # 0.6 / (1 − 0.5) = 1.2 is not: 500 / 600 · 0.9 = 0.75.
    assert zeta(20, 600, rate=0.5) == pytest.approx(0.75)
    # At the peak there is nothing to divide by.
    assert zeta(20, 100, rate=1.0) == 0.9


def test_the_preview_has_a_fifth_that_falls_off_by_0_8() -> None:
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
def test_needs(exponent: float, expected: list[float]) -> None:
    assert needs(np.array([0.9, 0.6, 0.5]), exponent) == pytest.approx(expected)


def test_nothing_left_to_learn_is_shared_equally() -> None:
    assert needs(np.ones(4), -1.0).tolist() == [0.25] * 4


def test_a_curriculum_starts_at_a_tenth_of_the_hardest_level() -> None:
    assert Curriculum.start(41).frontier == 4
    # Never at nothing, never beyond the last.
    assert Curriculum.start(3).frontier == 1
    assert Curriculum.start(1).frontier == 0


def test_the_first_shares_are_equal_up_to_the_frontier_and_the_preview_beyond() -> None:
    # 21 levels, frontier 2: 0.8 / 3 for each of three levels, 0.2 beyond.
    shares = Curriculum.start(21).shares()
    assert shares[:3] == pytest.approx([0.8 / 3] * 3)
    assert shares[3:] == pytest.approx(preview_ratios(21, 2)[3:])
    assert shares.sum() == pytest.approx(1)


def test_without_a_level_beyond_all_samples_are_opened_ones() -> None:
    assert Curriculum.start(1).shares().tolist() == [1.0]
    assert Curriculum.start(2).shares() == pytest.approx([0.5, 0.5])


def test_measured_scores_move_the_running_mean_and_the_ratios() -> None:
    curriculum = Curriculum.start(21)
    level = np.repeat([0, 1, 2, 5], [24, 8, 8, 8])
    score = np.repeat([1.0, 0.5, 0.0, 0.25], [24, 8, 8, 8])
    curriculum.measured(level, score)
    # 24 items weigh 24 / (24 + 8) = 3/4, 8 items 1/2; means 1, 0.5, 0 and, in the preview, 0.25.
    assert curriculum.performance[[0, 1, 2, 5]] == pytest.approx([0.75, 0.25, 0, 0.125])
    assert curriculum.performance[[3, 4]].tolist() == [0, 0]
    # Needs (λ = 0) 0.25, 0.75, 1 over 2: 0.125, 0.375, 0.5. Half the old 1/3, half these.
    assert curriculum.ratios[:4] == pytest.approx([0.229167, 0.354167, 0.416667, 0], abs=1e-6)
    assert curriculum.seen == 8
    curriculum.measured(np.array([0] * 8), np.full(8, 0.25))
    # 0.75 + 1/2 · (0.25 − 0.75) = 0.5; what was not measured stays.
    assert curriculum.performance[:3] == pytest.approx([0.5, 0.25, 0])


def mastered(items: int) -> Curriculum:
    curriculum = Curriculum.start(21)
    for _ in range(items // 4):
        curriculum.measured(np.array([0, 1, 2, 2, 2, 2]), np.ones(6))
    return curriculum


def test_a_mastered_frontier_opens_one_level() -> None:
    curriculum = mastered(80)
    # p after n rounds of 4 items right: 1 − (2/3)^n.
    assert curriculum.performance[2] == pytest.approx(1 - (2 / 3) ** 20)
    assert not curriculum.advance(0.9999)
    assert curriculum.frontier == 2
    assert curriculum.advance(0.9)
    assert curriculum.frontier == 3
    # Nothing has been seen there yet.
    assert curriculum.seen == 0
    assert not curriculum.advance(0.0)


def test_few_items_at_the_frontier_do_not_open_the_next() -> None:
    assert not mastered(4).advance(0.1)
    assert mastered(8).advance(0.1)


def test_a_level_that_opens_is_drawn_at_once() -> None:
    curriculum = mastered(80)
    old = curriculum.ratios.copy()
    before = curriculum.shares()[3]
    curriculum.advance(0.9)
    need = 1 - np.array([*curriculum.performance[:3], 0.0])
    expected = 0.5 * old[:4] + 0.5 * need / need.sum()
    assert curriculum.ratios[:4] == pytest.approx(expected)
    assert curriculum.shares()[3] > before
    assert curriculum.shares().sum() == pytest.approx(1)


def test_the_last_level_is_the_end() -> None:
    curriculum = Curriculum.start(2)
    curriculum.measured(np.ones(100, np.int64), np.ones(100))
    assert not curriculum.advance(0.1)
    assert curriculum.frontier == 1
