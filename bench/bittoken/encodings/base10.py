"""Base 10: sign, exponent and 17 significand digits, one-hot (paper, "Ablations")."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bench.bittoken.encodings.base import Codes, Floats, NumberEncoding, Vectors
from bench.bittoken.encodings.decimals import DIGITS, digits_of, parsed, shortest

SPECIAL = 999
"""The exponent of inf (significand 0) and of NaN (significand 1)."""

_EXPONENT = 3
_SIGNS, _DECIMALS = 2, _EXPONENT + DIGITS


class Base10(NumberEncoding):
    """±d.ddd… · 10^±eee: 2 signs, 3 exponent digits and 17 significand digits, each one-hot.

    The code holds a class a place: sign (1: negative), exponent's sign (1: negative), exponent
    digits, significand digits. These are those of the shortest decimal that reads back as the
    same float64, then zeros. ±0 and ±inf keep their signs; of a NaN sign and payload are lost.
    """

    name = "base10"
    display = "Base 10"
    columns = _SIGNS + _DECIMALS
    dtype = np.dtype(np.int8)
    width = outputs = 2 * _SIGNS + 10 * _DECIMALS

    def code(self, values: Floats) -> Codes:
        finite = np.isfinite(values)
        significand, exponent = shortest(np.where(finite, np.abs(values), 0))
        isnan = np.isnan(values)
        significand[isnan] = 10 ** (DIGITS - 1)
        exponent[~finite] = SPECIAL
        codes = np.empty((len(values), self.columns), np.int8)
        codes[:, 0] = np.signbit(values) & ~isnan
        codes[:, 1] = exponent < 0
        codes[:, 2:5] = digits_of(np.abs(exponent), _EXPONENT)
        codes[:, 5:] = digits_of(significand, DIGITS)
        return codes

    def value(self, codes: Codes) -> Floats:
        """What a float64 cannot hold is inf or 0; exponent 999 is NaN but for significand 0."""
        text = np.empty((len(codes), 24), np.uint8)
        text[:, 0] = np.where(codes[:, 0] == 1, ord("-"), ord("0"))
        text[:, 1] = codes[:, 5] + ord("0")
        text[:, 2] = ord(".")
        text[:, 3:19] = codes[:, 6:] + ord("0")
        text[:, 19] = ord("e")
        text[:, 20] = np.where(codes[:, 1] == 1, ord("-"), ord("+"))
        text[:, 21:] = codes[:, 2:5] + ord("0")
        values = parsed(text)
        special = (codes[:, 1:5] == (0, 9, 9, 9)).all(axis=1)
        infinite = special & ~codes[:, 5:].any(axis=1)
        values = np.where(special & ~infinite, np.nan, values)
        return np.where(infinite, np.where(codes[:, 0] == 1, -np.inf, np.inf), values)

    def vector(self, codes: Codes) -> Vectors:
        vectors = np.zeros((len(codes), self.width), np.float32)
        np.put_along_axis(vectors, codes + _STARTS, 1, axis=1)
        return vectors

    def nearest(self, vectors: Vectors) -> Codes:
        return self.decide(vectors)

    def decide(self, outputs: Vectors) -> Codes:
        signs = outputs[:, : 2 * _SIGNS].reshape(-1, _SIGNS, 2).argmax(-1)
        decimals = outputs[:, 2 * _SIGNS :].reshape(-1, _DECIMALS, 10).argmax(-1)
        return np.concatenate([signs, decimals], axis=1).astype(np.int8)

    def torch_vector(self, codes: Tensor) -> Tensor:
        places = codes.to(torch.int64) + torch.from_numpy(_STARTS).to(codes.device)
        shape = (*codes.shape[:-1], self.width)
        return torch.zeros(shape, device=codes.device).scatter_(-1, places, 1.0)

    def torch_decide(self, outputs: Tensor) -> Tensor:
        places = [logits.argmax(-1) for logits in _split(outputs)]
        return torch.cat(places, dim=-1).to(torch.int8)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Cross-entropy, the mean over the 22 places."""
        targets = torch.split(codes.to(torch.int64), [_SIGNS, _DECIMALS], dim=-1)
        losses = [
            functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
            for logits, target in zip(_split(outputs.to(torch.float32)), targets, strict=True)
        ]
        return torch.cat(losses, dim=-1).mean(-1)


_STARTS = np.concatenate(
    [np.arange(_SIGNS) * 2, 2 * _SIGNS + np.arange(_DECIMALS) * 10], dtype=np.int64
)
"""Where each place's classes begin in the vector."""


def _split(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Logits of the signs (…, 2, 2), and of the digits (…, 20, 10)."""
    signs, decimals = torch.split(outputs, [2 * _SIGNS, 10 * _DECIMALS], dim=-1)
    shape = outputs.shape[:-1]
    return signs.reshape(*shape, _SIGNS, 2), decimals.reshape(*shape, _DECIMALS, 10)
