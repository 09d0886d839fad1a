"""Decimal digits against Python's own."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bench.bittoken.encodings.decimals import digits_of, number_of, parsed, shortest
from tests.bittoken.encodings.values import decimals, everywhere

POSITIVE = st.floats(min_value=0, allow_infinity=False, allow_nan=False)


def _expected(value: float) -> tuple[int, int]:
    """Significand of 17 digits and exponent of the first, from Python's shortest repr."""
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert sign == 0 and isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return 0, 0
    return int(text.ljust(17, "0")), exponent + len(text) - 1


def _check(values: np.ndarray) -> None:
    found = shortest(values)
    pairs = list(zip(found.significand.tolist(), found.exponent.tolist(), strict=True))
    assert pairs == [_expected(value) for value in values.tolist()]


def test_shortest_decimals_are_python_s() -> None:
    finite = everywhere()[np.isfinite(everywhere())]
    _check(np.abs(finite[::7]))
    _check(np.abs(decimals(3000)))


def test_more_numbers_than_a_block_holds() -> None:
    values = np.arange(40_000) / 8
    found = shortest(values)
    assert len(found.significand) == 40_000
    _check(values[::997])


@given(st.lists(POSITIVE, max_size=20))
def test_shortest_decimals_of_any_floats(listed: list[float]) -> None:
    _check(np.array(listed, np.float64))


@given(st.lists(st.integers(0, 10**17 - 1), max_size=10))
def test_digits_and_numbers_are_inverse(listed: list[int]) -> None:
    numbers = np.array(listed, np.int64)
    digits = digits_of(numbers, 17)
    assert ["".join(map(str, row)) for row in digits.tolist()] == [f"{n:017d}" for n in listed]
    assert np.array_equal(number_of(digits), numbers)


@given(st.lists(st.integers(0, 10**30 - 1), min_size=1, max_size=10), st.integers(-340, 320))
def test_parsing_is_rounded_as_python_does(listed: list[int], exponent: int) -> None:
    """Thirty digits, so that ties and near ties of float64 are among them."""
    texts = [f"{number:030d}e{exponent:+04d}" for number in listed]
    rows = np.array([list(text.encode()) for text in texts], np.uint8)
    assert parsed(rows).tolist() == [float(text) for text in texts]


def test_halfway_decimals_are_rounded_to_even() -> None:
    texts = ["9007199254740993.0000", "9007199254740993.0001", "9007199254740995.0000"]
    rows = np.array([list(text.encode()) for text in texts], np.uint8)
    assert parsed(rows).tolist() == [9007199254740992, 9007199254740994, 9007199254740996]
