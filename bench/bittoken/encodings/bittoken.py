"""BitToken: the bits of a float64 and of its reciprocal (paper, "BitTokens")."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bittoken.encodings.base import Codes, FloatArray, NumberEncoding

_BITS_OF = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
_SIGNS_OF = _BITS_OF.astype(np.float32) * 2 - 1
"""The eight bits of each byte as ±1, most significant first."""


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
        packed = _to_bytes(codes)
        if self._reciprocal:
            values = codes.view(torch.float64)
            inverse = torch.where(values.isnan(), values, 1 / values)
            packed = torch.cat([packed, _to_bytes(inverse.view(torch.int64))], dim=-1)
        return to_signs(packed)

    def predict(self, outputs: Tensor) -> Tensor:
        return pack_bits(outputs > 0).flip(-1).view(torch.int64)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the binary cross-entropy, averaged over the 64 bits."""
        is_set = (to_signs(_to_bytes(codes)) > 0).float()
        losses = functional.binary_cross_entropy_with_logits(
            outputs.float(), is_set, reduction="none"
        )
        return losses.mean(-1)


def to_signs(packed: Tensor) -> Tensor:
    """Return the bits of a uint8 tensor (…, bytes) as ±1, most significant first: float32."""
    rows = torch.index_select(_signs_on(packed.device), 0, packed.flatten().to(torch.int32))
    return rows.view(*packed.shape[:-1], packed.shape[-1] * 8)


def pack_bits(bits: Tensor) -> Tensor:
    """Return the bytes of a boolean tensor (…, 8 · bytes), most significant bit first: uint8."""
    weights = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], device=bits.device)
    grouped = bits.reshape(*bits.shape[:-1], bits.shape[-1] // 8, 8)
    return (grouped * weights).sum(-1).to(torch.uint8)


@cache
def _signs_on(device: torch.device) -> Tensor:
    return torch.from_numpy(_SIGNS_OF).to(device)


def _to_bytes(codes: Tensor) -> Tensor:
    """Return the bytes of int64 codes (…, 1), most significant first: uint8 (…, 8)."""
    # A view of a single row may have arbitrary strides, which `view` rejects; a copy has not.
    return codes.clone(memory_format=torch.contiguous_format).view(torch.uint8).flip(-1)
