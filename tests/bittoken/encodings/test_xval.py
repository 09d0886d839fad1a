"""xVal, compared with its formula in high precision."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch

from bittoken.encodings.xval import XVal
from tests.bittoken.encodings.values import decimals, finite_and_infinite

ENCODING = XVal()


def _code(values: list[float]) -> list[float]:
    codes: list[float] = ENCODING.encode(np.array(values))[:, 0].tolist()
    return codes


def test_codes_match_examples() -> None:
    """lg 2.5 = 0.39794…, so -(0.06632 + 2.5); lg 0.1 = -1, so 2.5 - 1/6."""
    assert _code([1.0, -2.5, 0.1]) == pytest.approx([2.5, -2.5663233, 2.3333333], abs=1e-6)
    assert _code([0.0, 1e15, -1e15, 1e14]) == pytest.approx([0, 5, -5, 4.8333333], abs=1e-6)


def test_codes_are_the_nearest_float32_to_the_formula() -> None:
    values = np.concatenate([decimals(400), finite_and_infinite()[::80]])
    values = values[np.isfinite(values)]
    with mpmath.workdps(40):
        for value, code in zip(values.tolist(), _code(values.tolist()), strict=True):
            magnitude = mpmath.log10(abs(mpmath.mpf(value)) + mpmath.mpf("1e-14")) / 6 + 2.5
            exact = min(magnitude, 5) * (value > 0) - min(magnitude, 5) * (value < 0)
            assert abs(code - exact) <= float(np.spacing(np.float32(abs(code)))) * 0.5001


def test_vectors_equal_codes() -> None:
    codes = ENCODING.encode(decimals(50))
    assert np.array_equal(ENCODING.vector(codes), codes)


def test_values_in_range_are_decoded_to_five_digits() -> None:
    values = decimals()
    values = values[np.abs(values) >= 1e-8]
    decoded = ENCODING.decode(ENCODING.encode(values))
    error = np.abs(decoded / values - 1)
    assert 1e-6 < error.max() < 4e-6


def test_tiny_values_are_decoded_approximately() -> None:
    values = np.array([5e-15, -3e-14])
    decoded = ENCODING.decode(ENCODING.encode(values))
    assert decoded.tolist() == pytest.approx(values.tolist(), rel=1e-4, abs=0)


def test_values_out_of_range_are_clipped() -> None:
    assert _code([1e16, -1e300, math.inf, -math.inf]) == [5, -5, 5, -5]
    assert ENCODING.decode(ENCODING.encode(np.array([0.0, -0.0, np.inf]))).tolist() == [0, 0, 1e15]


def test_predictions_out_of_range_are_clipped() -> None:
    assert ENCODING.predict_codes(np.array([[7.0], [-9.0], [0.5]], np.float32)).tolist() == [
        [5.0],
        [-5.0],
        [0.5],
    ]


def test_loss_is_the_squared_error() -> None:
    codes = torch.from_numpy(ENCODING.encode(np.array([1.0, -1.0])))
    losses = ENCODING.loss(torch.tensor([[2.0], [2.0]]), codes)
    assert losses.tolist() == pytest.approx([0.5**2, 4.5**2])
