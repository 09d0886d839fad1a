"""Holm's correction and its sequential procedure; ranks from significant differences."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.stats.multiple_testing import RankSet, holm, rank_sets

p_values = st.lists(st.integers(0, 64).map(lambda n: n / 64), min_size=1, max_size=12)


def _rejected(p: list[float], level: Fraction) -> set[int]:
    """Holm's procedure: compare the smallest p with level/m, the next with level/(m-1), …"""
    rejected: set[int] = set()
    for done, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if Fraction(p[index]) > level / (len(p) - done):
            break
        rejected.add(index)
    return rejected


@given(p_values)
def test_adjusted_p_is_the_smallest_level_at_which_the_procedure_rejects(p: list[float]) -> None:
    for index, adjusted in enumerate(holm(p)):
        level = Fraction(adjusted)
        if level < 1:
            assert index in _rejected(p, level)
        assert index not in _rejected(p, level - Fraction(1, 10**6))


def test_holm_of_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_rank_sets_of_a_worked_example() -> None:
    # 1 is better than 3 and 4, 2 is better than 4.
    assert rank_sets([1, 2, 3, 4], [(3, 1), (4, 1), (4, 2)]) == {
        1: RankSet(1, 2),
        2: RankSet(1, 3),
        3: RankSet(2, 4),
        4: RankSet(3, 4),
    }
    assert rank_sets([1, 2], [(1, 9), (9, 2)]) == {1: RankSet(1, 2), 2: RankSet(1, 2)}


@given(st.permutations(range(6)), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_true_ranks_are_in_their_sets_if_no_pair_is_wrong(
    order: list[int], pairs: set[tuple[int, int]]
) -> None:
    right = [(order[max(a, b)], order[min(a, b)]) for a, b in pairs if a != b]
    sets = rank_sets(list(range(6)), right)
    for position, member in enumerate(order):
        assert sets[member].best <= position + 1 <= sets[member].worst
