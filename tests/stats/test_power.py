"""Detectable differences and pass@k: simulation, and an independent count."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from numbench.reporting.tables.samples import pass_at_k
from numbench.stats.design import Matrix, Stratum
from numbench.stats.intervals import difference_intervals, difference_variances
from numbench.stats.paired import sign_flip_test
from numbench.stats.power import detectable_difference


def detectable(differences: Matrix) -> list[float]:
    column = Stratum("", differences)
    found = detectable_difference(*difference_variances([column]), column.n)
    return found.tolist()  # type: ignore[no-any-return]


def test_six_items_have_to_differ() -> None:
    # The number of items that differ exceeds five with a probability of 80%.
    for items in (6, 50, 500):
        (least,) = detectable(np.zeros((items, 1)))
        assert 0.799 <= binom.sf(5, items, least / 100) <= 0.9 or least > 96
    assert np.isnan(detectable(np.zeros((5, 1)))).all()


@pytest.mark.parametrize("errors", [0.1, 0.3])
def test_a_detectable_difference_gives_a_verdict_in_80_percent(errors: float) -> None:
    rng = np.random.default_rng(5)

    def scores(share: float) -> Matrix:
        wrong = rng.random((1000, 500)) < share
        return np.asarray(100 * (1 - wrong * rng.beta(1.5, 1.5, wrong.shape)))

    difference = np.mean(detectable(scores(errors) - scores(errors)))
    right = scores(errors)
    lost = rng.random(right.shape) < difference / right.mean()
    stratum = Stratum("", scores(errors) - np.where(lost, 0, right))
    p = sign_flip_test([stratum])
    power = np.mean((p <= 0.05) & (difference_intervals([stratum]).low > 0))
    assert 0.75 <= power <= 0.85


NAN = math.nan

answers_of_items = st.lists(st.lists(st.sampled_from("cabx-"), min_size=1, max_size=7), min_size=1)
"""Per item the answers to it: `c` is the correct one, `-` is none."""


def correct_matrix(answers: list[list[str]]) -> np.ndarray:
    matrix = np.full((len(answers), max(map(len, answers))), NAN)
    for row, item in zip(matrix, answers, strict=True):
        row[: len(item)] = [answer == "c" for answer in item]
    return matrix


@given(answers_of_items, st.integers(1, 7))
def test_pass_at_k_is_the_share_of_subsets_with_a_correct_sample(
    answers: list[list[str]], k: int
) -> None:
    chances = [
        np.mean(["c" in subset for subset in combinations(item, k)])
        for item in answers
        if len(item) >= k
    ]
    result = pass_at_k(correct_matrix(answers), k)
    assert result == (pytest.approx(np.mean(chances)) if chances else None)
