"""Questions with few significant bits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bench.batch.text import plain
from bench.bittoken.data import binary
from bench.tasks.items import split_of


def operands(task: str, size: int, count: int = 4000) -> list[tuple[str, str]]:
    made = binary.sample(task, size, seed=2, split="train", index=0, first=0, count=count)
    columns = [
        plain(type(made.operands)(*(part[:, side] for part in made.operands))).to_pylist()
        for side in (0, 1)
    ]
    return list(zip(*columns, strict=True))


def bits(value: Fraction) -> int:
    """Significant bits of a number m · 2^e."""
    denominator = value.denominator
    assert denominator & (denominator - 1) == 0, f"{value} is no binary fraction"
    m = abs(value.numerator)
    return (m // (m & -m)).bit_length()


@pytest.mark.parametrize("size", binary.SIZES)
@pytest.mark.parametrize("task", binary.TASKS)
def test_numbers_have_few_bits_and_are_printed_exactly(task: str, size: int) -> None:
    pairs = operands(task, size, 2000)
    assert len(pairs) > 150
    most = 0
    for a, b in pairs:
        first, second = Fraction(a), Fraction(b)
        short = (first / second, second) if task == "division" else (first, second)
        for number in short:
            assert bits(number) <= size
            most = max(most, bits(number))
        for text, value in ((a, first), (b, second)):
            assert Fraction(float(text)) == value
            assert len(text.lstrip("-").replace(".", "").lstrip("0")) <= 15
            assert Fraction(1, 10**14) <= abs(value) < 10**15
        assert split_of((a, b)) == "train"
    # A dividend of 15 digits leaves little room for two long numbers.
    assert most >= (size - 5 if task == "division" else size)


@pytest.mark.parametrize("task", binary.TASKS)
def test_signs_come_40_20_20_20(task: str) -> None:
    pairs = operands(task, 8)
    signs = np.array([[a.startswith("-"), b.startswith("-")] for a, b in pairs])
    shares = [
        float((signs == pair).all(axis=1).mean()) for pair in ((0, 0), (1, 0), (0, 1), (1, 1))
    ]
    # Five standard deviations at 1000 questions are below 0.08.
    assert len(pairs) > 1000
    assert shares == pytest.approx([0.4, 0.2, 0.2, 0.2], abs=0.08)


def test_sums_and_differences_are_asked_alike() -> None:
    made = binary.sample("addition", 8, seed=2, split="train", index=0, first=0, count=4000)
    assert 0.4 < made.operator.mean() < 0.6
    product = binary.sample("multiplication", 8, seed=2, split="train", index=0, first=0, count=99)
    assert not product.operator.any()


def test_attempts_do_not_depend_on_how_they_are_blocked() -> None:
    def drawn(first: int, count: int) -> list[list[int]]:
        made = binary.sample(
            "division", 20, seed=2, split="train", index=0, first=first, count=count
        )
        return made.operands.significand.tolist()

    assert drawn(0, 60) + drawn(60, 140) == drawn(0, 200)
