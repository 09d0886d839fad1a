"""Base 2 with fixed positions, compared with integer and fraction arithmetic of Python."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bittoken.encodings.base2_fixed import Base2Fixed
from tests.bittoken.encodings.values import (
    decimals,
    finite_and_infinite,
    random_codes,
    same_bits,
)

ENCODING = Base2Fixed()
MAGNITUDE_BITS = 151


def _bits(values: list[float]) -> list[str]:
    """Return the bits of the vectors as text."""
    vectors = ENCODING.vector(ENCODING.encode(np.array(values)))
    assert set(np.unique(vectors)) <= {-1, 1}
    return ["".join("01"[int(channel > 0)] for channel in row) for row in vectors]


def _expected(value: float) -> str:
    """Return the sign and 151 bits of |value| · 2^101, rounded half to even."""
    sign = "1" if math.copysign(1, value) < 0 else "0"
    if abs(value) >= 2**50:
        return sign + "1" * MAGNITUDE_BITS
    return f"{sign}{round(abs(Fraction(value)) * 2**101):0{MAGNITUDE_BITS}b}"


def test_vectors_match_examples() -> None:
    assert _bits([1.0, -2.5, 2.0**-101, -0.0, math.inf]) == [
        "0" + "0" * 49 + "1" + "0" * 101,
        "1" + "0" * 48 + "10" + "1" + "0" * 100,
        "0" + "0" * 150 + "1",
        "1" + "0" * 151,
        "0" + "1" * 151,
    ]


@given(st.floats(allow_nan=False) | st.floats(-2e15, 2e15) | st.floats(-1e-13, 1e-13))
def test_vectors_of_arbitrary_floats_match_exact_arithmetic(value: float) -> None:
    assert _bits([value]) == [_expected(value)]


def test_bits_below_the_last_one_are_rounded_half_to_even() -> None:
    ties = [half / 2 * 2.0**-101 for half in (1, 2, 3, 5, 7)]
    tiny = np.random.default_rng(7).random(500) * 2.0**-60
    values = [*ties, *tiny.tolist()]
    assert _bits(values) == [_expected(value) for value in values]
    assert [int(row, 2) for row in _bits(ties)] == [0, 1, 2, 2, 4]


def test_numbers_of_the_tasks_are_decoded_exactly() -> None:
    values = decimals()
    codes = ENCODING.nearest_codes(ENCODING.vector(ENCODING.encode(values)))
    assert same_bits(ENCODING.decode(codes), values)


def test_floats_from_1_8e_minus_15_to_below_2_to_the_50_are_decoded_exactly() -> None:
    values = finite_and_infinite()
    in_range = values[(np.abs(values) >= 2.0**-49) & (np.abs(values) < 2.0**50)]
    limits = np.array([2.0**-49, np.nextafter(2.0**50, 0), -np.nextafter(2.0**50, 0), 0.0, -0.0])
    assert len(in_range) > 1000
    for inside in (in_range, limits):
        assert same_bits(ENCODING.decode(ENCODING.encode(inside)), inside)


def test_numbers_out_of_range_are_decoded_to_infinity() -> None:
    values = np.array([2.0**50, -(2.0**50), 1e300, -math.inf])
    assert ENCODING.decode(ENCODING.encode(values)).tolist() == [
        math.inf, -math.inf, math.inf, -math.inf,
    ]  # fmt: skip


def test_predicted_codes_are_decoded_to_the_nearest_float() -> None:
    codes = random_codes(ENCODING, 300)
    for row, decoded in zip(codes, ENCODING.decode(codes).tolist(), strict=True):
        integer = int.from_bytes(row.tobytes())
        exact = float(Fraction(integer % 2**MAGNITUDE_BITS, 2**101))
        assert decoded == (-exact if integer >= 2**MAGNITUDE_BITS else exact)


def test_bits_are_set_if_their_logit_is_positive() -> None:
    outputs = np.full((1, 152), -1e-30, np.float32)
    outputs[0, 0] = outputs[0, 151] = 1e-30
    outputs[0, 1] = 0
    assert ENCODING.predict_codes(outputs)[0].tolist() == [0x80, *[0] * 17, 1]


def test_loss_is_the_mean_binary_cross_entropy() -> None:
    codes = torch.from_numpy(ENCODING.encode(np.array([-2.5])))
    # -2.5 has three bits set. At logit 2, a set bit costs log(1 + e^-2) and any other log(1 + e^2).
    expected = (3 * math.log(1 + math.exp(-2)) + 149 * math.log(1 + math.exp(2))) / 152
    assert ENCODING.loss(torch.full((1, 152), 2.0), codes).item() == pytest.approx(expected)
