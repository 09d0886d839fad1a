"""FoNE: the decimal digits of |x| as points on circles (paper, "Comparing BitTokens …").

The paper's own code differs, and its networks expect vectors with the rounding errors of float64
arithmetic: `StudyFoNE`, only for checkpoints that `bittoken convert` has written.
"""

from __future__ import annotations

from functools import cache
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bittoken.encodings.base import (
    Codes,
    FloatArray,
    NumberEncoding,
    reject_nan,
)
from bittoken.encodings.digits import (
    fixed_point_digits,
    parse_fixed_point,
)

_TABLE_SIZE = 10_000
"""Points of the circle in the lookup table: one for each value of the first four digits."""

_LOWER_DIGITS = 11
"""Digits after the leading one that are used to compute a phase."""


class FoNE(NumberEncoding):
    """cos and sin of 2πx/period for the periods 10^17 to 10^-31, longest first.

    The code is the row of 17 decimal digits before the decimal point and 32 after it, most
    significant first: those of the shortest decimal that parses to the same float64, so that 0.1 is
    a one followed by zeros. Digits below 10^-32 are rounded half to even. From 10^17 on, including
    inf, every digit is 9, which decodes to 10^17.

    For the period of digit d₁, x/period is 0.d₁d₂d₃… turns, with d₂, d₃, … the lower digits. The
    vector is cos, sin, cos, sin, … as float32, computed with an error below 1e-11 before rounding.

    The number head predicts each digit separately. It has two outputs per period; their inner
    products with the ten points cos, sin of 2πj/10 are the logits of the digit (paper,
    "Single-token number representation").
    """

    name = "fone"
    display = "FoNE"
    integer_digits, fraction_digits = 17, 32
    columns = integer_digits + fraction_digits
    width = outputs = 2 * columns
    dtype = np.dtype(np.int8)
    signed = False

    def encode(self, values: FloatArray) -> Codes:
        """Return the codes. Raises BadInput if a value is NaN."""
        reject_nan(values, self.display)
        magnitudes = np.abs(values)
        too_large = magnitudes >= 10.0**self.integer_digits
        codes = fixed_point_digits(
            np.where(too_large, 0, magnitudes), self.integer_digits, self.fraction_digits
        )
        codes[too_large] = 9
        return codes

    def decode(self, codes: Codes) -> FloatArray:
        return parse_fixed_point(codes, self.integer_digits)

    def vector(self, codes: Tensor) -> Tensor:
        cosines, sines, _ = _tables_on(codes.device)
        digits = functional.pad(codes.to(torch.int64), (0, _LOWER_DIGITS))
        table_index, remainder = _split_phase(_four_digit_numbers(digits))
        angle = remainder.to(torch.float64) * _RADIANS_PER_UNIT
        points = _rotate(cosines[table_index], sines[table_index], angle)
        return torch.stack(points, -1).flatten(-2).float()

    def predict(self, outputs: Tensor) -> Tensor:
        return self._logits(outputs).argmax(-1).to(torch.int8)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the cross-entropy, averaged over the digits."""
        logits = self._logits(outputs).flatten(0, 1)
        target = codes.flatten().to(torch.int64)
        loss = functional.cross_entropy(logits, target, reduction="none")
        return loss.view(codes.shape).mean(-1)

    def _logits(self, outputs: Tensor) -> Tensor:
        """Return the logits of the digits: float32 of shape (…, digits, 10)."""
        pairs = outputs.to(torch.float32).reshape(*outputs.shape[:-1], self.columns, 2)
        _, _, prototypes = _tables_on(outputs.device)
        return pairs[..., :1] * prototypes[0] + pairs[..., 1:] * prototypes[1]


def _four_digit_numbers(digits: Tensor) -> Tensor:
    """Return the number formed by each digit and the next three, for all but the last three."""
    first, second, third = digits[..., :-3], digits[..., 1:-2], digits[..., 2:-1]
    return first * 1000 + second * 100 + third * 10 + digits[..., 3:]


def _split_phase(four_digits: Tensor) -> tuple[Tensor, Tensor]:
    """Return digits 1-4 of each phase, and digits 5-12.

    The phase is 0.d₁d₂d₃… turns. The first part is an index of the table, the second a small
    rotation in units of 10^-12 turns. The digits after them change the point by less than 1e-11.
    """
    return four_digits[..., :-8], four_digits[..., 4:-4] * 10_000 + four_digits[..., 8:]


def _rotate(cosine: Tensor, sine: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    """Return points of the circle rotated by a small angle (below 2π/10⁴: accurate to 1e-14).

    Uses a Taylor polynomial, of products and sums only, so that all devices agree bit for bit.
    """
    square = angle * angle
    by_cosine = 1 - square * 0.5
    by_sine = angle * (1 - square * (1 / 6))
    return cosine * by_cosine - sine * by_sine, sine * by_cosine + cosine * by_sine


def _sine_table() -> tuple[FloatArray, FloatArray]:
    """Return cos and sin at _TABLE_SIZE equal steps; the four quadrants are exactly symmetric."""
    eighth = np.arange(_TABLE_SIZE // 8 + 1) * (2 * np.pi / _TABLE_SIZE)
    rising = np.concatenate([np.sin(eighth), np.cos(eighth)[-2::-1]])
    sine = np.concatenate([rising[:-1], rising[:0:-1], -rising[:-1], -rising[:0:-1]])
    return np.roll(sine, -_TABLE_SIZE // 4), sine


_COSINE, _SINE = _sine_table()
_RADIANS_PER_UNIT = 2 * np.pi / 1e12
_DIGIT_POINTS = np.stack([_COSINE, _SINE])[:, :: _TABLE_SIZE // 10].astype(np.float32)


@cache
def _tables_on(device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    tables = (torch.from_numpy(table).to(device) for table in (_COSINE, _SINE, _DIGIT_POINTS))
    return cast(tuple[Tensor, Tensor, Tensor], tuple(tables))


def _periods(integer_digits: int, fraction_digits: int) -> FloatArray:
    """Return the periods in ascending order, with the rounding errors of the paper's code.

    Up to 10, a period is ten times a power of 0.1 that results from repeated division by 10.
    """
    tenths = [1.0]
    while len(tenths) <= fraction_digits:
        tenths.append(tenths[-1] / 10)
    longer = [float(10**digits) for digits in range(2, integer_digits + 1)]
    return np.array([*(10 * tenth for tenth in reversed(tenths)), *longer])


class StudyFoNE(FoNE):
    """FoNE with cos and sin of x · (2π / period) in float64, shortest period first.

    Far below the last digit of x, the points are rounding noise. The vector of 0 is 0. The outputs
    of the number head are in the same order as the vector: the lowest digit first.
    """

    name = "fone-study"
    display = "FoNE (the paper's code)"

    def __init__(self) -> None:
        # 1 / period is rounded first, as PyTorch does for a number divided by a tensor.
        self._frequencies = 1 / _periods(self.integer_digits, self.fraction_digits) * (2 * np.pi)

    def vector(self, codes: Tensor) -> Tensor:
        rows = codes.reshape(-1, self.columns).cpu().numpy()
        values = self.decode(rows)[:, None]
        angles = values * self._frequencies
        points = np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32)
        vectors = np.where(values == 0, np.float32(0), points.reshape(len(rows), self.width))
        return torch.from_numpy(vectors).to(codes.device).view(*codes.shape[:-1], self.width)

    def _logits(self, outputs: Tensor) -> Tensor:
        return super()._logits(outputs).flip(-2)
