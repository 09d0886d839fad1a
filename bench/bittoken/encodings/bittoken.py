"""BitToken: the bits of a float64 and of its reciprocal (paper, "BitTokens")."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bittoken.encodings.base import Codes, FloatArray, NumberEncoding, Vectors
from bittoken.encodings.bit_vectors import (
    bit_loss,
    torch_pack_bits,
    torch_to_signs,
)


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

    def nearest_codes(self, vectors: Vectors) -> Codes:
        return self.predict_codes(vectors[:, :64])

    def torch_vector(self, codes: Tensor) -> Tensor:
        packed = _to_bytes(codes)
        if self._reciprocal:
            values = codes.view(torch.float64)
            inverse = torch.where(values.isnan(), values, 1 / values)
            packed = torch.cat([packed, _to_bytes(inverse.view(torch.int64))], dim=-1)
        return torch_to_signs(packed)

    def torch_predict_codes(self, outputs: Tensor) -> Tensor:
        return torch_pack_bits(outputs > 0).flip(-1).view(torch.int64)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the binary cross-entropy, averaged over the 64 bits."""
        return bit_loss(outputs, _to_bytes(codes))


def _to_bytes(codes: Tensor) -> Tensor:
    """Return the bytes of int64 codes (…, 1), most significant first: uint8 (…, 8)."""
    # A view of a single row may have arbitrary strides, which `view` rejects; a copy has not.
    return codes.clone(memory_format=torch.contiguous_format).view(torch.uint8).flip(-1)
