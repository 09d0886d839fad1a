"""Base 10: sign, exponent and 17 significand digits, one-hot (paper, "Ablations")."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from numbench.bittoken.encodings.base import Codes, FloatArray, NumberEncoding, Vectors
from numbench.bittoken.encodings.decimal_digits import (
    DIGITS,
    int_to_digits,
    parse_decimals,
    shortest_decimals,
)

SPECIAL_EXPONENT = 999
"""The exponent of inf (significand 0) and of NaN (significand 1)."""

_EXPONENT_DIGITS = 3
_SIGN_COUNT, _DIGIT_COUNT = 2, _EXPONENT_DIGITS + DIGITS


class Base10(NumberEncoding):
    """±d.ddd… · 10^±eee: 2 signs, 3 exponent digits and 17 significand digits, each one-hot.

    The code has one class per position: sign (1: negative), sign of the exponent (1: negative),
    exponent digits, significand digits. The significand digits are those of the shortest decimal
    that parses to the same float64, padded with zeros. ±0 and ±inf keep their signs; the sign and
    payload of a NaN are lost.
    """

    name = "base10"
    display = "Base 10"
    columns = _SIGN_COUNT + _DIGIT_COUNT
    dtype = np.dtype(np.int8)
    width = outputs = 2 * _SIGN_COUNT + 10 * _DIGIT_COUNT

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

    def vector(self, codes: Codes) -> Vectors:
        vectors = np.zeros((len(codes), self.width), np.float32)
        np.put_along_axis(vectors, codes + _CLASS_OFFSETS, 1, axis=1)
        return vectors

    def nearest_codes(self, vectors: Vectors) -> Codes:
        return self.predict_codes(vectors)

    def predict_codes(self, outputs: Vectors) -> Codes:
        signs = outputs[:, : 2 * _SIGN_COUNT].reshape(-1, _SIGN_COUNT, 2).argmax(-1)
        decimals = outputs[:, 2 * _SIGN_COUNT :].reshape(-1, _DIGIT_COUNT, 10).argmax(-1)
        return np.concatenate([signs, decimals], axis=1).astype(np.int8)

    def torch_vector(self, codes: Tensor) -> Tensor:
        indices = codes.to(torch.int64) + torch.from_numpy(_CLASS_OFFSETS).to(codes.device)
        shape = (*codes.shape[:-1], self.width)
        return torch.zeros(shape, device=codes.device).scatter_(-1, indices, 1.0)

    def torch_predict_codes(self, outputs: Tensor) -> Tensor:
        classes = [logits.argmax(-1) for logits in _split_logits(outputs)]
        return torch.cat(classes, dim=-1).to(torch.int8)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the cross-entropy, averaged over the 22 positions."""
        targets = torch.split(codes.to(torch.int64), [_SIGN_COUNT, _DIGIT_COUNT], dim=-1)
        losses = [
            functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
            for logits, target in zip(
                _split_logits(outputs.to(torch.float32)), targets, strict=True
            )
        ]
        return torch.cat(losses, dim=-1).mean(-1)


_CLASS_OFFSETS = np.concatenate(
    [np.arange(_SIGN_COUNT) * 2, 2 * _SIGN_COUNT + np.arange(_DIGIT_COUNT) * 10], dtype=np.int64
)
"""The index in the vector of the first class of each position."""


def _split_logits(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits of the signs (…, 2, 2) and of the digits (…, 20, 10)."""
    signs, decimals = torch.split(outputs, [2 * _SIGN_COUNT, 10 * _DIGIT_COUNT], dim=-1)
    shape = outputs.shape[:-1]
    return signs.reshape(*shape, _SIGN_COUNT, 2), decimals.reshape(*shape, _DIGIT_COUNT, 10)
