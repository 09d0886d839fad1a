"""Encodings of the paper's own code that differ from those of this package.

Only checkpoints that `bittoken convert` has written use them; they cannot be trained. Their
networks expect vectors with the rounding errors of float64 arithmetic.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bittoken.encodings.base import Codes, FloatArray, IntArray, NumberEncoding
from bittoken.encodings.base10 import Base10
from bittoken.encodings.digits import DIGITS, int_to_digits
from bittoken.encodings.fone import FoNE

Digits = NDArray[np.int8]


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


_EXPONENT_BIAS, _EXPONENT_DIGITS = 500, 3
_LOWEST_EXPONENT = -323
_POWERS = np.array([float(f"1e{exponent}") for exponent in range(_LOWEST_EXPONENT, 309)])


class StudyBase10(NumberEncoding):
    """Sign (1: not negative), exponent + 500 and 17 significand digits of x, then of 1/x.

    Each digit is one of ten channels, with 1 for the digit and −1 for the others. The digits are
    those of |x| / 10^e · 10^16, computed in float64, so the last ones are subject to rounding
    errors; the code is therefore the float64 itself. The number head predicts the digits of x. The
    digits of inf, and of 1/0, are all 9, since the paper's code leaves them undefined.
    """

    name = "base10-study"
    display = "Base 10 (the paper's code)"
    columns = 1
    dtype = np.dtype(np.float64)
    positions = 1 + _EXPONENT_DIGITS + DIGITS
    outputs = 10 * positions
    width = 2 * outputs

    @property
    def scaled_width(self) -> int:
        """The channels of x alone, without those of 1/x."""
        return self.outputs

    def encode(self, values: FloatArray) -> Codes:
        return np.array(values, np.float64).reshape(-1, 1)

    def decode(self, codes: Codes) -> FloatArray:
        values: FloatArray = codes[:, 0]
        return values

    def vector(self, codes: Tensor) -> Tensor:
        values = codes.flatten().cpu().numpy()
        with np.errstate(divide="ignore", over="ignore"):
            both = np.stack([_to_digits(values), _to_digits(1 / values)], axis=1)
        channels = np.where(both[..., None] == np.arange(10), np.float32(1), np.float32(-1))
        return torch.from_numpy(channels).to(codes.device).view(*codes.shape[:-1], self.width)

    def predict(self, outputs: Tensor) -> Tensor:
        digits = outputs.reshape(*outputs.shape[:-1], self.positions, 10).argmax(-1)
        values = _from_digits(digits.flatten(0, -2).cpu().numpy())
        return torch.from_numpy(values).to(outputs.device).view(*digits.shape[:-1], 1)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Raise NotImplementedError: networks with this encoding are only evaluated."""
        raise NotImplementedError(f"{self.display} cannot be trained")


def _to_digits(values: FloatArray) -> Digits:
    """Return sign, exponent and significand digits: int8 of shape (n, 21)."""
    magnitudes = np.abs(values)
    is_ordinary = np.isfinite(values) & (magnitudes > 0)
    ordinary = np.where(is_ordinary, magnitudes, 1)
    exponents = np.maximum(np.floor(np.log10(ordinary)).astype(np.int64), _LOWEST_EXPONENT)
    scaled = ordinary / _POWERS[exponents - _LOWEST_EXPONENT] * 1e16
    significands = np.where(magnitudes == 0, 0, np.rint(scaled).astype(np.int64))
    digits = np.empty((len(values), StudyBase10.positions), np.int8)
    digits[:, 0] = values >= 0
    digits[:, 1:4] = int_to_digits(exponents + _EXPONENT_BIAS, _EXPONENT_DIGITS)
    digits[:, 4:] = int_to_digits(significands, DIGITS)
    digits[~np.isfinite(values), 1:] = 9
    return digits


def _from_digits(digits: IntArray) -> FloatArray:
    """Return the correctly rounded values of rows of digits; inf and 0 beyond float64."""
    exponents = digits[:, 1] * 100 + digits[:, 2] * 10 + digits[:, 3] - _EXPONENT_BIAS
    base10 = Base10()
    codes = np.empty((len(digits), base10.columns), np.int8)
    codes[:, 0] = digits[:, 0] == 0
    codes[:, 1] = exponents < 0
    codes[:, 2:5] = int_to_digits(np.abs(exponents), _EXPONENT_DIGITS)
    codes[:, 5:] = digits[:, 4:]
    return base10.decode(codes)


STUDY_ENCODINGS: dict[str, NumberEncoding] = {
    encoding.name: encoding for encoding in (StudyFoNE(), StudyBase10())
}
"""By name; not part of `ENCODINGS`."""
