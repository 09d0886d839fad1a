"""Base 10, fixed point: a sign and decimal digits at fixed positions, one-hot."""

from __future__ import annotations

import numpy as np

from bittoken.encodings.base import Codes, FloatArray, reject_nan
from bittoken.encodings.decimal_digits import fixed_point_digits, parse_fixed_point
from bittoken.encodings.one_hot_digits import OneHotDigits

INTEGER_DIGITS, FRACTION_DIGITS = 15, 28
"""The positions of every number of the tasks: at most 15 digits, from 1e-14 to below 1e15."""

LIMIT = 10.0**INTEGER_DIGITS


class Base10Fixed(OneHotDigits):
    """Sign, 15 digits before the decimal point and 28 after it, each one-hot.

    The code has one class per position: sign (1: negative), then the digits of the shortest decimal
    that parses to the same float64. Digits below 10^-28 are rounded half to even. From 10^15 on,
    including inf, every digit is 9, which is decoded to ±inf: no float64 in range has that code.
    ±0 keeps its sign.
    """

    name = "base10-fixed"
    display = "Base 10, fixed point"

    def __init__(self) -> None:
        super().__init__(signs=1, digits=INTEGER_DIGITS + FRACTION_DIGITS)

    def encode(self, values: FloatArray) -> Codes:
        """Return the codes. Raises BadInput if a value is NaN."""
        reject_nan(values, self.display)
        magnitudes = np.abs(values)
        in_range = magnitudes < LIMIT
        codes = np.empty((len(values), self.columns), np.int8)
        codes[:, 0] = np.signbit(values)
        codes[:, 1:] = fixed_point_digits(
            np.where(in_range, magnitudes, 0), INTEGER_DIGITS, FRACTION_DIGITS
        )
        codes[~in_range, 1:] = 9
        return codes

    def decode(self, codes: Codes) -> FloatArray:
        is_overflow = (codes[:, 1:] == 9).all(axis=1)
        magnitudes = np.where(is_overflow, np.inf, parse_fixed_point(codes[:, 1:], INTEGER_DIGITS))
        return np.where(codes[:, 0] == 1, -magnitudes, magnitudes)
