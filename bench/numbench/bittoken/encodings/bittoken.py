"""BitToken: the bits of a float64 and of its reciprocal (paper, "BitTokens")."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from numbench.bittoken.encodings.base import Codes, FloatArray, NumberEncoding, Vectors

Bytes = NDArray[np.uint8]

_BITS_OF = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
_SIGNS_OF = _BITS_OF.astype(np.float32) * 2 - 1
"""The eight bits of each byte, most significant first: as 0 and 1, and as ±1."""


class BitToken(NumberEncoding):
    """Sign, 11 exponent bits and 52 significand bits, most significant first, as ±1.

    The code is the float64 itself, viewed as one int64: every bit pattern is preserved, including
    those of NaN. If `reciprocal` is true, the bits of 1/x follow; 1/±0 is ±inf, and the reciprocal
    of a NaN is the NaN itself. The number head predicts only the bits of x.
    """

    columns = 1
    dtype = np.dtype(np.int64)
    outputs = 64

    def __init__(self, reciprocal: bool = True) -> None:
        self.name = "bittoken" if reciprocal else "bittoken-no-reciprocal"
        self.display = "BitToken" if reciprocal else "BitToken without reciprocal"
        self.width = 128 if reciprocal else 64
        self._reciprocal = reciprocal

    def encode(self, values: FloatArray) -> Codes:
        return np.ascontiguousarray(values, np.float64).view(np.int64).reshape(-1, 1)

    def decode(self, codes: Codes) -> FloatArray:
        return np.ascontiguousarray(codes[:, 0]).view(np.float64)

    def vector(self, codes: Codes) -> Vectors:
        values = self.decode(codes)
        byte_values = _to_bytes(values)
        if self._reciprocal:
            byte_values = np.concatenate([byte_values, _to_bytes(_reciprocal(values))], axis=1)
        return _SIGNS_OF.take(byte_values, axis=0).reshape(len(codes), self.width)

    def nearest_codes(self, vectors: Vectors) -> Codes:
        return self.predict_codes(vectors[:, :64])

    def predict_codes(self, outputs: Vectors) -> Codes:
        return self.encode(from_bits(outputs > 0))

    def torch_vector(self, codes: Tensor) -> Tensor:
        byte_values = _torch_to_bytes(codes)
        if self._reciprocal:
            values = codes.view(torch.float64)
            inverse = torch.where(values.isnan(), values, 1 / values)
            byte_values = torch.cat(
                [byte_values, _torch_to_bytes(inverse.view(torch.int64))], dim=-1
            )
        return _lookup(_signs_on(codes.device), byte_values)

    def torch_predict_codes(self, outputs: Tensor) -> Tensor:
        weights = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], device=outputs.device)
        grouped = (outputs > 0).view(*outputs.shape[:-1], 8, 8)
        return (grouped * weights).sum(-1).to(torch.uint8).flip(-1).view(torch.int64)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the binary cross-entropy, averaged over the 64 bits."""
        logits, target = outputs.to(torch.float32), torch_bits(codes).to(torch.float32)
        loss = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
        return loss.mean(-1)


def to_bits(values: FloatArray) -> Bytes:
    """Return the bits of n float64, most significant first: uint8 of shape (n, 64).

    Fastest for about ten thousand values per call, whose bits fit into the CPU cache.
    """
    return np.unpackbits(_to_bytes(values)).reshape(-1, 64)


def from_bits(bits: NDArray[np.bool_] | Bytes) -> FloatArray:
    """Return the n float64 of n rows of 64 bits: the inverse of `to_bits`."""
    return np.packbits(bits).view(">i8").astype(np.int64).view(np.float64)


def torch_bits(codes: Tensor) -> Tensor:
    """Return the bits of int64 codes of shape (…, 1): uint8 of shape (…, 64)."""
    return _lookup(_bits_on(codes.device), _torch_to_bytes(codes))


def _to_bytes(values: FloatArray) -> Bytes:
    """Return the bytes of n float64, most significant first: uint8 of shape (n, 8)."""
    swapped = np.ascontiguousarray(values, np.float64).view(np.int64).astype(">i8")
    return swapped.view(np.uint8).reshape(-1, 8)


def _reciprocal(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", over="ignore"):
        return np.divide(1.0, values, out=values.copy(), where=~np.isnan(values))


def _torch_to_bytes(codes: Tensor) -> Tensor:
    # A view of a single row may have arbitrary strides, which `view` rejects; a copy has not.
    return codes.clone(memory_format=torch.contiguous_format).view(torch.uint8).flip(-1)


def _lookup(table: Tensor, byte_values: Tensor) -> Tensor:
    """Return the eight table entries of each byte, concatenated: (…, bytes · 8)."""
    rows = torch.index_select(table, 0, byte_values.flatten().to(torch.int32))
    return rows.view(*byte_values.shape[:-1], byte_values.shape[-1] * 8)


@cache
def _bits_on(device: torch.device) -> Tensor:
    return torch.from_numpy(_BITS_OF).to(device)


@cache
def _signs_on(device: torch.device) -> Tensor:
    return torch.from_numpy(_SIGNS_OF).to(device)
