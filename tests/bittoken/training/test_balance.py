"""The balance of the tasks, against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.bittoken.training.balance import capped, generalized_mean, rebalanced


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        # Of 0.5 and 0.125: 2 / (2 + 8), √(0.5 · 0.125), 0.625 / 2.
        (-1.0, 0.2),
        (0.0, 0.25),
        (1.0, 0.3125),
    ],
)
def test_means(exponent: float, expected: float) -> None:
    values = np.array([0.5, 0.125])
    assert generalized_mean(values, exponent, epsilon=0) == pytest.approx(expected)
    assert generalized_mean(values, exponent) == pytest.approx(expected, abs=1e-5)


def test_a_task_without_success_keeps_the_harmonic_mean_near_0() -> None:
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
def test_new_ratios_are_half_the_old_and_half_the_need(
    exponent: float, expected: list[float]
) -> None:
    new = rebalanced(np.array([0.6, 0.4]), np.array([0.75, 0.25]), exponent)
    assert new == pytest.approx(expected)


def test_what_is_cut_off_goes_to_the_others_in_proportion() -> None:
    # 0.7 is cut to 0.4; 0.6 is left for 0.2 and 0.1, two to one: 0.4 and 0.2.
    assert capped(np.array([0.7, 0.2, 0.1]), 0.4) == pytest.approx([0.4, 0.4, 0.2])
    # 0.6 → 0.35; 0.65 for 0.3 and 0.1 is 0.4875 and 0.1625; 0.4875 → 0.35; 0.3 is left.
    assert capped(np.array([0.6, 0.3, 0.1]), 0.35) == pytest.approx([0.35, 0.35, 0.3])


def test_a_cap_that_binds_nobody_changes_nothing() -> None:
    assert capped(np.array([0.7, 0.2, 0.1]), 1.0) == pytest.approx([0.7, 0.2, 0.1])


def test_a_cap_below_an_equal_share_means_equal_shares() -> None:
    assert capped(np.array([0.7, 0.2, 0.1]), 0.1) == pytest.approx([1 / 3] * 3)


def test_what_nobody_asked_for_is_shared_equally() -> None:
    assert capped(np.array([1.0, 0.0, 0.0]), 0.5) == pytest.approx([0.5, 0.25, 0.25])


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=9), st.floats(0, 1))
def test_capped_ratios_add_up_and_keep_their_order(values: list[float], most: float) -> None:
    ratios = np.array(values) / sum(values)
    found = capped(ratios, most)
    assert found.sum() == pytest.approx(1)
    assert found.max() <= max(most, 1 / len(values)) + 1e-9
    assert (np.diff(found[np.argsort(ratios)]) >= -1e-9).all()
