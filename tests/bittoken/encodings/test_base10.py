"""Base 10, compared with decimal arithmetic of Python."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bittoken.encodings.base10 import Base10
from tests.bittoken.encodings.values import (
    decimals,
    finite_and_infinite,
    patterns,
    random_codes,
    same_bits,
)

ENCODING = Base10()


def _code_texts(values: list[float]) -> list[str]:
    return ["".join(map(str, row)) for row in ENCODING.encode(np.array(values)).tolist()]


def _expected(value: float) -> str:
    sign, digits, _ = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    power = Decimal(repr(value)).adjusted() if text else 0
    return f"{sign}{int(power < 0)}{abs(power):03d}{text.ljust(17, '0')}"


def _decode_text(code: str) -> float:
    row = np.array([[int(digit) for digit in code]], np.int8)
    value: float = ENCODING.decode(row).tolist()[0]
    return value


def test_codes_match_examples() -> None:
    assert _code_texts([1.0, -2.5, 0.1]) == [
        "00" + "000" + "1" + "0" * 16,
        "10" + "000" + "25" + "0" * 15,
        "01" + "001" + "1" + "0" * 16,
    ]
    assert _code_texts([-0.0, math.inf, -math.inf, math.nan]) == [
        "10" + "000" + "0" * 17,
        "00" + "999" + "0" * 17,
        "10" + "999" + "0" * 17,
        "00" + "999" + "1" + "0" * 16,
    ]


def test_vectors_match_examples() -> None:
    """-2.5: sign 1, exponent +000, digits 2 5 0 0 …"""
    vector = ENCODING.vector(ENCODING.encode(np.array([-2.5])))[0]
    hot = [1, 2, 4, 14, 24, 34 + 2, 44 + 5, *(54 + 10 * position for position in range(15))]
    assert np.flatnonzero(vector).tolist() == hot
    assert (vector[hot] == 1).all() and len(vector) == 204


def test_digits_are_those_of_the_shortest_decimal() -> None:
    finite = finite_and_infinite()[np.isfinite(finite_and_infinite())][::40]
    values = np.concatenate([finite, decimals(300)]).tolist()
    assert _code_texts(values) == [_expected(value) for value in values]


def test_every_float64_is_decoded_exactly() -> None:
    for values in (finite_and_infinite(), decimals()):
        codes = ENCODING.nearest_codes(ENCODING.vector(ENCODING.encode(values)))
        assert same_bits(ENCODING.decode(codes), values)


def test_sign_and_payload_of_nan_are_lost() -> None:
    values = patterns(200_000)
    values = np.concatenate([values[np.isnan(values)], [np.nan, -np.nan]])
    assert len(values) > 50
    codes = ENCODING.encode(values)
    assert (codes == codes[0]).all() and np.isnan(ENCODING.decode(codes)).all()


@given(st.lists(st.floats(allow_nan=False), max_size=20))
def test_arbitrary_floats_are_decoded_exactly(numbers: list[float]) -> None:
    values = np.array(numbers, np.float64)
    assert same_bits(ENCODING.decode(ENCODING.encode(values)), values)


def test_predicted_codes_are_decoded_as_decimals() -> None:
    codes = random_codes(ENCODING, 300)
    codes[:, 2] %= 3
    for row, decoded in zip(codes.tolist(), ENCODING.decode(codes).tolist(), strict=True):
        sign, power, *digits = row
        text = "".join(map(str, digits))
        literal = f"{'-' * sign}{text[3]}.{text[4:]}e{'-' * power}{text[:3]}"
        assert decoded == float(literal)


def test_predictions_out_of_range_are_infinite_or_zero() -> None:
    assert _decode_text("10" + "400" + "9" * 17) == -math.inf
    assert _decode_text("01" + "400" + "9" * 17) == 0
    assert math.isnan(_decode_text("00" + "999" + "9" * 17))
    assert _decode_text("01" + "999" + "9" * 17) == 0


def test_loss_is_the_mean_cross_entropy_over_the_positions() -> None:
    codes = torch.from_numpy(ENCODING.encode(np.array([-2.5])))
    uniform = ENCODING.loss(torch.zeros(1, 204), codes)
    assert uniform.item() == pytest.approx((2 * math.log(2) + 20 * math.log(10)) / 22)
    outputs = torch.zeros(1, 204)
    outputs[0, 1] = 3  # the right sign
    outputs[0, 34 + 7] = 3  # a wrong first digit
    sign = math.log(1 + math.exp(-3))
    digit = math.log(9 + math.exp(3))
    expected = (sign + math.log(2) + digit + 19 * math.log(10)) / 22
    assert ENCODING.loss(outputs, codes).item() == pytest.approx(expected)
