"""FoNE: the decimal digits of |x| as points on circles (paper, "Comparing BitTokens …")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench.bittoken.encodings.base import Codes, Floats
from bench.bittoken.encodings.decimals import DIGITS, POWERS, Ints, digits_of, parsed, shortest
from bench.bittoken.encodings.sinusoids import Sinusoidal
from bench.errors import BadInput

WHOLE, FRACTION = 17, 32


class FoNE(Sinusoidal):
    """17 digits before the decimal point and 32 after it: periods 10^17 to 10^-31.

    The digits are those of the shortest decimal that reads back as the same float64: 0.1 is a one
    and zeros. Digits below 10^-32 are rounded half to even. From 10^17 on, inf too, every digit
    is 9, which reads back as 10^17.
    """

    name = "fone"
    display = "FoNE"

    def __init__(self) -> None:
        super().__init__(WHOLE, FRACTION)

    def code(self, values: Floats) -> Codes:
        """BadInput for NaN, which has no digits."""
        magnitudes = np.abs(values)
        if np.isnan(magnitudes).any():
            raise BadInput("FoNE cannot encode NaN: leave it out, or take BitToken")
        too_large = magnitudes >= 10.0**WHOLE
        significand, exponent = shortest(np.where(too_large, 0, magnitudes))
        lowest = exponent - (DIGITS - 1)
        digits = digits_of(_rounded(significand, -FRACTION - lowest), DIGITS)
        first = WHOLE - DIGITS - np.maximum(lowest, -FRACTION)
        codes = np.zeros((len(magnitudes), self.columns), np.int8)
        np.put_along_axis(codes, first[:, None] + np.arange(DIGITS), digits, axis=1)
        codes[too_large] = 9
        return codes

    def value(self, codes: Codes) -> Floats:
        text = np.empty((len(codes), self.columns + 1), np.uint8)
        text[:, :WHOLE] = codes[:, :WHOLE] + ord("0")
        text[:, WHOLE] = ord(".")
        text[:, WHOLE + 1 :] = codes[:, WHOLE:] + ord("0")
        return parsed(text)


def _rounded(significand: Ints, dropped: Ints) -> Ints:
    """17-digit integers without their last `dropped` digits (none if negative), half to even."""
    unit = POWERS[np.clip(dropped, 0, DIGITS + 1)]
    kept, rest = np.divmod(significand, unit)
    up: NDArray[np.bool_] = (2 * rest > unit) | ((2 * rest == unit) & (kept % 2 == 1))
    return kept + up
