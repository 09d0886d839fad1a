"""Statistics of repeated samples, against brute force over subsets, numpy and simulation."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from numbench.stats.planning import item_variance
from numbench.stats.samples import (
    VoteCounts,
    majority_accuracy,
    pass_at_k,
)

NAN = math.nan

answers_of_items = st.lists(st.lists(st.sampled_from("cabx-"), min_size=1, max_size=7), min_size=1)
"""Per item the answers to it: `c` is the correct one, `-` is none."""


def correct_matrix(answers: list[list[str]]) -> np.ndarray:
    matrix = np.full((len(answers), max(map(len, answers))), NAN)
    for row, item in zip(matrix, answers, strict=True):
        row[: len(item)] = [answer == "c" for answer in item]
    return matrix


def vote_counts(answers: list[str]) -> VoteCounts:
    counts = Counter(answers)
    others = tuple(count for answer, count in sorted(counts.items()) if answer not in "c-")
    return VoteCounts(counts["c"], others, counts["-"])


def vote_of(chosen: tuple[str, ...]) -> float:
    """Return the expected accuracy of the most frequent of some answers."""
    counts = Counter(answer for answer in chosen if answer != "-")
    if not counts:
        return 0.0
    winners = [answer for answer, count in counts.items() if count == max(counts.values())]
    return ("c" in winners) / len(winners)


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


@given(answers_of_items, st.integers(1, 7))
def test_the_majority_vote_is_the_mean_over_all_subsets(answers: list[list[str]], k: int) -> None:
    chances = [
        np.mean([vote_of(subset) for subset in combinations(item, k)])
        for item in answers
        if len(item) >= k
    ]
    result = majority_accuracy([vote_counts(item) for item in answers], k)
    assert result == (pytest.approx(np.mean(chances)) if chances else None)


@given(
    arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(2, 5)), elements=st.floats(0, 100))
)
def test_with_equal_numbers_of_samples_the_components_are_the_textbook_ones(
    values: np.ndarray,
) -> None:
    items, samples = values.shape
    components = item_variance(values)
    within = values.var(axis=1, ddof=1).mean()
    between = values.mean(axis=1).var(ddof=1) - within / samples
    assert components.within == pytest.approx(within, abs=1e-6)
    assert components.between == pytest.approx(between, abs=1e-6)
    # The variance of the mean of these very items follows from the components.
    if components.between >= 0:
        of_mean = values.mean(axis=1).var(ddof=1) / items
        assert components.of_mean(items, samples) == pytest.approx(of_mean, abs=1e-6)


def test_what_cannot_be_computed_is_none() -> None:
    once = np.array([[1.0], [0.0]])
    assert pass_at_k(once, 2) is None
    assert majority_accuracy([VoteCounts(1)], 2) is None
    assert pass_at_k(np.full((2, 3), NAN), 1) is None
