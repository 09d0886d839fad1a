"""FoNE on logarithms against high-precision logarithms."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch

from bench.bittoken.encodings.fone_log import FoNELog
from tests.bittoken.encodings.values import decimals, everywhere

ENCODING = FoNELog()
TURN = 10**18


def _places(values: np.ndarray) -> list[int]:
    return [int("".join(map(str, row))) for row in ENCODING.code(values).tolist()]


def test_numbers_written_out_by_hand() -> None:
    """ln 2.5 = 0.91629073187415507, ln 0.1 = -2.302585092994046."""
    values = np.array([1.0, -2.5, 0.1])
    assert _places(values) == [0, 91629073187416, TURN - 230258509299405]


def test_vectors_written_out_by_hand() -> None:
    vector = ENCODING.vector(ENCODING.code(np.array([1.0, -2.5])))
    assert (vector[0].reshape(18, 2) == [1, 0]).all()
    # Period 1 is the fifth: 0.91629… turns.
    angle = 2 * math.pi * math.log(2.5)
    assert vector[1, 8:10] == pytest.approx([math.cos(angle), math.sin(angle)], abs=1e-7)


def test_logarithms_are_right_to_the_grid_and_to_float64() -> None:
    finite = everywhere()[np.isfinite(everywhere()) & (everywhere() != 0)][::50]
    values = np.concatenate([finite, decimals(300)])
    values = values[values != 0]
    with mpmath.workdps(50):
        for value, place in zip(values.tolist(), _places(values), strict=True):
            true = mpmath.log(abs(mpmath.mpf(value)))
            found = mpmath.mpf(place - TURN if place >= TURN // 2 else place) / 10**14
            assert abs(found - true) <= 0.5e-14 + 2 * math.ulp(float(true))


def test_values_come_back_to_14_digits_and_not_exactly() -> None:
    values = np.abs(decimals())
    found = ENCODING.value(ENCODING.nearest(ENCODING.vector(ENCODING.code(values))))
    positive = values > 0
    error = np.abs(found - values)[positive] / values[positive]
    assert 1e-15 < error.max() < 3e-14
    assert (found[~positive] == 0).all() and (~positive).any()


def test_all_magnitudes_come_back_to_12_digits() -> None:
    values = np.abs(everywhere())
    values = values[np.isfinite(values) & (values >= 2.3e-308)]
    found = ENCODING.value(ENCODING.code(values))
    assert (np.abs(found / values - 1)).max() < 3e-13


def test_zero_and_infinity_come_back_exactly() -> None:
    codes = ENCODING.code(np.array([0.0, -0.0, np.inf, -np.inf]))
    assert ENCODING.value(codes).tolist() == [0, 0, np.inf, np.inf]
    shown = ["".join(map(str, row)) for row in codes.tolist()]
    assert shown == ["5" + "0" * 17] * 2 + ["4" + "9" * 17] * 2


def test_loss_is_the_mean_cross_entropy_over_the_digits() -> None:
    codes = torch.from_numpy(ENCODING.code(np.array([1.0])))
    assert ENCODING.loss(torch.zeros(1, 36), codes).item() == pytest.approx(math.log(10))
    outputs = torch.tensor([3.0, 0.0]).repeat(1, 18)
    total = math.log(sum(math.exp(3 * math.cos(math.pi * j / 5)) for j in range(10)))
    assert ENCODING.loss(outputs, codes).item() == pytest.approx(total - 3, rel=1e-5)
