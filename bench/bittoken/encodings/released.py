"""Encodings of the study's released code that differ from those of numbench.

They are for checkpoints of that code and cannot be trained: its networks expect vectors with the
rounding errors of its float64 arithmetic, which numbench's own encodings do not have.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from bittoken.encodings.base import Codes, FloatArray, IntArray, NumberEncoding, Vectors
from bittoken.encodings.base10 import Base10
from bittoken.encodings.decimal_digits import DIGITS, int_to_digits
from bittoken.encodings.fone import FoNE

Digits = NDArray[np.int8]


def _periods(integer_digits: int, fraction_digits: int) -> FloatArray:
    """Return the periods in ascending order, with the rounding errors of the released code.

    Up to 10, a period is ten times a power of 0.1 that results from repeated division by 10.
    """
    tenths = [1.0]
    while len(tenths) <= fraction_digits:
        tenths.append(tenths[-1] / 10)
    longer = [float(10**digits) for digits in range(2, integer_digits + 1)]
    return np.array([*(10 * tenth for tenth in reversed(tenths)), *longer])


class ReleasedFoNE(FoNE):
    """FoNE with cos and sin of x · (2π / period) in float64, shortest period first.

    Far below the last digit of x, the points are rounding noise. The vector of 0 is 0. The outputs
    of the number head are in the same order as the vector: the lowest digit first.
    """

    name = "fone-released"
    display = "FoNE (released code)"

    def __init__(self) -> None:
        super().__init__()
        # 1 / period is rounded first, as PyTorch does for a number divided by a tensor.
        self._frequencies = 1 / _periods(self.integer_digits, self.fraction_digits) * (2 * np.pi)

    def vector(self, codes: Codes) -> Vectors:
        values = self.decode(codes)[:, None]
        angles = values * self._frequencies
        points = np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32)
        vectors: Vectors = np.where(values == 0, np.float32(0), points.reshape(len(codes), -1))
        return vectors

    def nearest_codes(self, vectors: Vectors) -> Codes:
        points = vectors.reshape(len(vectors), self.columns, 2)
        return super().nearest_codes(points[:, ::-1].reshape(vectors.shape))

    def predict_codes(self, outputs: Vectors) -> Codes:
        codes: Codes = self.torch_predict_codes(torch.from_numpy(outputs)).numpy()
        return codes

    def torch_vector(self, codes: Tensor) -> Tensor:
        return torch.from_numpy(self.vector(codes.cpu().numpy())).to(codes.device)

    def _logits(self, outputs: Tensor) -> Tensor:
        return super()._logits(outputs).flip(-2)


_EXPONENT_BIAS, _EXPONENT_DIGITS = 500, 3
_LOWEST_EXPONENT = -323
_POWERS = np.array([float(f"1e{exponent}") for exponent in range(_LOWEST_EXPONENT, 309)])


class ReleasedBase10(NumberEncoding):
    """Sign (1: not negative), exponent + 500 and 17 significand digits of x, then of 1/x.

    Each digit is one of ten channels, with 1 for the digit and −1 for the others. The digits are
    those of |x| / 10^e · 10^16, computed in float64, so that the last ones are subject to rounding
    errors; the code is therefore the float64 itself. The number head predicts the digits of x. The
    digits of inf, and of 1/0, are all 9, since the released code leaves them undefined.
    """

    name = "base10-released"
    display = "Base 10 (released code)"
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

    def vector(self, codes: Codes) -> Vectors:
        values = self.decode(codes)
        with np.errstate(divide="ignore", over="ignore"):
            both = np.stack([_to_digits(values), _to_digits(1 / values)], axis=1)
        is_digit = both[..., None] == np.arange(10)
        return np.where(is_digit, np.float32(1), np.float32(-1)).reshape(len(codes), self.width)

    def nearest_codes(self, vectors: Vectors) -> Codes:
        return self.predict_codes(vectors[:, : self.outputs])

    def predict_codes(self, outputs: Vectors) -> Codes:
        digits = outputs.reshape(len(outputs), self.positions, 10).argmax(-1)
        return self.encode(_from_digits(digits))

    def torch_vector(self, codes: Tensor) -> Tensor:
        return torch.from_numpy(self.vector(codes.cpu().numpy())).to(codes.device)

    def torch_predict_codes(self, outputs: Tensor) -> Tensor:
        codes = self.predict_codes(outputs.detach().float().cpu().numpy())
        return torch.from_numpy(codes).to(outputs.device)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the cross-entropy, averaged over the 21 positions."""
        digits = _to_digits(self.decode(codes.cpu().numpy()))
        target = torch.from_numpy(digits.astype(np.int64)).to(outputs.device)
        logits = outputs.float().reshape(len(outputs), self.positions, 10)
        loss = functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
        return loss.mean(-1)


def _to_digits(values: FloatArray) -> Digits:
    """Return sign, exponent and significand digits: int8 of shape (n, 21)."""
    magnitudes = np.abs(values)
    is_ordinary = np.isfinite(values) & (magnitudes > 0)
    ordinary = np.where(is_ordinary, magnitudes, 1)
    exponents = np.maximum(np.floor(np.log10(ordinary)).astype(np.int64), _LOWEST_EXPONENT)
    scaled = ordinary / _POWERS[exponents - _LOWEST_EXPONENT] * 1e16
    significands = np.where(magnitudes == 0, 0, np.rint(scaled).astype(np.int64))
    digits = np.empty((len(values), ReleasedBase10.positions), np.int8)
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


RELEASED_ENCODINGS: dict[str, NumberEncoding] = {
    encoding.name: encoding for encoding in (ReleasedFoNE(), ReleasedBase10())
}
"""By name; not part of `ENCODINGS`."""
