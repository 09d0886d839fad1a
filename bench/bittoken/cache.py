"""Keys and values of the tokens that a network has seen, so that each is computed once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bench.bittoken.attention import Layout, attend

_ROOM = 16
"""Tokens for which there is room behind the longest question at first; doubled as needed."""


class Cache:
    """What the samples of a batch left behind, layer by layer.

    It is filled by one run over the whole questions, then by runs of one more token of each
    sample, laid out by `step`.
    """

    def __init__(self, layers: int) -> None:
        self.layers = [Past() for _ in range(layers)]

    def step(self, positions: Tensor) -> Layout:
        """The layout of one more token of each sample, at these positions, shape (samples,)."""
        layout = Layout.of(np.ones(len(positions), np.int64), positions.device)
        return replace(layout, positions=positions, longest=int(positions.max()) + 1)

    def keep(self, samples: Tensor) -> None:
        """Go on with these samples alone, given by their places."""
        for past in self.layers:
            past.keys, past.values = past.keys[samples], past.values[samples]


class Past:
    """One layer's keys and values, each of shape (samples, room, heads, channels)."""

    def __init__(self) -> None:
        self.keys = self.values = torch.empty(0)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, layout: Layout) -> Tensor:
        """Attention of new tokens to themselves and to all that came before in their samples."""
        if not len(self.keys):
            self.keys, self.values = (_spread(part, layout) for part in (k, v))
            return attend(q, k, v, layout)
        longest = layout.longest
        if longest > self.keys.shape[1]:
            self.keys, self.values = _longer(self.keys), _longer(self.values)
        samples = torch.arange(len(q), device=q.device)
        self.keys[samples, layout.positions] = k
        self.values[samples, layout.positions] = v
        keys, values = (part[:, :longest].transpose(1, 2) for part in (self.keys, self.values))
        seen = torch.arange(longest, device=q.device) <= layout.positions[:, None]
        mixed = functional.scaled_dot_product_attention(
            q[:, :, None], keys, values, attn_mask=seen[:, None, None]
        )
        return mixed[:, :, 0]


def _spread(part: Tensor, layout: Layout) -> Tensor:
    """A flat run (T, heads, channels) as a matrix of samples, with room for more tokens."""
    lengths = layout.starts.diff().long()
    samples = torch.arange(len(lengths), device=part.device).repeat_interleave(lengths)
    matrix = part.new_zeros(len(lengths), layout.longest + _ROOM, *part.shape[1:])
    matrix[samples, layout.positions] = part
    return matrix


def _longer(part: Tensor) -> Tensor:
    return torch.cat([part, torch.zeros_like(part)], dim=1)
