"""Holm's correction against the procedure it stands for, and ranks that noise does not decide."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.stats.many import holm, ranks

p_values = st.lists(st.integers(0, 64).map(lambda n: n / 64), min_size=1, max_size=12)


def _refused(p: list[float], level: Fraction) -> set[int]:
    """Holm's procedure: the smallest p against level/m, the next against level/(m-1), …"""
    refused: set[int] = set()
    for left, place in enumerate(sorted(range(len(p)), key=lambda place: p[place])):
        if Fraction(p[place]) > level / (len(p) - left):
            break
        refused.add(place)
    return refused


@given(p_values)
def test_an_adjusted_p_is_the_level_at_which_the_procedure_refuses(p: list[float]) -> None:
    for place, adjusted in enumerate(holm(p)):
        level = Fraction(adjusted)
        if level < 1:
            assert place in _refused(p, level)
        assert place not in _refused(p, level - Fraction(1, 10**6))


@given(p_values)
def test_adjusted_p_values_keep_the_order_and_never_shrink(p: list[float]) -> None:
    adjusted = holm(p)
    assert all(0 <= before <= after <= 1 for before, after in zip(p, adjusted, strict=True))
    by_size = sorted(range(len(p)), key=lambda place: p[place])
    assert [adjusted[place] for place in by_size] == sorted(adjusted)


@given(p_values, st.randoms())
def test_the_order_of_tests_does_not_matter(p: list[float], random: object) -> None:
    assert holm(p[::-1])[::-1] == holm(p)


def test_holm_of_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_a_rank_counts_those_who_are_better() -> None:
    # 1 beats 3; 2 is told apart from nobody: ranks are shared without a chain of likeness.
    assert ranks([1, 2, 3], [(3, 1)]) == {1: 1, 2: 1, 3: 2}
    assert ranks([1, 2, 3], [(3, 1), (2, 1), (3, 2)]) == {1: 1, 2: 2, 3: 3}
    assert ranks([1, 2], []) == {1: 1, 2: 1}


def test_who_is_not_ranked_does_not_count() -> None:
    assert ranks([1, 2], [(2, 7), (7, 1), (2, 1), (2, 1)]) == {1: 1, 2: 2}


@given(st.dictionaries(st.integers(0, 8), st.floats(0, 100), min_size=1), st.floats(0, 30))
def test_who_scores_more_never_ranks_behind(scores: dict[int, float], noise: float) -> None:
    beaten = [(a, b) for a in scores for b in scores if scores[b] - scores[a] > noise]
    found = ranks(list(scores), beaten)
    best = max(scores, key=lambda one: scores[one])
    assert found[best] == 1
    for a in scores:
        for b in scores:
            if scores[a] >= scores[b]:
                assert found[a] <= found[b]
