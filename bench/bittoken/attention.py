"""Causal attention inside each sample of a flat run of tokens, never across samples.

Two ways that give the same numbers: samples padded to a common length (any device), and PyTorch's
variable-length kernel (CUDA, half precision).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Where the samples of a flat run of T tokens lie.

    positions: of each token in its sample, shape (T,). groups: for samples of like length the
    token at each place of a padded matrix (samples, longest). back: shape (T,), the place of each
    token where all padded matrices are laid out flat, one after the other. starts: int32 of shape
    (samples + 1,). longest: tokens of the longest sample.
    """

    positions: Tensor
    groups: tuple[Tensor, ...]
    back: Tensor
    starts: Tensor
    longest: int

    @classmethod
    def of(cls, lengths: Ints, device: torch.device | str = "cpu") -> Layout:
        """The layout of samples of these lengths, all at least 1."""
        ends = np.cumsum(lengths)
        starts, total = ends - lengths, int(ends[-1])
        positions = np.arange(total) - np.repeat(starts, lengths)
        back = np.empty(total, np.int64)
        groups, before = [], 0
        sizes = np.ceil(np.log2(lengths)).astype(np.int64)
        for size in np.unique(sizes):
            members = np.flatnonzero(sizes == size)
            columns = np.arange(lengths[members].max())
            matrix = starts[members, None] + columns
            inside = columns < lengths[members, None]
            back[matrix[inside]] = before + np.flatnonzero(inside)
            # Filling comes behind a sample's own tokens, which therefore never look at it.
            groups.append(np.minimum(matrix, total - 1))
            before += matrix.size
        return cls(
            torch.from_numpy(positions).to(device),
            tuple(torch.from_numpy(group).to(device) for group in groups),
            torch.from_numpy(back).to(device),
            torch.from_numpy(np.r_[0, ends].astype(np.int32)).to(device),
            int(lengths.max()),
        )


def attend(q: Tensor, k: Tensor, v: Tensor, layout: Layout) -> Tensor:
    """Scaled dot-product attention. All of shape (T, heads, channels)."""
    if q.is_cuda and q.dtype in (torch.bfloat16, torch.float16):
        return _variable_length(q, k, v, layout)
    return padded(q, k, v, layout)


def padded(q: Tensor, k: Tensor, v: Tensor, layout: Layout) -> Tensor:
    """The plain way, on any device."""
    dtype = v.dtype
    if q.device.type == "cpu" and dtype is torch.bfloat16:
        # PyTorch's kernel for CPUs is several times faster in float32 on samples this short.
        q, k, v = q.float(), k.float(), v.float()
    outputs = []
    with torch.autocast(q.device.type, enabled=False):
        for group in layout.groups:
            queries, keys, values = (part[group].transpose(1, 2) for part in (q, k, v))
            mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
            outputs.append(mixed.transpose(1, 2).flatten(0, 1))
    return torch.cat(outputs)[layout.back].to(dtype)


def _variable_length(q: Tensor, k: Tensor, v: Tensor, layout: Layout) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    starts, longest = layout.starts, layout.longest
    mixed = varlen_attn(q, k, v, starts, starts, longest, longest, window_size=(-1, 0))
    assert isinstance(mixed, Tensor)
    return mixed


def rotated(x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Rotary positions: halves of the channels rotated by −θ. x: (T, heads, channels)."""
    cos, sin = angles
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos + second * sin, second * cos - first * sin], dim=-1)


def rotation(
    positions: Tensor, channels: int, base: float, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """cos and sin of θ = position / base^(2i / channels), each of shape (T, 1, channels / 2)."""
    exponents = torch.arange(0, channels, 2, device=positions.device, dtype=dtype) / channels
    angles = positions[:, None].to(dtype) / base**exponents
    return angles.cos()[:, None], angles.sin()[:, None]
