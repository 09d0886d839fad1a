"""Base 10: sign, exponent and 17 significand digits, one-hot (paper, "Ablations").

The paper's own code differs: `StudyBase10`, only for checkpoints that
`studies.paper_checkpoint` wrote.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from bittoken.encodings.base import (
    Codes,
    FloatArray,
    IntArray,
    NumberEncoding,
    digit_rows,
    parse_decimals,
)

DIGITS = 17
"""Significant digits that distinguish any two float64."""

SPECIAL_EXPONENT = 999
"""The exponent of inf (significand 0) and of NaN (significand 1)."""

_EXPONENT_DIGITS = 3
_SIGNS, _DIGITS = 2, _EXPONENT_DIGITS + DIGITS
"""Positions of a code: signs (classes 0 and 1), then digits (0 to 9)."""


class Base10(NumberEncoding):
    """±d.ddd… · 10^±eee: 2 signs, 3 exponent digits and 17 significand digits, each one-hot.

    The code has one class per position: sign (1: negative), sign of the exponent (1: negative),
    exponent digits, significand digits. The significand digits are those of the shortest decimal
    that parses to the same float64, padded with zeros. ±0 and ±inf keep their signs; the sign and
    payload of a NaN are lost.
    """

    name = "base10"
    display = "Base 10"

    dtype = np.dtype(np.int8)
    columns = _SIGNS + _DIGITS
    width = outputs = 2 * _SIGNS + 10 * _DIGITS

    def encode(self, values: FloatArray) -> Codes:
        return digit_rows(map(_code_text, values.tolist())).reshape(-1, self.columns)

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

    def vector(self, codes: Tensor) -> Tensor:
        sizes = torch.tensor([2] * _SIGNS + [10] * _DIGITS, device=codes.device)
        # The first class of each position follows the last one of the position before.
        indices = codes.to(torch.int64) + sizes.cumsum(0) - sizes
        shape = (*codes.shape[:-1], self.width)
        return torch.zeros(shape, device=codes.device).scatter_(-1, indices, 1.0)

    def predict(self, outputs: Tensor) -> Tensor:
        classes = [logits.argmax(-1) for logits in self._logits(outputs)]
        return torch.cat(classes, dim=-1).to(torch.int8)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the cross-entropy, averaged over the positions."""
        targets = torch.split(codes.to(torch.int64), [_SIGNS, _DIGITS], dim=-1)
        losses = [
            functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
            for logits, target in zip(self._logits(outputs.to(torch.float32)), targets, strict=True)
        ]
        return torch.cat(losses, dim=-1).mean(-1)

    def _logits(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the signs (…, signs, 2) and of the digits (…, digits, 10)."""
        signs, digits = torch.split(outputs, [2 * _SIGNS, 10 * _DIGITS], dim=-1)
        shape = outputs.shape[:-1]
        return signs.reshape(*shape, _SIGNS, 2), digits.reshape(*shape, _DIGITS, 10)


def _code_text(value: float) -> str:
    """Return sign, sign of the exponent, exponent digits and significand digits."""
    if math.isnan(value):
        return f"00{SPECIAL_EXPONENT}1".ljust(Base10.columns, "0")
    is_negative = int(math.copysign(1, value) < 0)
    if math.isinf(value):
        return f"{is_negative}0{SPECIAL_EXPONENT}".ljust(Base10.columns, "0")
    significand, _, power = f"{Decimal(repr(abs(value))):.16e}".partition("e")
    exponent = int(power) if value else 0
    digits = significand.replace(".", "")
    return f"{is_negative}{int(exponent < 0)}{abs(exponent):03}{digits}"


def int_to_digits(numbers: IntArray, count: int) -> NDArray[np.int8]:
    """Return the last `count` decimal digits, most significant first: int8 of shape (n, count)."""
    return (numbers[:, None] // 10 ** np.arange(count - 1, -1, -1) % 10).astype(np.int8)


_EXPONENT_BIAS = 500
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


def _to_digits(values: FloatArray) -> NDArray[np.int8]:
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
    codes = np.empty((len(digits), Base10.columns), np.int8)
    codes[:, 0] = digits[:, 0] == 0
    codes[:, 1] = exponents < 0
    codes[:, 2:5] = int_to_digits(np.abs(exponents), _EXPONENT_DIGITS)
    codes[:, 5:] = digits[:, 4:]
    return Base10().decode(codes)
