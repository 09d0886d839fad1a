"""Questions with few significant bits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bittoken.data import binary_questions
from numbench.tasks.items import split_of
from numbench.vectorized.decimal_arrays import format_decimals


def sample_operands(task: str, size: int, count: int = 4000) -> list[tuple[str, str]]:
    questions = binary_questions.sample(
        task, size, seed=2, split="train", index=0, first=0, count=count
    )
    columns = [
        format_decimals(
            type(questions.operands)(*(part[:, side] for part in questions.operands))
        ).to_pylist()
        for side in (0, 1)
    ]
    return list(zip(*columns, strict=True))


def bits(value: Fraction) -> int:
    """Return the number of significant bits of m · 2^e."""
    denominator = value.denominator
    assert denominator & (denominator - 1) == 0, f"{value} is not a binary fraction"
    m = abs(value.numerator)
    return (m // (m & -m)).bit_length()


@pytest.mark.parametrize("size", binary_questions.SIZES)
@pytest.mark.parametrize("task", binary_questions.TASKS)
def test_operands_have_few_bits_and_are_printed_exactly(task: str, size: int) -> None:
    pairs = sample_operands(task, size, 2000)
    assert len(pairs) > 150
    max_bits = 0
    for a, b in pairs:
        first, second = Fraction(a), Fraction(b)
        few_bits = (first / second, second) if task == "division" else (first, second)
        for number in few_bits:
            assert bits(number) <= size
            max_bits = max(max_bits, bits(number))
        for text, value in ((a, first), (b, second)):
            assert Fraction(float(text)) == value
            assert len(text.lstrip("-").replace(".", "").lstrip("0")) <= 15
            assert Fraction(1, 10**14) <= abs(value) < 10**15
        assert split_of((a, b)) == "train"
    # The dividend, limited to 15 digits, is the product of both numbers.
    assert max_bits >= (size - 5 if task == "division" else size)


@pytest.mark.parametrize("task", binary_questions.TASKS)
def test_signs_have_probabilities_40_20_20_20(task: str) -> None:
    pairs = sample_operands(task, 8)
    signs = np.array([[a.startswith("-"), b.startswith("-")] for a, b in pairs])
    shares = [
        float((signs == pair).all(axis=1).mean()) for pair in ((0, 0), (1, 0), (0, 1), (1, 1))
    ]
    # Five standard deviations at 1000 questions are below 0.08.
    assert len(pairs) > 1000
    assert shares == pytest.approx([0.4, 0.2, 0.2, 0.2], abs=0.08)


def test_sums_and_differences_are_equally_frequent() -> None:
    questions = binary_questions.sample(
        "addition", 8, seed=2, split="train", index=0, first=0, count=4000
    )
    assert 0.4 < questions.operator.mean() < 0.6
    product = binary_questions.sample(
        "multiplication", 8, seed=2, split="train", index=0, first=0, count=99
    )
    assert not product.operator.any()


def test_attempts_do_not_depend_on_the_block_size() -> None:
    def significands(first: int, count: int) -> list[list[int]]:
        questions = binary_questions.sample(
            "division", 20, seed=2, split="train", index=0, first=first, count=count
        )
        return questions.operands.significand.tolist()

    assert significands(0, 60) + significands(60, 140) == significands(0, 200)
