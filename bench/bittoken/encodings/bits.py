"""BitToken: the 64 bits of a float64 and those of its reciprocal (paper, "BitTokens")."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bench.bittoken.encodings.base import Codes, Floats, NumberEncoding, Vectors


class BitToken(NumberEncoding):
    """Sign, 11 exponent bits and 52 significand bits, most significant first, as ±1.

    The code is the float64 itself, seen as one int64. With `reciprocal`, the bits of 1/x follow
    (1/±0 is ±inf). Only the number's own bits are predicted.
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
        return np.ascontiguousarray(values, np.float64).view(np.int64)[:, None]

    def value(self, codes: Codes) -> Floats:
        return np.ascontiguousarray(codes[:, 0]).view(np.float64)

    def vector(self, codes: Codes) -> Vectors:
        parts = [bits(self.value(codes))]
        if self._reciprocal:
            with np.errstate(divide="ignore", over="ignore"):
                parts.append(bits(1 / self.value(codes)))
        return np.concatenate(parts, axis=1).astype(np.float32) * 2 - 1

    def nearest(self, vectors: Vectors) -> Codes:
        return self.decide(vectors[:, :64])

    def decide(self, outputs: Vectors) -> Codes:
        return self.code(from_bits(outputs > 0))

    def torch_vector(self, codes: Tensor) -> Tensor:
        parts = [torch_bits(codes)]
        if self._reciprocal:
            parts.append(torch_bits((1 / codes.view(torch.float64)).view(torch.int64)))
        return torch.cat(parts, dim=-1).to(torch.float32) * 2 - 1

    def torch_decide(self, outputs: Tensor) -> Tensor:
        shifts = torch.arange(63, -1, -1, device=outputs.device)
        return ((outputs > 0).to(torch.int64) << shifts).sum(-1, keepdim=True)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Binary cross-entropy, the mean over the 64 bits."""
        target = torch_bits(codes).to(outputs.dtype)
        loss = functional.binary_cross_entropy_with_logits(outputs, target, reduction="none")
        return loss.mean(-1)


def bits(values: Floats) -> np.ndarray:
    """uint8 of shape (n, 64): the bits of n float64, most significant first."""
    octets = np.ascontiguousarray(values, ">f8").view(np.uint8)
    return np.unpackbits(octets).reshape(-1, 64)


def from_bits(matrix: np.ndarray) -> Floats:
    """The n float64 of n rows of 64 bits: the inverse of `bits`."""
    return np.packbits(matrix).view(">f8").astype(np.float64)


def torch_bits(codes: Tensor) -> Tensor:
    """int64 of shape (…, 64): the bits of int64 of shape (…, 1)."""
    shifts = torch.arange(63, -1, -1, device=codes.device)
    return codes >> shifts & 1
