"""FoNE: the decimal digits of |x| as points on circles (paper, "Comparing BitTokens …").

`SinusoidalEncoding` maps digits to vectors; `FoNE` applies it to the digits of x, `FoNELog` to
those of ln |x|.
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
    Vectors,
    reject_nan,
)
from bittoken.encodings.decimal_digits import (
    digits_to_int,
    fixed_point_digits,
    int_to_digits,
    parse_fixed_point,
)

_TABLE_SIZE = 10_000
"""Points of the circle in the lookup table: one for each value of the first four digits."""

_LOWER_DIGITS = 11
"""Digits after the leading one that are used to compute a phase."""


class SinusoidalEncoding(NumberEncoding):
    """cos and sin of 2πx/period, for periods that are consecutive powers of ten, longest first.

    The code is a row of decimal digits, most significant first: a fixed-point number. For the
    period of digit d₁, x/period is 0.d₁d₂d₃… turns, with d₂, d₃, … the lower digits. The vector is
    cos, sin, cos, sin, … as float32, computed with an error below 1e-11 before rounding.

    The number head predicts each digit separately. It has two outputs per period; their inner
    products with the ten points cos, sin of 2πj/10 are the logits of the digit (paper,
    "Single-token number representation").
    """

    dtype = np.dtype(np.int8)
    signed = False

    def __init__(self, integer_digits: int, fraction_digits: int) -> None:
        """Set the number of digits before and after the decimal point."""
        self.integer_digits = integer_digits
        self.fraction_digits = fraction_digits
        self.columns = integer_digits + fraction_digits
        self.width = self.outputs = 2 * self.columns

    def nearest_codes(self, vectors: Vectors) -> Codes:
        """Return the digits, computed from the lowest to the highest.

        Each phase minus the contribution of the lower digits is a multiple of a tenth of a turn.
        """
        points = vectors.reshape(len(vectors), self.columns, 2).astype(np.float64)
        tenths = np.arctan2(points[:, :, 1], points[:, :, 0]) * (10 / (2 * np.pi))
        codes = np.empty((len(vectors), self.columns), np.int8)
        lower = np.zeros(len(vectors))
        for column in range(self.columns - 1, -1, -1):
            digit = np.rint(tenths[:, column] - lower) % 10
            codes[:, column] = digit
            lower = (digit + lower) / 10
        return codes

    def torch_vector(self, codes: Tensor) -> Tensor:
        cosines, sines, _ = _tables_on(codes.device)
        digits = functional.pad(codes.to(torch.int64), (0, _LOWER_DIGITS))
        table_index, remainder = _split_phase(_four_digit_numbers(digits))
        angle = remainder.to(torch.float64) * _RADIANS_PER_UNIT
        points = _rotate(cosines[table_index], sines[table_index], angle)
        return torch.stack(points, -1).flatten(-2).float()

    def torch_predict_codes(self, outputs: Tensor) -> Tensor:
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


_FONE_INTEGER_DIGITS, _FONE_FRACTION_DIGITS = 17, 32


class FoNE(SinusoidalEncoding):
    """17 digits before the decimal point and 32 after it: periods 10^17 to 10^-31.

    The digits are those of the shortest decimal that parses to the same float64: 0.1 is a one
    followed by zeros. Digits below 10^-32 are rounded half to even. From 10^17 on, including inf,
    every digit is 9, which decodes to 10^17.
    """

    name = "fone"
    display = "FoNE"

    def __init__(self) -> None:
        super().__init__(_FONE_INTEGER_DIGITS, _FONE_FRACTION_DIGITS)

    def encode(self, values: FloatArray) -> Codes:
        """Return the codes. Raises BadInput if a value is NaN."""
        reject_nan(values, "FoNE")
        magnitudes = np.abs(values)
        too_large = magnitudes >= 10.0**_FONE_INTEGER_DIGITS
        codes = fixed_point_digits(
            np.where(too_large, 0, magnitudes), self.integer_digits, self.fraction_digits
        )
        codes[too_large] = 9
        return codes

    def decode(self, codes: Codes) -> FloatArray:
        return parse_fixed_point(codes, self.integer_digits)


_LOG_INTEGER_DIGITS, _LOG_FRACTION_DIGITS = 4, 14
_LOG_SCALE = 10**_LOG_FRACTION_DIGITS
_LOG_MODULUS = 10 ** (_LOG_INTEGER_DIGITS + _LOG_FRACTION_DIGITS)


class FoNELog(SinusoidalEncoding):
    """The natural logarithm modulo 10^4, in units of 10^-14: periods 10^4 to 10^-13.

    A negative logarithm l is represented as 10^4 + l, so that the vector of a product is the
    product of the vectors (as complex numbers). The representable logarithms are -5000 to 5000,
    more than any float64 needs. 0 has the lowest and inf the highest code; both decode to
    themselves.

    The encoding is not exact: the unit gives about 14 significant digits, and the logarithm of a
    float64 has no more than that (13 towards 10^±308).
    """

    name = "fone-log"
    display = "FoNE, logarithmic"

    def __init__(self) -> None:
        super().__init__(_LOG_INTEGER_DIGITS, _LOG_FRACTION_DIGITS)

    def encode(self, values: FloatArray) -> Codes:
        """Return the codes. Raises BadInput if a value is NaN."""
        reject_nan(values, "FoNE")
        with np.errstate(divide="ignore"):
            logarithms = np.rint(np.log(np.abs(values)) * _LOG_SCALE)
        units = np.full(len(logarithms), -_LOG_MODULUS // 2)
        units[logarithms == np.inf] = _LOG_MODULUS // 2 - 1
        finite = np.isfinite(logarithms)
        units[finite] = logarithms[finite].astype(np.int64)
        return int_to_digits(units % _LOG_MODULUS, self.columns)

    def decode(self, codes: Codes) -> FloatArray:
        units = digits_to_int(codes)
        units[units >= _LOG_MODULUS // 2] -= _LOG_MODULUS
        with np.errstate(over="ignore", under="ignore"):
            values: FloatArray = np.exp(units / _LOG_SCALE)
        return values


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
