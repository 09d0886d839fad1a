"""BitToken: the bits of a float64 and of its reciprocal (paper, "BitTokens")."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bittoken.encodings.base import Codes, FloatArray, NumberEncoding


class BitToken(NumberEncoding):
    """Sign, 11 exponent bits and 52 significand bits, most significant first, as ±1.

    The code is the float64 itself, viewed as one int64: every bit pattern is preserved, including
    those of NaN. If `reciprocal` is true, the bits of 1/x follow; 1/±0 is ±inf, and the reciprocal
    of a NaN is the NaN itself. The number head predicts only the bits of x.
    """

    columns = 1
    dtype = np.dtype(np.int64)
    outputs = 64
    base = 2

    def __init__(self, reciprocal: bool = True) -> None:
        self.name = "bittoken" if reciprocal else "bittoken-no-reciprocal"
        self.display = "BitToken" if reciprocal else "BitToken without reciprocal"
        self.width = 128 if reciprocal else 64
        self._reciprocal = reciprocal

    def encode(self, values: FloatArray) -> Codes:
        return np.ascontiguousarray(values, np.float64).view(np.int64).reshape(-1, 1)

    def decode(self, codes: Codes) -> FloatArray:
        return np.ascontiguousarray(codes[:, 0]).view(np.float64)

    def vector(self, codes: Tensor) -> Tensor:
        bits = _bits(codes)
        if self._reciprocal:
            values = codes.contiguous().view(torch.float64)
            inverse = torch.where(values.isnan(), values, 1 / values)
            bits = torch.cat([bits, _bits(inverse.view(torch.int64))], dim=-1)
        return bits.float() * 2 - 1

    def predict(self, outputs: Tensor) -> Tensor:
        return ((outputs > 0).long() << _shifts(outputs)).sum(-1, keepdim=True)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the binary cross-entropy, averaged over the 64 bits."""
        losses = functional.binary_cross_entropy_with_logits(
            outputs.float(), _bits(codes).float(), reduction="none"
        )
        return losses.mean(-1)


def _bits(codes: Tensor) -> Tensor:
    """Return the bits of int64 codes (…, 1), most significant first: int64 (…, 64)."""
    return (codes >> _shifts(codes)) & 1


def _shifts(tensor: Tensor) -> Tensor:
    """Return the positions of the bits, most significant first, on the device of a tensor."""
    return torch.arange(63, -1, -1, device=tensor.device)
