"""Random words: a fixed stream, uniform integers, weighted indices."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.tasks.random_words import RandomStream, RandomWords, attempts

WORD = st.integers(0, 2**64 - 1)
GOLDEN = [
    16419551194071424900,
    15665598198750580509,
    934294206336347199,
]


def test_the_stream_is_fixed() -> None:
    stream = RandomStream(1, "addition", "test", 0)
    first, second = islice(attempts(stream, 2), 2)
    assert [first.randbelow(2**64), first.randbelow(2**64), second.randbelow(2**64)] == GOLDEN


def test_attempts_are_consecutive_words_of_one_stream() -> None:
    stream = RandomStream(1, "mean", "val", 3)
    singly = [words.randbelow(2**64) for words in islice(attempts(stream, 1), 1000)]
    by_ten = [d.randbelow(2**64) for d in islice(attempts(stream, 10), 100) for _ in range(10)]
    assert singly == by_ten


@pytest.mark.parametrize("field", ["seed", "name", "split", "shard"])
def test_every_part_of_the_address_changes_the_stream(field: str) -> None:
    stream = RandomStream(1, "mean", "val", 3)
    other = stream._replace(**{field: 2 if field in ("seed", "shard") else "other"})
    assert stream.philox_key() != other.philox_key()


@given(WORD, st.integers(1, 10**18))
def test_below_maps_words_evenly_and_monotonically(word: int, bound: int) -> None:
    value = RandomWords([word]).randbelow(bound)
    assert 0 <= value < bound
    assert value * 2**64 <= word * bound < (value + 1) * 2**64


@given(WORD, st.lists(st.integers(0, 50), min_size=1, max_size=9).filter(any))
def test_a_weighted_index_never_has_weight_zero(word: int, weights: list[int]) -> None:
    assert weights[RandomWords([word]).weighted_index(weights)] > 0


def test_weights_are_proportions() -> None:
    weights = [1, 0, 2, 5]
    step = 2**64 // 8
    hits = [RandomWords([i * step]).weighted_index(weights) for i in range(8)]
    assert [hits.count(i) for i in range(4)] == weights
