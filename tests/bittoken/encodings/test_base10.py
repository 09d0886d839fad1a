"""Base 10 against Python's own decimals."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bench.bittoken.encodings.base10 import Base10
from tests.bittoken.encodings.values import decimals, everywhere, patterns, random_codes, same_bits

ENCODING = Base10()


def _shown(values: list[float]) -> list[str]:
    return ["".join(map(str, row)) for row in ENCODING.code(np.array(values)).tolist()]


def _expected(value: float) -> str:
    sign, digits, _ = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    power = Decimal(repr(value)).adjusted() if text else 0
    return f"{sign}{int(power < 0)}{abs(power):03d}{text.ljust(17, '0')}"


def _read(code: str) -> float:
    row = np.array([[int(digit) for digit in code]], np.int8)
    value: float = ENCODING.value(row).tolist()[0]
    return value


def test_numbers_written_out_by_hand() -> None:
    assert _shown([1.0, -2.5, 0.1]) == [
        "00" + "000" + "1" + "0" * 16,
        "10" + "000" + "25" + "0" * 15,
        "01" + "001" + "1" + "0" * 16,
    ]
    assert _shown([-0.0, math.inf, -math.inf, math.nan]) == [
        "10" + "000" + "0" * 17,
        "00" + "999" + "0" * 17,
        "10" + "999" + "0" * 17,
        "00" + "999" + "1" + "0" * 16,
    ]


def test_vectors_written_out_by_hand() -> None:
    """-2.5: sign 1, exponent +000, digits 2 5 0 0 …"""
    vector = ENCODING.vector(ENCODING.code(np.array([-2.5])))[0]
    hot = [1, 2, 4, 14, 24, 34 + 2, 44 + 5, *(54 + 10 * place for place in range(15))]
    assert np.flatnonzero(vector).tolist() == hot
    assert (vector[hot] == 1).all() and len(vector) == 204


def test_digits_are_those_of_the_shortest_decimal() -> None:
    finite = everywhere()[np.isfinite(everywhere())][::40]
    values = np.concatenate([finite, decimals(300)]).tolist()
    assert _shown(values) == [_expected(value) for value in values]


def test_every_float64_comes_back_exactly() -> None:
    for values in (everywhere(), decimals()):
        codes = ENCODING.nearest(ENCODING.vector(ENCODING.code(values)))
        assert same_bits(ENCODING.value(codes), values)


def test_of_a_nan_sign_and_payload_are_lost() -> None:
    values = patterns(200_000)
    values = np.concatenate([values[np.isnan(values)], [np.nan, -np.nan]])
    assert len(values) > 50
    codes = ENCODING.code(values)
    assert (codes == codes[0]).all() and np.isnan(ENCODING.value(codes)).all()


@given(st.lists(st.floats(allow_nan=False), max_size=20))
def test_any_floats_come_back(listed: list[float]) -> None:
    values = np.array(listed, np.float64)
    assert same_bits(ENCODING.value(ENCODING.code(values)), values)


def test_what_a_head_may_predict_is_read_as_the_number_it_spells() -> None:
    codes = random_codes(ENCODING, 300)
    codes[:, 2] %= 3
    for row, found in zip(codes.tolist(), ENCODING.value(codes).tolist(), strict=True):
        sign, power, *digits = row
        text = "".join(map(str, digits))
        spelled = f"{'-' * sign}{text[3]}.{text[4:]}e{'-' * power}{text[:3]}"
        assert found == float(spelled)


def test_predictions_beyond_float64_are_infinite_or_zero() -> None:
    assert _read("10" + "400" + "9" * 17) == -math.inf
    assert _read("01" + "400" + "9" * 17) == 0
    assert math.isnan(_read("00" + "999" + "9" * 17))
    assert _read("01" + "999" + "9" * 17) == 0


def test_loss_is_the_mean_cross_entropy_over_the_places() -> None:
    codes = torch.from_numpy(ENCODING.code(np.array([-2.5])))
    none = ENCODING.loss(torch.zeros(1, 204), codes)
    assert none.item() == pytest.approx((2 * math.log(2) + 20 * math.log(10)) / 22)
    outputs = torch.zeros(1, 204)
    outputs[0, 1] = 3  # the right sign
    outputs[0, 34 + 7] = 3  # a wrong first digit
    sign = math.log(1 + math.exp(-3))
    digit = math.log(9 + math.exp(3))
    expected = (sign + math.log(2) + digit + 19 * math.log(10)) / 22
    assert ENCODING.loss(outputs, codes).item() == pytest.approx(expected)
