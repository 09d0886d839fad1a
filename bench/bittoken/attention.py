"""Causal attention within each sample of a packed sequence, and the key-value cache of generation.

Two implementations give the same results: scaled dot-product attention on padded samples (any
device) and PyTorch's variable-length kernel (CUDA, half precision).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bittoken.encodings.base import IntArray


@dataclass(frozen=True)
class PackedLayout:
    """The positions of the samples in a packed sequence of T tokens.

    positions: the position of each token in its sample, shape (T,). pad_indices: the samples,
    grouped by similar length, as matrices (samples, max length) of token indices. unpad_indices:
    shape (T,), the index of each token in the concatenation of the flattened matrices. cu_seqlens:
    int32 of shape (samples + 1,), the cumulative lengths. max_seqlen: the length of the longest
    sample.
    """

    positions: Tensor
    pad_indices: tuple[Tensor, ...]
    unpad_indices: Tensor
    cu_seqlens: Tensor
    max_seqlen: int

    @classmethod
    def from_lengths(cls, lengths: IntArray, device: torch.device | str = "cpu") -> PackedLayout:
        """Return the layout of samples of these lengths, all at least 1."""
        ends = np.cumsum(lengths)
        starts, total = ends - lengths, int(ends[-1])
        positions = np.arange(total) - np.repeat(starts, lengths)
        unpad_indices = np.empty(total, np.int64)
        pad_indices, padded_total = [], 0
        length_classes = np.ceil(np.log2(lengths)).astype(np.int64)
        for length_class in np.unique(length_classes):
            samples = np.flatnonzero(length_classes == length_class)
            columns = np.arange(lengths[samples].max())
            matrix = starts[samples, None] + columns
            is_token = columns < lengths[samples, None]
            unpad_indices[matrix[is_token]] = padded_total + np.flatnonzero(is_token)
            # Padding follows the tokens of a sample, so causal attention never reads it.
            pad_indices.append(np.minimum(matrix, total - 1))
            padded_total += matrix.size
        return cls(
            torch.from_numpy(positions).to(device),
            tuple(torch.from_numpy(indices).to(device) for indices in pad_indices),
            torch.from_numpy(unpad_indices).to(device),
            torch.from_numpy(np.r_[0, ends].astype(np.int32)).to(device),
            int(lengths.max()),
        )


def causal_attention(q: Tensor, k: Tensor, v: Tensor, layout: PackedLayout) -> Tensor:
    """Return scaled dot-product attention. All tensors have shape (T, heads, channels)."""
    if q.is_cuda and q.dtype in (torch.bfloat16, torch.float16):
        return _varlen_attention(q, k, v, layout)
    return padded_attention(q, k, v, layout)


def padded_attention(q: Tensor, k: Tensor, v: Tensor, layout: PackedLayout) -> Tensor:
    """Return attention computed on padded samples, on any device."""
    dtype = v.dtype
    if q.device.type == "cpu" and dtype is torch.bfloat16:
        # PyTorch's CPU kernel is several times faster in float32 for samples this short.
        q, k, v = q.float(), k.float(), v.float()
    outputs = []
    with torch.autocast(q.device.type, enabled=False):
        for indices in layout.pad_indices:
            queries, keys, values = (part[indices].transpose(1, 2) for part in (q, k, v))
            mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
            outputs.append(mixed.transpose(1, 2).flatten(0, 1))
    return torch.cat(outputs)[layout.unpad_indices].to(dtype)


def _varlen_attention(q: Tensor, k: Tensor, v: Tensor, layout: PackedLayout) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    cu_seqlens, max_seqlen = layout.cu_seqlens, layout.max_seqlen
    mixed = varlen_attn(
        q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, window_size=(-1, 0)
    )
    assert isinstance(mixed, Tensor)
    return mixed


def apply_rotary(x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Apply rotary positions: rotate channel pairs by −θ. x: (T, heads, channels)."""
    cos, sin = angles
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos + second * sin, second * cos - first * sin], dim=-1)


def rotary_cos_sin(
    positions: Tensor, channels: int, base: float, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """Return cos and sin of θ = position / base^(2i / channels), each (T, 1, channels / 2)."""
    exponents = torch.arange(0, channels, 2, device=positions.device, dtype=dtype) / channels
    angles = positions[:, None].to(dtype) / base**exponents
    return angles.cos()[:, None], angles.sin()[:, None]


_EXTRA_CAPACITY = 16
"""Initial capacity of the cache for tokens after the longest question; doubled as needed."""


class KeyValueCache:
    """The keys and values of the samples of a batch, for each layer.

    The first forward pass stores those of the complete questions. Each later pass adds one token
    per sample, with the layout of `next_layout`.
    """

    def __init__(self, layers: int) -> None:
        self.layers = [LayerCache() for _ in range(layers)]

    def next_layout(self, positions: Tensor) -> PackedLayout:
        """Return the layout of one token per sample at these positions, shape (samples,)."""
        layout = PackedLayout.from_lengths(np.ones(len(positions), np.int64), positions.device)
        return replace(layout, positions=positions, max_seqlen=int(positions.max()) + 1)

    def select(self, samples: Tensor) -> None:
        """Remove all samples except those with these indices."""
        for layer_cache in self.layers:
            layer_cache.keys = layer_cache.keys[samples]
            layer_cache.values = layer_cache.values[samples]


class LayerCache:
    """The keys and values of one layer, each of shape (samples, capacity, heads, channels)."""

    def __init__(self) -> None:
        self.keys = self.values = torch.empty(0)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, layout: PackedLayout) -> Tensor:
        """Store new tokens and return their attention to all tokens of their samples so far."""
        if not len(self.keys):
            self.keys, self.values = (_to_padded(part, layout) for part in (k, v))
            return causal_attention(q, k, v, layout)
        length = layout.max_seqlen
        if length > self.keys.shape[1]:
            self.keys, self.values = _double_capacity(self.keys), _double_capacity(self.values)
        samples = torch.arange(len(q), device=q.device)
        self.keys[samples, layout.positions] = k
        self.values[samples, layout.positions] = v
        keys, values = (part[:, :length].transpose(1, 2) for part in (self.keys, self.values))
        is_visible = torch.arange(length, device=q.device) <= layout.positions[:, None]
        mixed = functional.scaled_dot_product_attention(
            q[:, :, None], keys, values, attn_mask=is_visible[:, None, None]
        )
        return mixed[:, :, 0]


def _to_padded(part: Tensor, layout: PackedLayout) -> Tensor:
    """Copy a packed tensor (T, heads, channels) into one padded row per sample, with capacity."""
    lengths = layout.cu_seqlens.diff().long()
    samples = torch.arange(len(lengths), device=part.device).repeat_interleave(lengths)
    padded = part.new_zeros(len(lengths), layout.max_seqlen + _EXTRA_CAPACITY, *part.shape[1:])
    padded[samples, layout.positions] = part
    return padded


def _double_capacity(part: Tensor) -> Tensor:
    return torch.cat([part, torch.zeros_like(part)], dim=1)
