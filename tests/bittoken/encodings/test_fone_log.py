"""FoNE of logarithms, compared with high-precision logarithms."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch

from bittoken.encodings.fone import FoNELog
from tests.bittoken.encodings.values import decimals, finite_and_infinite

ENCODING = FoNELog()
MODULUS = 10**18


def _units(values: np.ndarray) -> list[int]:
    return [int("".join(map(str, row))) for row in ENCODING.encode(values).tolist()]


def test_codes_match_examples() -> None:
    """ln 2.5 = 0.91629073187415507, ln 0.1 = -2.302585092994046."""
    values = np.array([1.0, -2.5, 0.1])
    assert _units(values) == [0, 91629073187416, MODULUS - 230258509299405]


def test_vectors_match_examples() -> None:
    vector = ENCODING.vector(ENCODING.encode(np.array([1.0, -2.5])))
    assert (vector[0].reshape(18, 2) == [1, 0]).all()
    # The fifth period is 1, with 0.91629… turns.
    angle = 2 * math.pi * math.log(2.5)
    assert vector[1, 8:10] == pytest.approx([math.cos(angle), math.sin(angle)], abs=1e-7)


def test_logarithms_are_rounded_to_the_unit() -> None:
    finite = finite_and_infinite()[
        np.isfinite(finite_and_infinite()) & (finite_and_infinite() != 0)
    ][::50]
    values = np.concatenate([finite, decimals(300)])
    values = values[values != 0]
    with mpmath.workdps(50):
        for value, units in zip(values.tolist(), _units(values), strict=True):
            exact = mpmath.log(abs(mpmath.mpf(value)))
            actual = mpmath.mpf(units - MODULUS if units >= MODULUS // 2 else units) / 10**14
            assert abs(actual - exact) <= 0.5e-14 + 2 * math.ulp(float(exact))


def test_decimals_are_decoded_to_14_digits_but_not_exactly() -> None:
    values = np.abs(decimals())
    decoded = ENCODING.decode(ENCODING.nearest_codes(ENCODING.vector(ENCODING.encode(values))))
    positive = values > 0
    error = np.abs(decoded - values)[positive] / values[positive]
    assert 1e-15 < error.max() < 3e-14
    assert (decoded[~positive] == 0).all() and (~positive).any()


def test_all_magnitudes_are_decoded_to_12_digits() -> None:
    values = np.abs(finite_and_infinite())
    values = values[np.isfinite(values) & (values >= 2.3e-308)]
    decoded = ENCODING.decode(ENCODING.encode(values))
    assert (np.abs(decoded / values - 1)).max() < 3e-13


def test_zero_and_infinity_are_decoded_exactly() -> None:
    codes = ENCODING.encode(np.array([0.0, -0.0, np.inf, -np.inf]))
    assert ENCODING.decode(codes).tolist() == [0, 0, np.inf, np.inf]
    texts = ["".join(map(str, row)) for row in codes.tolist()]
    assert texts == ["5" + "0" * 17] * 2 + ["4" + "9" * 17] * 2


def test_loss_is_the_mean_cross_entropy_over_the_digits() -> None:
    codes = torch.from_numpy(ENCODING.encode(np.array([1.0])))
    assert ENCODING.loss(torch.zeros(1, 36), codes).item() == pytest.approx(math.log(10))
    outputs = torch.tensor([3.0, 0.0]).repeat(1, 18)
    total = math.log(sum(math.exp(3 * math.cos(math.pi * j / 5)) for j in range(10)))
    assert ENCODING.loss(outputs, codes).item() == pytest.approx(total - 3, rel=1e-5)
