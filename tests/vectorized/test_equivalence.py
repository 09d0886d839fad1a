"""The vectorized code gives the same items as the scalar code, byte for byte."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numbench import jsonl
from numbench.decimal_numbers import DecimalNumber
from numbench.decimal_numbers import format_decimal as format_one
from numbench.decimal_numbers import normalize as normalize_one
from numbench.tasks import PAPER_TASKS, shards
from numbench.tasks.random_words import RandomStream, attempts
from numbench.tasks.shards import ItemsExhausted, Shard, generate_items
from numbench.vectorized import double_double
from numbench.vectorized.decimal_arrays import (
    DecimalArray,
    bit_length,
    ceil_log10,
    digit_count,
    floor_log2,
    floor_log10,
    format_decimals,
    normalize,
)
from numbench.vectorized.jsonl_encoding import json_lines
from numbench.vectorized.random_words import RandomWordArrays, high_product
from numbench.vectorized.samplers import SAMPLERS
from numbench.vectorized.shards import ATTEMPTS_PER_BATCH, SeenHashes, generate_tables
from tests import reference_answers

pytestmark = pytest.mark.slow

POSITIVE = st.integers(1, 2**61)


@pytest.mark.parametrize("digits", [3, 9, 15, 17])
@pytest.mark.parametrize("task", PAPER_TASKS)
def test_a_shard_has_the_same_items_vectorized_and_one_by_one(task: str, digits: int) -> None:
    shard = Shard(task, seed=digits, split="train", max_digits=digits)
    vectorized = b"".join(map(json_lines, generate_tables(shard, 3000)))
    assert vectorized == b"".join(map(jsonl.encode, islice(generate_items(shard), 3000)))


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_a_shard_of_a_rare_split_has_the_same_items_across_blocks(task: str) -> None:
    shard = Shard(task, seed=4, split="val", index=2, count=5)
    rows = ATTEMPTS_PER_BATCH // 40 + 300  # more than one block can hold
    vectorized = b"".join(map(json_lines, generate_tables(shard, rows)))
    assert vectorized == b"".join(map(jsonl.encode, islice(generate_items(shard), rows)))


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


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_the_content_of_a_shard_is_pinned(task: str) -> None:
    lines = b"".join(map(json_lines, generate_tables(Shard(task, 1, "train", 1, 3), 5000)))
    assert hashlib.sha256(lines).hexdigest()[:16] == GOLDEN[task]


def test_the_paper_tasks_are_vectorized() -> None:
    assert set(SAMPLERS) == set(PAPER_TASKS)


@given(st.integers(0, 40), st.integers(1, 7))
def test_words_of_a_block_are_those_of_the_stream(first: int, words: int) -> None:
    stream = RandomStream(1, "words", "train", 0)
    block = RandomWordArrays(stream, words, first, 3)
    scalar = list(islice(attempts(stream, words), first, first + 3))
    for _ in range(words):
        assert block.randbelow(10**17).tolist() == [one.randbelow(10**17) for one in scalar]


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**63 - 1))
def test_high_product(a: int, b: int) -> None:
    assert int(high_product(np.array([a], np.uint64), np.array([b], np.uint64))[0]) == a * b >> 64


@given(st.lists(st.lists(st.integers(0, 300), max_size=30), max_size=12), st.integers(0, 4))
def test_seen_hashes_report_first_appearances_like_a_set(
    batches: list[list[int]], spread: int
) -> None:
    seen, model = SeenHashes(4), set[int]()
    for batch in batches:
        # Depending on the spread, adjacent values share a slot of the filter or not.
        hashes = [value << 8 * spread for value in batch]
        expected = []
        for value in hashes:
            expected.append(value not in model)
            model.add(value)
        assert seen.add(np.array(hashes, np.uint64)).tolist() == expected
    assert seen.count == len(model)


@given(st.lists(st.tuples(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(-46, 0))))
def test_formatting_and_normalization_equal_the_scalar_code(pairs: list[tuple[int, int]]) -> None:
    pairs = [(s, e) for s, e in pairs if e + len(str(abs(s))) <= 18]
    numbers = DecimalArray(
        np.array([s for s, _ in pairs], np.int64), np.array([e for _, e in pairs], np.int64)
    )
    assert format_decimals(numbers).to_pylist() == [
        format_one(DecimalNumber(*pair)) for pair in pairs
    ]
    assert list(zip(*map(np.ndarray.tolist, normalize(numbers)), strict=True)) == [
        normalize_one(DecimalNumber(*pair)) for pair in pairs
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
    x, y = double_double.from_ints(np.array([a])), double_double.from_ints(np.array([b]))
    x = double_double.multiply(x, double_double.power_of_ten(np.array([shift])))
    value = Fraction(a) * 10**shift
    function, true = {
        "+": (double_double.add, value + b),
        "*": (double_double.multiply, value * b),
        "/": (double_double.divide, value / b),
    }[operator]
    numbers, proved = double_double.round_to_digits(function(x, y))
    got = Fraction(int(numbers.significand[0])) * Fraction(10) ** int(numbers.exponent[0])
    assert not proved[0] or got == reference_answers.rounded(true)


def test_ties_are_never_proved_by_floating_point() -> None:
    ties = np.array([1234567890123455, 1234567890123465, -9999999999999995])
    _, proved = double_double.round_to_digits(double_double.from_ints(ties))
    assert not proved.any()


def test_an_exhausted_shard_is_reported() -> None:
    with pytest.raises(ItemsExhausted) as end:
        list(generate_tables(Shard("exponentiation", max_digits=3, split="val"), 10**6))
    assert 15_000 < end.value.item_count < 25_000


def test_an_exhausted_shard_is_reported_by_the_scalar_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "EXHAUSTION_WINDOW", 10)
    monkeypatch.setattr(shards, "MIN_NEW_FRACTION", 1 / 2)
    with pytest.raises(ItemsExhausted) as end:
        list(generate_items(Shard("exponentiation", max_digits=3, split="val", index=7, count=8)))
    assert 10 < end.value.item_count < 2500


def test_a_task_that_is_not_vectorized_uses_the_scalar_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shard = Shard("division", seed=8)
    vectorized = b"".join(map(json_lines, generate_tables(shard, 1500)))
    monkeypatch.delitem(SAMPLERS, "division")
    assert b"".join(map(json_lines, generate_tables(shard, 1500))) == vectorized
