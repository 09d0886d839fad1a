"""Bits as ±1: conversion between packed bytes and tensors."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

_BITS_OF = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
_SIGNS_OF = _BITS_OF.astype(np.float32) * 2 - 1
"""The eight bits of each byte, most significant first: as 0 and 1, and as ±1."""


def torch_to_signs(packed: Tensor) -> Tensor:
    """Return the bits of a uint8 tensor (…, bytes) as ±1, most significant first: float32."""
    return _lookup(_signs_on(packed.device), packed)


def torch_to_bits(packed: Tensor) -> Tensor:
    """Return the bits of a uint8 tensor (…, bytes) as 0 and 1, most significant first: uint8."""
    return _lookup(_bits_on(packed.device), packed)


def torch_pack_bits(bits: Tensor) -> Tensor:
    """Return the bytes of a boolean tensor (…, 8 · bytes), most significant bit first: uint8."""
    weights = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], device=bits.device)
    grouped = bits.reshape(*bits.shape[:-1], bits.shape[-1] // 8, 8)
    return (grouped * weights).sum(-1).to(torch.uint8)


def bit_loss(outputs: Tensor, packed: Tensor) -> Tensor:
    """Return the binary cross-entropy of n predictions, averaged over the bits: (n,).

    outputs: one logit per bit, (n, 8 · bytes). packed: the true bits, uint8 (n, bytes).
    """
    logits, target = outputs.to(torch.float32), torch_to_bits(packed).to(torch.float32)
    loss = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    return loss.mean(-1)


def _lookup(table: Tensor, packed: Tensor) -> Tensor:
    rows = torch.index_select(table, 0, packed.flatten().to(torch.int32))
    return rows.view(*packed.shape[:-1], packed.shape[-1] * 8)


@cache
def _bits_on(device: torch.device) -> Tensor:
    return torch.from_numpy(_BITS_OF).to(device)


@cache
def _signs_on(device: torch.device) -> Tensor:
    return torch.from_numpy(_SIGNS_OF).to(device)
