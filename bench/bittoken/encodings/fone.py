"""FoNE: the decimal digits of |x| as points on circles (paper, "Comparing BitTokens …").

The paper's own code differs, and its networks expect vectors with the rounding errors of float64
arithmetic: `StudyFoNE`, only for checkpoints that `studies.paper_checkpoint` wrote.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bittoken.encodings.base import (
    Codes,
    FloatArray,
    NumberEncoding,
    digit_rows,
    parse_decimals,
    reject_nan,
)

_PHASE_DIGITS = 12
"""Digits of which a phase is computed; those after them change a point by less than 1e-11."""

_TURN = 10**_PHASE_DIGITS
"""The units of a full turn."""


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
        # 17 digits, the point, 32 digits; the format rounds half to even.
        decimals = map(Decimal, map(repr, np.where(too_large, 0.0, magnitudes).tolist()))
        rows = digit_rows(f"{decimal:050.32f}" for decimal in decimals)
        codes = np.delete(rows.reshape(-1, self.columns + 1), self.integer_digits, axis=1)
        codes[too_large] = 9
        return codes

    def decode(self, codes: Codes) -> FloatArray:
        characters = codes.astype(np.uint8) + ord("0")
        return parse_decimals(np.insert(characters, self.integer_digits, ord("."), axis=1))

    def vector(self, codes: Tensor) -> Tensor:
        digits = functional.pad(codes.to(torch.int64), (0, _PHASE_DIGITS - 1))
        # The phase is 0.d₁d₂d₃… turns.
        phases = torch.zeros_like(codes, dtype=torch.int64)
        for position in range(_PHASE_DIGITS):
            phases = 10 * phases + digits[..., position : position + self.columns]
        return _points(phases).flatten(-2)

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
        tenths = torch.arange(10, device=outputs.device) * (_TURN // 10)
        cosines, sines = _points(tenths).unbind(-1)
        return pairs[..., :1] * cosines + pairs[..., 1:] * sines


def _points(phases: Tensor) -> Tensor:
    """Return cos and sin of phases in units of 10^-12 turns, float32 (…, 2)."""
    return torch.stack([_sine(phases + _TURN // 4), _sine(phases)], -1).float()


def _sine(phases: Tensor) -> Tensor:
    """Return the sine of phases, exactly symmetric in the four quadrants."""
    signed = (phases + _TURN // 2) % _TURN - _TURN // 2
    nearest = torch.minimum(signed.abs(), _TURN // 2 - signed.abs())
    return torch.copysign((nearest.double() * (2 * torch.pi / _TURN)).sin(), signed)


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
