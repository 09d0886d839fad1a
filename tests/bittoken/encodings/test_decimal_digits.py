"""Decimal digits, compared with those of Python."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bittoken.encodings.decimal_digits import (
    digits_to_int,
    int_to_digits,
    parse_decimals,
    shortest_decimals,
)
from tests.bittoken.encodings.values import decimals, finite_and_infinite

POSITIVE = st.floats(min_value=0, allow_infinity=False, allow_nan=False)


def _expected(value: float) -> tuple[int, int]:
    """Return 17 significand digits and the exponent of the first, from the shortest repr."""
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert sign == 0 and isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return 0, 0
    return int(text.ljust(17, "0")), exponent + len(text) - 1


def _assert_shortest(values: np.ndarray) -> None:
    result = shortest_decimals(values)
    pairs = list(zip(result.significand.tolist(), result.exponent.tolist(), strict=True))
    assert pairs == [_expected(value) for value in values.tolist()]


def test_shortest_resultequal_repr() -> None:
    finite = finite_and_infinite()[np.isfinite(finite_and_infinite())]
    _assert_shortest(np.abs(finite[::7]))
    _assert_shortest(np.abs(decimals(3000)))


def test_more_numbers_than_one_block() -> None:
    values = np.arange(40_000) / 8
    result = shortest_decimals(values)
    assert len(result.significand) == 40_000
    _assert_shortest(values[::997])


@given(st.lists(POSITIVE, max_size=20))
def test_shortest_resultof_arbitrary_floats_equal_repr(values: list[float]) -> None:
    _assert_shortest(np.array(values, np.float64))


@given(st.lists(st.integers(0, 10**17 - 1), max_size=10))
def test_digits_to_int_is_the_inverse_of_int_to_digits(values: list[int]) -> None:
    numbers = np.array(values, np.int64)
    digits = int_to_digits(numbers, 17)
    assert ["".join(map(str, row)) for row in digits.tolist()] == [f"{n:017d}" for n in values]
    assert np.array_equal(digits_to_int(digits), numbers)


@given(st.lists(st.integers(0, 10**30 - 1), min_size=1, max_size=10), st.integers(-340, 320))
def test_parsing_rounds_as_float_does(values: list[int], exponent: int) -> None:
    """Thirty digits, so that ties and near ties occur."""
    texts = [f"{number:030d}e{exponent:+04d}" for number in values]
    rows = np.array([list(text.encode()) for text in texts], np.uint8)
    assert parse_decimals(rows).tolist() == [float(text) for text in texts]


def test_ties_are_rounded_to_even() -> None:
    texts = ["9007199254740993.0000", "9007199254740993.0001", "9007199254740995.0000"]
    rows = np.array([list(text.encode()) for text in texts], np.uint8)
    assert parse_decimals(rows).tolist() == [9007199254740992, 9007199254740994, 9007199254740996]
