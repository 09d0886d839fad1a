"""The batches give what the plain code gives: item for item, byte for byte."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import jsonl
from bench.batch import rounding
from bench.batch.distinct import Seen
from bench.batch.fixed import (
    Numbers,
    bit_length,
    ceil_log10,
    digit_count,
    floor_log2,
    floor_log10,
    reduced,
)
from bench.batch.lines import json_lines
from bench.batch.rows import SAMPLERS
from bench.batch.stream import BLOCK, tables
from bench.batch.text import plain
from bench.batch.words import Words, high_product
from bench.numerals import Number
from bench.numerals import plain as plain_one
from bench.numerals import reduced as reduced_one
from bench.tasks import TASKS, shards
from bench.tasks.draws import Stream, attempts
from bench.tasks.shards import Exhausted, Shard, items
from tests import exact

POSITIVE = st.integers(1, 2**61)


@pytest.mark.parametrize("digits", [3, 9, 15, 17])
@pytest.mark.parametrize("task", TASKS)
def test_a_shard_is_the_same_in_batches_and_item_by_item(task: str, digits: int) -> None:
    shard = Shard(task, seed=digits, split="train", max_digits=digits)
    batched = b"".join(map(json_lines, tables(shard, 3000)))
    assert batched == b"".join(map(jsonl.encode, islice(items(shard), 3000)))


@pytest.mark.parametrize("task", TASKS)
def test_a_share_of_a_rare_split_is_the_same_across_blocks(task: str) -> None:
    shard = Shard(task, seed=4, split="val", index=2, count=5)
    rows = BLOCK // 40 + 300  # more than one block can hold
    batched = b"".join(map(json_lines, tables(shard, rows)))
    assert batched == b"".join(map(jsonl.encode, islice(items(shard), rows)))


GOLDEN = {
    "minmax": "0b77e393024cd228",
    "interval": "d1ffa0f8dd2ab676",
    "sorting": "70dffb9b383dd2a5",
    "addition": "aef48851527f632f",
    "multiplication": "0a8fd6431d0ec156",
    "division": "fb8386b6cc0e18e8",
    "exponentiation": "c72e45e353ed95d2",
    "mean": "b1362aed47bf788b",
    "std": "b803a3cad16dfe29",
}


@pytest.mark.parametrize("task", TASKS)
def test_the_content_of_a_shard_is_pinned(task: str) -> None:
    lines = b"".join(map(json_lines, tables(Shard(task, 1, "train", 1, 3), 5000)))
    assert hashlib.sha256(lines).hexdigest()[:16] == GOLDEN[task]


def test_every_task_has_a_twin() -> None:
    assert set(SAMPLERS) == set(TASKS)


@given(st.integers(0, 40), st.integers(1, 7))
def test_words_of_a_block_are_those_of_the_stream(first: int, words: int) -> None:
    stream = Stream(1, "words", "train", 0)
    block = Words(stream, words, first, 3)
    plain_draws = list(islice(attempts(stream, words), first, first + 3))
    for _ in range(words):
        assert block.below(10**17).tolist() == [draws.below(10**17) for draws in plain_draws]


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**63 - 1))
def test_high_product(a: int, b: int) -> None:
    assert int(high_product(np.array([a], np.uint64), np.array([b], np.uint64))[0]) == a * b >> 64


@given(st.lists(st.lists(st.integers(0, 300), max_size=30), max_size=12), st.integers(0, 4))
def test_seen_tells_first_appearances_like_a_set(batches: list[list[int]], spread: int) -> None:
    seen, model = Seen(4), set[int]()
    for batch in batches:
        # Neighbours share a slot of the filter, or differ in it, depending on the spread.
        hashes = [value << 8 * spread for value in batch]
        expected = []
        for value in hashes:
            expected.append(value not in model)
            model.add(value)
        assert seen.add(np.array(hashes, np.uint64)).tolist() == expected
    assert seen.count == len(model)


@given(st.lists(st.tuples(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(-46, 0))))
def test_text_and_reduction(pairs: list[tuple[int, int]]) -> None:
    pairs = [(s, e) for s, e in pairs if e + len(str(abs(s))) <= 18]
    numbers = Numbers(
        np.array([s for s, _ in pairs], np.int64), np.array([e for _, e in pairs], np.int64)
    )
    assert plain(numbers).to_pylist() == [plain_one(Number(*pair)) for pair in pairs]
    assert list(zip(*map(np.ndarray.tolist, reduced(numbers)), strict=True)) == [
        reduced_one(Number(*pair)) for pair in pairs
    ]


@given(POSITIVE, POSITIVE)
def test_binary_logarithms_and_lengths(a: int, b: int) -> None:
    x, y = np.array([a]), np.array([b])
    floor = int(floor_log2(x, y)[0])
    assert Fraction(2) ** floor <= Fraction(a, b) < Fraction(2) ** (floor + 1)
    assert int(bit_length(x)[0]) == a.bit_length()


@given(st.integers(1, 10**18 - 1) | st.integers(0, 17).map(lambda k: 10**k), st.integers(1, 9))
def test_decimal_logarithms_and_lengths(a: int, b: int) -> None:
    x, y = np.array([a]), np.array([b])
    floor, ceil = int(floor_log10(x, y)[0]), int(ceil_log10(x, y)[0])
    assert Fraction(10) ** floor <= Fraction(a, b) < Fraction(10) ** (floor + 1)
    assert Fraction(10) ** (ceil - 1) < Fraction(a, b) <= Fraction(10) ** ceil
    assert int(digit_count(x)[0]) == len(str(a))


INTS = st.integers(-(10**17), 10**17).filter(bool)


@settings(max_examples=400)
@given(INTS, INTS, st.integers(0, 16), st.sampled_from("+*/"))
def test_a_proved_rounding_is_right(a: int, b: int, shift: int, operator: str) -> None:
    x, y = rounding.of_ints(np.array([a])), rounding.of_ints(np.array([b]))
    x = rounding.multiply(x, rounding.ten_to(np.array([shift])))
    value = Fraction(a) * 10**shift
    function, true = {
        "+": (rounding.add, value + b),
        "*": (rounding.multiply, value * b),
        "/": (rounding.divide, value / b),
    }[operator]
    numbers, proved = rounding.to_digits(function(x, y))
    got = Fraction(int(numbers.significand[0])) * Fraction(10) ** int(numbers.exponent[0])
    assert not proved[0] or got == exact.rounded(true)


def test_ties_are_never_proved_by_floating_point() -> None:
    ties = np.array([1234567890123455, 1234567890123465, -9999999999999995])
    _, proved = rounding.to_digits(rounding.of_ints(ties))
    assert not proved.any()


def test_a_shard_without_more_items_says_so() -> None:
    with pytest.raises(Exhausted) as end:
        list(tables(Shard("exponentiation", max_digits=3, split="val"), 10**6))
    assert 15_000 < end.value.found < 25_000


def test_the_plain_code_says_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "PATIENCE", 10)
    monkeypatch.setattr(shards, "LEAST_NEW", 1 / 2)
    with pytest.raises(Exhausted) as end:
        list(items(Shard("exponentiation", max_digits=3, split="val", index=7, count=8)))
    assert 10 < end.value.found < 2500


def test_a_task_without_a_twin_is_made_by_the_plain_code(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = Shard("division", seed=8)
    batched = b"".join(map(json_lines, tables(shard, 1500)))
    monkeypatch.delitem(SAMPLERS, "division")
    assert b"".join(map(json_lines, tables(shard, 1500))) == batched
