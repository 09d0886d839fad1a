"""Base 10: sign, exponent and 17 significand digits, one-hot (paper, "Ablations")."""

from __future__ import annotations

import numpy as np

from bittoken.encodings.base import Codes, FloatArray
from bittoken.encodings.decimal_digits import (
    DIGITS,
    int_to_digits,
    parse_decimals,
    shortest_decimals,
)
from bittoken.encodings.one_hot_digits import OneHotDigits

SPECIAL_EXPONENT = 999
"""The exponent of inf (significand 0) and of NaN (significand 1)."""

_EXPONENT_DIGITS = 3


class Base10(OneHotDigits):
    """±d.ddd… · 10^±eee: 2 signs, 3 exponent digits and 17 significand digits, each one-hot.

    The code has one class per position: sign (1: negative), sign of the exponent (1: negative),
    exponent digits, significand digits. The significand digits are those of the shortest decimal
    that parses to the same float64, padded with zeros. ±0 and ±inf keep their signs; the sign and
    payload of a NaN are lost.
    """

    name = "base10"
    display = "Base 10"

    def __init__(self) -> None:
        super().__init__(signs=2, digits=_EXPONENT_DIGITS + DIGITS)

    def encode(self, values: FloatArray) -> Codes:
        finite = np.isfinite(values)
        significand, exponent = shortest_decimals(np.where(finite, np.abs(values), 0))
        isnan = np.isnan(values)
        significand[isnan] = 10 ** (DIGITS - 1)
        exponent[~finite] = SPECIAL_EXPONENT
        codes = np.empty((len(values), self.columns), np.int8)
        codes[:, 0] = np.signbit(values) & ~isnan
        codes[:, 1] = exponent < 0
        codes[:, 2:5] = int_to_digits(np.abs(exponent), _EXPONENT_DIGITS)
        codes[:, 5:] = int_to_digits(significand, DIGITS)
        return codes

    def decode(self, codes: Codes) -> FloatArray:
        """Return the values; values out of range of float64 are inf or 0.

        Exponent 999 means ±inf if the significand is 0, and NaN otherwise.
        """
        text = np.empty((len(codes), 24), np.uint8)
        text[:, 0] = np.where(codes[:, 0] == 1, ord("-"), ord("0"))
        text[:, 1] = codes[:, 5] + ord("0")
        text[:, 2] = ord(".")
        text[:, 3:19] = codes[:, 6:] + ord("0")
        text[:, 19] = ord("e")
        text[:, 20] = np.where(codes[:, 1] == 1, ord("-"), ord("+"))
        text[:, 21:] = codes[:, 2:5] + ord("0")
        values = parse_decimals(text)
        special = (codes[:, 1:5] == (0, 9, 9, 9)).all(axis=1)
        infinite = special & ~codes[:, 5:].any(axis=1)
        values = np.where(special & ~infinite, np.nan, values)
        return np.where(infinite, np.where(codes[:, 0] == 1, -np.inf, np.inf), values)
