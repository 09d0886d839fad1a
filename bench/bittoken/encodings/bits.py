"""BitToken: the 64 bits of a float64 and those of its reciprocal (paper, "BitTokens")."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from bench.bittoken.encodings.base import Codes, Floats, NumberEncoding, Vectors

Octets = NDArray[np.uint8]

_BITS_OF = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
_SIGNS_OF = _BITS_OF.astype(np.float32) * 2 - 1
"""The eight bits of each octet, most significant first: as 0 and 1, and as ±1."""


class BitToken(NumberEncoding):
    """Sign, 11 exponent bits and 52 significand bits, most significant first, as ±1.

    The code is the float64 itself, seen as one int64: every bit pattern stays, that of a NaN too.
    With `reciprocal`, the bits of 1/x follow; 1/±0 is ±inf, and a NaN stands for its own
    reciprocal. Only the number's own bits are predicted.
    """

    columns = 1
    dtype = np.dtype(np.int64)
    outputs = 64

    def __init__(self, reciprocal: bool = True) -> None:
        self.name = "bittoken" if reciprocal else "bittoken-no-reciprocal"
        self.display = "BitToken" if reciprocal else "BitToken without reciprocal"
        self.width = 128 if reciprocal else 64
        self._reciprocal = reciprocal

    def code(self, values: Floats) -> Codes:
        return np.ascontiguousarray(values, np.float64).view(np.int64).reshape(-1, 1)

    def value(self, codes: Codes) -> Floats:
        return np.ascontiguousarray(codes[:, 0]).view(np.float64)

    def vector(self, codes: Codes) -> Vectors:
        values = self.value(codes)
        octets = _octets(values)
        if self._reciprocal:
            octets = np.concatenate([octets, _octets(_reciprocal(values))], axis=1)
        return _SIGNS_OF.take(octets, axis=0).reshape(len(codes), self.width)

    def nearest(self, vectors: Vectors) -> Codes:
        return self.decide(vectors[:, :64])

    def decide(self, outputs: Vectors) -> Codes:
        return self.code(from_bits(outputs > 0))

    def torch_vector(self, codes: Tensor) -> Tensor:
        octets = _torch_octets(codes)
        if self._reciprocal:
            values = codes.view(torch.float64)
            inverse = torch.where(values.isnan(), values, 1 / values)
            octets = torch.cat([octets, _torch_octets(inverse.view(torch.int64))], dim=-1)
        return _looked_up(_signs_on(codes.device), octets)

    def torch_decide(self, outputs: Tensor) -> Tensor:
        weights = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], device=outputs.device)
        in_eights = (outputs > 0).view(*outputs.shape[:-1], 8, 8)
        return (in_eights * weights).sum(-1).to(torch.uint8).flip(-1).view(torch.int64)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Binary cross-entropy, the mean over the 64 bits."""
        logits, target = outputs.to(torch.float32), torch_bits(codes).to(torch.float32)
        loss = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
        return loss.mean(-1)


def bits(values: Floats) -> Octets:
    """uint8 of shape (n, 64): the bits of n float64, most significant first.

    Fastest on some ten thousand values at a time, whose bits the processor's cache holds.
    """
    return np.unpackbits(_octets(values)).reshape(-1, 64)


def from_bits(matrix: NDArray[np.bool_] | Octets) -> Floats:
    """The n float64 of n rows of 64 bits: the inverse of `bits`."""
    return np.packbits(matrix).view(">i8").astype(np.int64).view(np.float64)


def torch_bits(codes: Tensor) -> Tensor:
    """uint8 of shape (…, 64): the bits of int64 of shape (…, 1)."""
    return _looked_up(_bits_on(codes.device), _torch_octets(codes))


def _octets(values: Floats) -> Octets:
    """uint8 of shape (n, 8), the most significant first."""
    swapped = np.ascontiguousarray(values, np.float64).view(np.int64).astype(">i8")
    return swapped.view(np.uint8).reshape(-1, 8)


def _reciprocal(values: Floats) -> Floats:
    with np.errstate(divide="ignore", over="ignore"):
        return np.divide(1.0, values, out=values.copy(), where=~np.isnan(values))


def _torch_octets(codes: Tensor) -> Tensor:
    # A view of a single row may have a stride that says nothing: a copy has not.
    return codes.clone(memory_format=torch.contiguous_format).view(torch.uint8).flip(-1)


def _looked_up(table: Tensor, octets: Tensor) -> Tensor:
    """The table's rows of eight, one an octet, in a row."""
    rows = torch.index_select(table, 0, octets.flatten().to(torch.int32))
    return rows.view(*octets.shape[:-1], octets.shape[-1] * 8)


@cache
def _bits_on(device: torch.device) -> Tensor:
    return torch.from_numpy(_BITS_OF).to(device)


@cache
def _signs_on(device: torch.device) -> Tensor:
    return torch.from_numpy(_SIGNS_OF).to(device)
