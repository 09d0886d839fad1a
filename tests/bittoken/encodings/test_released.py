"""Encodings of the released code. Their vectors in a network: `test_reference_outputs`."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bittoken.encodings.base import NumberEncoding
from bittoken.encodings.released import RELEASED_ENCODINGS
from tests.bittoken.encodings.values import decimals, finite_and_infinite, same_bits

FONE, BASE10 = RELEASED_ENCODINGS["fone-released"], RELEASED_ENCODINGS["base10-released"]
each = pytest.mark.parametrize("encoding", [FONE, BASE10], ids=lambda encoding: encoding.name)
benchmark_numbers = st.decimals(Decimal("1e-14"), Decimal("1e15"), places=14).map(float)


@each
def test_numpy_and_torch_agree_bit_for_bit(encoding: NumberEncoding) -> None:
    outputs = np.random.default_rng(5).standard_normal((500, encoding.outputs)).astype(np.float32)
    predicted = encoding.predict_codes(outputs)
    assert same_bits(encoding.torch_predict_codes(torch.from_numpy(outputs)).numpy(), predicted)
    for codes in (encoding.encode(finite_and_infinite()), encoding.encode(decimals()), predicted):
        vectors = encoding.vector(codes)
        assert vectors.shape == (len(codes), encoding.width) and vectors.dtype == np.float32
        assert same_bits(encoding.torch_vector(torch.from_numpy(codes)).numpy(), vectors)
        assert np.isfinite(vectors).all()


@given(benchmark_numbers)
def test_points_of_fone_are_those_of_the_number_modulo_each_period(value: float) -> None:
    """For the periods where float64 has digits left; below them they are rounding noise."""
    (vector,) = FONE.vector(FONE.encode(np.array([value])))
    for n in range(49):
        period = Decimal(10) ** (n - 31)
        if period > Decimal(value) * Decimal("1e-9"):
            angle = 2 * np.pi * float(Decimal(value) % period / period)
            np.testing.assert_allclose(
                vector[2 * n : 2 * n + 2], [np.cos(angle), np.sin(angle)], rtol=0, atol=1e-4
            )


def test_zero_has_no_points_in_fone() -> None:
    assert not FONE.vector(FONE.encode(np.array([0.0, -0.0]))).any()


def fone_outputs(value: float) -> np.ndarray:
    """Return outputs at the points of the digits of `value`, the lowest digit first."""
    digits = f"{Decimal(value):049.32f}".replace(".", "").zfill(49)[::-1]
    angles = np.array([int(digit) for digit in digits]) * (2 * np.pi / 10)
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32).reshape(1, 98)


@given(benchmark_numbers)
def test_outputs_of_fone_have_the_lowest_digit_first(value: float) -> None:
    (decoded,) = FONE.decode(FONE.predict_codes(fone_outputs(value)))
    assert decoded == pytest.approx(value, rel=1e-15)


@given(st.floats(1e-300, 1e300), st.sampled_from([1, -1]))
def test_vectors_of_base10_hold_the_digits_of_the_number_and_its_reciprocal(
    magnitude: float, sign: int
) -> None:
    value = sign * magnitude
    (vector,) = BASE10.vector(BASE10.encode(np.array([value])))
    assert set(vector.tolist()) == {1.0, -1.0}
    for row, number in zip(vector.reshape(2, 21, 10), (value, 1 / value), strict=True):
        assert ((row > 0).sum(-1) == 1).all()
        digits = "".join(map(str, row.argmax(-1)))
        assert digits[0] == ("1" if number > 0 else "0")
        decoded = Decimal(f"{digits[4]}.{digits[5:]}e{int(digits[1:4]) - 500}")
        assert decoded == pytest.approx(Decimal(abs(number)), rel=Decimal("4e-16"))


@given(st.floats(1e-300, 1e300), st.sampled_from([1, -1]))
def test_base10_decodes_its_digits_to_15_significant_digits(magnitude: float, sign: int) -> None:
    values = np.array([sign * magnitude, 0.0])
    decoded = BASE10.decode(BASE10.nearest_codes(BASE10.vector(BASE10.encode(values))))
    assert decoded[0] == pytest.approx(values[0], rel=4e-16)
    assert decoded[1] == 0


@pytest.mark.parametrize("value", [5e-324, 2e-310, 1e-307, 1e308, 1.7e308])
def test_base10_reaches_the_ends_of_the_range_of_float64(value: float) -> None:
    codes = BASE10.encode(np.array([value, -value]))
    decoded = BASE10.decode(BASE10.nearest_codes(BASE10.vector(codes)))
    assert decoded.tolist() == pytest.approx([value, -value], rel=1e-14)


def test_infinity_is_nine_in_every_digit_of_base10() -> None:
    zero, infinity = BASE10.vector(BASE10.encode(np.array([0.0, np.inf]))).reshape(2, 2, 21, 10)
    assert zero[0].argmax(-1).tolist() == [1, 5, 0, 0] + [0] * 17
    assert zero[1].argmax(-1).tolist() == infinity[0].argmax(-1).tolist() == [1] + [9] * 20


@each
def test_losses_are_lowest_at_the_number(encoding: NumberEncoding) -> None:
    numbers = np.array([12.5, 0.03125, 8.0])
    codes = encoding.encode(np.array([12.5, 0.03125, 7.0]))
    ideal = encoding.vector(encoding.encode(numbers))[:, : encoding.outputs]
    if encoding is FONE:
        ideal = np.concatenate([fone_outputs(number) for number in numbers])
    losses = encoding.loss(torch.from_numpy(100 * ideal), torch.from_numpy(codes))
    assert losses[:2].max() < 1e-6 and losses[2] > 0.1
