"""Base 10: sign, exponent and 17 significand digits, one-hot (paper, "Ablations")."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bittoken.encodings.base import Codes, FloatArray, NumberEncoding
from bittoken.encodings.digits import (
    DIGITS,
    int_to_digits,
    parse_decimals,
    shortest_decimals,
)

SPECIAL_EXPONENT = 999
"""The exponent of inf (significand 0) and of NaN (significand 1)."""

_EXPONENT_DIGITS = 3


class OneHotDigits(NumberEncoding):
    """An encoding whose code is a row of signs (classes 0 and 1) and then of digits (0 to 9).

    Vector and outputs have two channels per sign and ten per digit.
    """

    dtype = np.dtype(np.int8)

    def __init__(self, signs: int, digits: int) -> None:
        """Set the number of signs and digits of a code."""
        self._signs, self._digits = signs, digits
        self.columns = signs + digits
        self.width = self.outputs = 2 * signs + 10 * digits

    def vector(self, codes: Tensor) -> Tensor:
        sizes = torch.tensor([2] * self._signs + [10] * self._digits, device=codes.device)
        # The first class of each position follows the last one of the position before.
        indices = codes.to(torch.int64) + sizes.cumsum(0) - sizes
        shape = (*codes.shape[:-1], self.width)
        return torch.zeros(shape, device=codes.device).scatter_(-1, indices, 1.0)

    def predict(self, outputs: Tensor) -> Tensor:
        classes = [logits.argmax(-1) for logits in self._logits(outputs)]
        return torch.cat(classes, dim=-1).to(torch.int8)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the cross-entropy, averaged over the positions."""
        targets = torch.split(codes.to(torch.int64), [self._signs, self._digits], dim=-1)
        losses = [
            functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
            for logits, target in zip(self._logits(outputs.to(torch.float32)), targets, strict=True)
        ]
        return torch.cat(losses, dim=-1).mean(-1)

    def _logits(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the signs (…, signs, 2) and of the digits (…, digits, 10)."""
        signs, digits = torch.split(outputs, [2 * self._signs, 10 * self._digits], dim=-1)
        shape = outputs.shape[:-1]
        return signs.reshape(*shape, self._signs, 2), digits.reshape(*shape, self._digits, 10)


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
