"""Base 10 with fixed positions, compared with decimal arithmetic of Python."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal, localcontext

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bittoken.encodings.base10_fixed import Base10Fixed
from tests.bittoken.encodings.values import (
    decimals,
    finite_and_infinite,
    random_codes,
    same_bits,
)

ENCODING = Base10Fixed()


def _code_texts(values: list[float]) -> list[str]:
    return ["".join(map(str, row)) for row in ENCODING.encode(np.array(values)).tolist()]


def _expected(value: float) -> str:
    """Return the sign and the 43 digits of the shortest decimal, rounded to 10^-28."""
    sign = "1" if math.copysign(1, value) < 0 else "0"
    if abs(value) >= 1e15:
        return sign + "9" * 43
    with localcontext() as context:
        context.prec = 400
        rounded = abs(Decimal(repr(value))).quantize(Decimal("1e-28"), ROUND_HALF_EVEN)
        return f"{sign}{int(rounded.scaleb(28)):043d}"


def test_codes_match_examples() -> None:
    assert _code_texts([1.0, -2.5, 0.1, -0.0, math.inf]) == [
        "0" + "0" * 14 + "1" + "0" * 28,
        "1" + "0" * 14 + "2" + "5" + "0" * 27,
        "0" + "0" * 15 + "1" + "0" * 27,
        "1" + "0" * 43,
        "0" + "9" * 43,
    ]


def test_vectors_match_examples() -> None:
    """-2.5: sign 1, then ten channels per digit."""
    vector = ENCODING.vector(ENCODING.encode(np.array([-2.5])))[0]
    digits = {14: 2, 15: 5}
    hot = [1, *(2 + 10 * position + digits.get(position, 0) for position in range(43))]
    assert np.flatnonzero(vector).tolist() == hot
    assert (vector[hot] == 1).all() and len(vector) == 432


@given(st.floats(allow_nan=False) | st.floats(-1e16, 1e16) | st.floats(-1e-20, 1e-20))
def test_codes_of_arbitrary_floats_match_decimal_arithmetic(value: float) -> None:
    assert _code_texts([value]) == [_expected(value)]


def test_digits_below_the_last_one_are_rounded_half_to_even() -> None:
    ties = [5e-29, 1.5e-28, 2.5e-28, 9.5e-28]
    tiny = np.random.default_rng(7).random(500) * 1e-14
    values = [*ties, *tiny.tolist()]
    assert _code_texts(values) == [_expected(value) for value in values]
    assert [int(row) for row in _code_texts(ties)] == [0, 2, 2, 10]


def test_numbers_of_the_tasks_are_decoded_exactly() -> None:
    values = decimals()
    codes = ENCODING.nearest_codes(ENCODING.vector(ENCODING.encode(values)))
    assert same_bits(ENCODING.decode(codes), values)


def test_floats_from_1e_minus_12_to_below_1e15_are_decoded_exactly() -> None:
    values = finite_and_infinite()
    in_range = values[(np.abs(values) >= 1e-12) & (np.abs(values) < 1e15)]
    limits = np.array([1e-12, np.nextafter(1e15, 0), -np.nextafter(1e15, 0), 0.0, -0.0])
    assert len(in_range) > 900
    for inside in (in_range, limits):
        assert same_bits(ENCODING.decode(ENCODING.encode(inside)), inside)


def test_numbers_out_of_range_are_decoded_to_infinity() -> None:
    values = np.array([1e15, -1e15, 1e300, -math.inf])
    assert ENCODING.decode(ENCODING.encode(values)).tolist() == [
        math.inf, -math.inf, math.inf, -math.inf,
    ]  # fmt: skip


def test_predicted_codes_are_decoded_as_decimals() -> None:
    codes = random_codes(ENCODING, 300)
    for row, decoded in zip(codes.tolist(), ENCODING.decode(codes).tolist(), strict=True):
        sign, *digits = row
        text = "".join(map(str, digits))
        assert decoded == float(f"{'-' * sign}{text[:15]}.{text[15:]}")


def test_loss_is_the_mean_cross_entropy_over_the_positions() -> None:
    codes = torch.from_numpy(ENCODING.encode(np.array([-2.5])))
    outputs = torch.zeros(1, 432)
    outputs[0, 1] = 3  # the right sign
    outputs[0, 2 + 140 + 7] = 3  # a wrong digit
    sign = math.log(1 + math.exp(-3))
    digit = math.log(9 + math.exp(3))
    expected = (sign + digit + 42 * math.log(10)) / 44
    assert ENCODING.loss(outputs, codes).item() == pytest.approx(expected)
