"""FoNE, compared with decimal arithmetic and high-precision sines."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal, localcontext

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bittoken.encodings.fone import FoNE
from tests.bittoken.encodings.values import decimals, finite_and_infinite, random_codes, same_bits

ENCODING = FoNE()
LAST_DIGIT = Decimal(1).scaleb(-32)


def _digits(value: float) -> str:
    """Return 49 digits of the shortest decimal, rounded to the last digit."""
    with localcontext() as context:
        context.prec = 400
        rounded = abs(Decimal(repr(value))).quantize(LAST_DIGIT, ROUND_HALF_EVEN)
        return f"{int(rounded.scaleb(32)):049d}"


def _code_texts(values: list[float]) -> list[str]:
    return ["".join(map(str, row)) for row in ENCODING.encode(np.array(values)).tolist()]


def test_codes_match_examples() -> None:
    assert _code_texts([1.0, -2.5, 0.1]) == [
        "0" * 16 + "1" + "0" * 32,
        "0" * 16 + "25" + "0" * 31,
        "0" * 17 + "1" + "0" * 31,
    ]


def test_vectors_match_examples() -> None:
    """-2.5: quarter turn of period 10, half turn of period 1, zero below; 10^-k turns above."""
    codes = ENCODING.encode(np.array([-2.5]))
    vector = ENCODING.vector(codes).reshape(49, 2)
    assert vector[16].tolist() == [0, 1]
    assert vector[17].tolist() == [-1, 0]
    assert (vector[18:] == [1, 0]).all()
    hundredth = [math.cos(math.pi / 20), math.sin(math.pi / 20)]
    assert vector[15] == pytest.approx(hundredth, abs=1e-7)
    assert vector[0, 1] == pytest.approx(2 * math.pi * 2.5e-17, rel=1e-6)


def test_digits_are_those_of_the_shortest_decimal() -> None:
    rng = np.random.default_rng(6)
    tiny = rng.random(400) * 10.0 ** rng.integers(-40, -10, 400)
    values = np.concatenate([decimals(400), tiny, [1.5e-32, 2.5e-32, 5e-33, 5.1e-33, 9.5e-32]])
    values = np.concatenate([values, [99999999999999984.0, 1e16, 12345678901234568.0]])
    assert _code_texts(values.tolist()) == [_digits(value) for value in values.tolist()]


@given(st.floats(min_value=-9e16, max_value=9e16, allow_nan=False))
def test_digits_of_arbitrary_floats_match_decimal_arithmetic(value: float) -> None:
    assert _code_texts([value]) == [_digits(value)]


def test_points_are_the_nearest_float32() -> None:
    codes = np.concatenate([ENCODING.encode(decimals(20)), random_codes(ENCODING, 10)])
    vectors = ENCODING.vector(codes).reshape(-1, 49, 2)
    with mpmath.workdps(60):
        for row, points in zip(codes.tolist(), vectors, strict=True):
            text = "".join(map(str, row))
            for position, point in enumerate(points):
                angle = 2 * mpmath.pi * mpmath.mpf(f"0.{text[position:]}")
                for actual, exact in zip(
                    point, (mpmath.cos(angle), mpmath.sin(angle)), strict=True
                ):
                    half_spacing = float(np.spacing(np.abs(actual))) / 2
                    assert abs(mpmath.mpf(float(actual)) - exact) <= half_spacing + 7e-12


def test_decimals_of_15_digits_are_decoded_exactly() -> None:
    values = decimals()
    codes = ENCODING.nearest_codes(ENCODING.vector(ENCODING.encode(values)))
    assert same_bits(ENCODING.decode(codes), np.abs(values))


def test_floats_from_1e_minus_16_to_1e17_are_decoded_exactly() -> None:
    magnitudes = np.abs(finite_and_infinite())
    in_range = magnitudes[(magnitudes >= 1e-16) & (magnitudes < 1e17)]
    assert len(in_range) > 1000
    assert same_bits(ENCODING.decode(ENCODING.encode(in_range)), in_range)


def test_digits_below_the_last_one_are_rounded() -> None:
    values = np.array([4.9e-33, 5e-33, 1.5e-32, 2.5e-32, 1.23456e-30, 5e-324, 0.0, -0.0])
    decoded = ENCODING.decode(ENCODING.encode(values))
    assert decoded.tolist() == [0, 0, 2e-32, 2e-32, 1.23e-30, 0, 0, 0]


def test_numbers_that_are_too_large_are_clipped() -> None:
    codes = ENCODING.encode(np.array([1e17, -1e300, np.inf, 99999999999999984.0]))
    assert (codes[:3] == 9).all() and (codes[3] != 9).any()
    assert ENCODING.decode(codes).tolist() == [1e17, 1e17, 1e17, 99999999999999984.0]


def test_the_nearest_prototype_determines_the_digit() -> None:
    outputs = np.zeros((1, 98), np.float32)
    turns = np.array([0.2, 0.34, 0.36, 0.96])
    outputs[0, :8:2] = 0.01 * np.cos(2 * np.pi * turns)
    outputs[0, 1:8:2] = 0.01 * np.sin(2 * np.pi * turns)
    assert ENCODING.predict_codes(outputs)[0, :4].tolist() == [2, 3, 4, 0]


def test_loss_is_the_mean_cross_entropy_over_the_digits() -> None:
    codes = torch.from_numpy(ENCODING.encode(np.array([1.0, 0.1])))
    uniform = ENCODING.loss(torch.zeros(2, 98), codes)
    assert uniform.tolist() == pytest.approx([math.log(10)] * 2)
    # All outputs at the prototype of 0: correct for 48 digits, one digit off for the other.
    outputs = torch.tensor([1.0, 0.0]).repeat(2, 49)
    total = math.log(sum(math.exp(math.cos(math.pi * j / 5)) for j in range(10)))
    expected = (48 * (total - 1) + (total - math.cos(math.pi / 5))) / 49
    assert ENCODING.loss(outputs, codes).tolist() == pytest.approx([expected] * 2)
