"""Questions about integers of few bits: their operands, answers and splits, made in two ways."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from numbench import jsonl
from numbench.records import Item
from numbench.tasks import SamplingSettings, short_integers
from numbench.tasks.random_words import RandomStream, attempts
from numbench.tasks.shards import Shard, generate_items
from numbench.vectorized.jsonl_encoding import json_lines
from numbench.vectorized.shards import generate_tables

TASKS = list(short_integers.SAMPLERS)


def items(task: str, bits: int, shift: int, count: int, split: str = "train") -> list[Item]:
    shard = Shard(task, 3, split, max_bits=bits, max_shift=shift)
    return list(islice(generate_items(shard), count))


@pytest.mark.parametrize(("bits", "shift"), [(6, 0), (8, 3), (24, 6)])
@pytest.mark.parametrize("task", TASKS)
def test_items_are_the_same_vectorized_and_one_by_one(task: str, bits: int, shift: int) -> None:
    shard = Shard(task, bits, "val", max_bits=bits, max_shift=shift)
    vectorized = b"".join(map(json_lines, generate_tables(shard, 300)))
    assert vectorized == b"".join(map(jsonl.encode, islice(generate_items(shard), 300)))


def is_operand(text: str, bits: int, shift: int) -> bool:
    """Whether a number is one of 1 … 2^bits − 1, divided by 10^1 … 10^shift (or not at all)."""
    powers = range(1, shift + 1) if shift else (0,)
    return any(
        (m := Fraction(text) * 10**power).denominator == 1 and 0 < m < 2**bits for power in powers
    )


def expected_answer(item: Item) -> object:
    """The answer by rational arithmetic and sorting, as numbers."""
    numbers = [Fraction(text) for text in item.operands]
    a, b = numbers[:2]
    match item.operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b
        case "minimum":
            return min(numbers)
        case "maximum":
            return max(numbers)
        case "interval":
            return "ABCDEF"[sum(bound <= a for bound in numbers[1:])]
        case _:
            return sorted(numbers, reverse=item.operator == "descending")


@given(st.sampled_from(TASKS), st.integers(4, 24), st.integers(0, 6))
def test_operands_are_short_and_answers_exact(task: str, bits: int, shift: int) -> None:
    for item in items(task, bits, shift, 20):
        operands = item.operands
        if task == "division":
            # The dividend is a product of two operands.
            quotient = Fraction(operands[0]) / Fraction(operands[1])
            assert is_operand(operands[1], bits, shift)
            powers = range(1, shift + 1) if shift else (0,)
            assert any(0 < quotient * 10**power < 2**bits for power in powers)
        else:
            first = 1 if task == "interval" else 0
            assert all(is_operand(text, bits, shift) for text in operands[first:])
        answer = (
            item.answer
            if task == "interval"
            else list(map(Fraction, item.answer))
            if isinstance(item.answer, tuple)
            else Fraction(item.answer)
        )
        assert answer == expected_answer(item)


def test_operands_are_uniform() -> None:
    words = attempts(RandomStream(1, "uniform", "test", 0), short_integers.WORDS_PER_ATTEMPT)
    settings = SamplingSettings(max_bits=4, max_shift=0)
    pairs = Counter(
        question.operands
        for one in islice(words, 22_500)
        if (question := short_integers.SAMPLERS["multiplication"](one, settings)) is not None
    )
    assert len(pairs) == 225
    assert chisquare(list(pairs.values())).pvalue > 1e-4


def test_the_position_of_an_interval_is_nearly_uniform() -> None:
    positions = Counter(
        item.params["position"]
        for item in items("interval", 16, 0, 8000)
        if item.params["length"] == 3
    )
    assert chisquare([positions[p] for p in range(4)]).pvalue > 1e-4


def test_a_held_out_pair_is_held_out_in_either_order() -> None:
    pairs = {
        split: {frozenset(item.operands) for item in items("multiplication", 6, 0, 400, split)}
        for split in ("test", "val", "train")
    }
    for one, other in (("test", "val"), ("test", "train"), ("val", "train")):
        assert not pairs[one] & pairs[other]


@pytest.mark.parametrize(
    ("tasks", "bits", "shift", "expected"),
    [
        (["addition"], 1, 0, "1 bits; use 2 to 24"),
        (["addition"], 25, 0, "25 bits; use 2 to 24"),
        (["addition"], 8, 7, "a shift of 7; use 0 to 6"),
        (["addition", "std"], 8, 0, "task 'std' has no questions about short integers; use minmax"),
    ],
)
def test_settings_without_questions_are_reported(
    tasks: list[str], bits: int, shift: int, expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        short_integers.check_settings(tasks, bits, shift)


def test_products_of_the_longest_integers_are_exact() -> None:
    longest = [item for item in items("division", 24, 0, 200) if item.params["bits_1"] == 24]
    assert longest
    assert max(len(item.operands[0]) for item in longest) <= 15
    assert np.all([int(i.operands[0]) % int(i.operands[1]) == 0 for i in longest])
