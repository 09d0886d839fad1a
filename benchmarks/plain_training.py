"""A straightforward implementation of the same network and loss, the baseline for the trainer.

Float32, dense masks, logits at every position, bits by a loop of shifts, AdamW.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bittoken.config import ModelConfig
from bittoken.data.packing import Samples
from bittoken.vocabulary import NUM, PAD, Vocabulary

NUMBER_LOSS = 10.0
NO_LOSS = -100
ROW = 1024
"""Tokens per packed row."""


class Rows(NamedTuple):
    """Samples laid out in rows, all of shape (rows, length).

    codes: the float64 of a number, viewed as int64. owner: the index of each token's sample, −1
    for padding. positions: position in the sample. targets: the next token if it has a loss.
    following: the next token's code.
    """

    tokens: Tensor
    codes: Tensor
    owner: Tensor
    positions: Tensor
    targets: Tensor
    following: Tensor


def packed(samples: Samples, vocabulary: Vocabulary, device: torch.device) -> Rows:
    """Return rows of 1,024 tokens, each filled with complete samples."""
    rows: list[list[int]] = []
    remaining = 0
    for number, length in enumerate(samples.lengths.tolist()):
        if length > remaining:
            rows.append([])
            remaining = ROW
        rows[-1].append(number)
        remaining -= length
    return _lay_out(samples, rows, ROW, vocabulary, device)


def padded(samples: Samples, vocabulary: Vocabulary, device: torch.device) -> Rows:
    """Return a row per sample, padded to the longest."""
    rows = [[number] for number in range(len(samples.lengths))]
    return _lay_out(samples, rows, int(samples.lengths.max()), vocabulary, device)


def _lay_out(
    samples: Samples,
    rows: list[list[int]],
    length: int,
    vocabulary: Vocabulary,
    device: torch.device,
) -> Rows:
    shape = len(rows), length
    tokens = np.full(shape, vocabulary.ids[PAD])
    codes, positions, following = (np.zeros(shape, np.int64) for _ in range(3))
    owner, targets = np.full(shape, -1), np.full(shape, NO_LOSS)
    starts = np.cumsum(samples.lengths) - samples.lengths
    for row, members in enumerate(rows):
        position = 0
        for member in members:
            size, question = int(samples.lengths[member]), int(samples.prompt_lengths[member])
            span = slice(int(starts[member]), int(starts[member]) + size)
            sample_tokens, sample_codes = samples.tokens[span], samples.codes[span, 0]
            tokens[row, position : position + size] = sample_tokens
            codes[row, position : position + size] = sample_codes
            owner[row, position : position + size] = member
            positions[row, position : position + size] = np.arange(size)
            targets[row, position + question - 1 : position + size - 1] = sample_tokens[question:]
            following[row, position + question - 1 : position + size - 1] = sample_codes[question:]
            position += size
    columns = (tokens, codes, owner, positions, targets, following)
    return Rows(*(torch.from_numpy(column).to(device) for column in columns))


class PlainNetwork(nn.Module):
    """GPT-2 with rotary positions and QK-norm; parameter names as in `Network`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        blocks = nn.ModuleList(PlainBlock(config) for _ in range(config.layers))
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocabulary, config.width),
                "h": blocks,
                "ln_f": nn.RMSNorm(config.width),
            }
        )
        self.lm_head = nn.Linear(config.width, config.vocabulary, bias=False)
        head = nn.Sequential(nn.Linear(config.width, 64))
        self.num_embedding_module = nn.ModuleDict({"num_head": head})
        self._number = Vocabulary(config.encoding).ids[NUM]
        self._base = config.rope_base

    @property
    def _blocks(self) -> nn.ModuleList:
        blocks = self.transformer["h"]
        assert isinstance(blocks, nn.ModuleList)
        return blocks

    def forward(self, rows: Rows, is_padded: bool) -> tuple[Tensor, Tensor]:
        """Return logits (rows, length, vocabulary) and bits (rows, length, 64)."""
        x = self.transformer["wte"](rows.tokens)
        vector = functional.pad(_both_as_bits(rows.codes), (0, x.shape[-1] - 128))
        x = torch.where((rows.tokens == self._number)[..., None], x + vector, x)
        mask = None
        if not is_padded:
            same = rows.owner[:, :, None] == rows.owner[:, None, :]
            mask = same.tril()[:, None]
        for block in self._blocks:
            x = block(x, rows.positions, mask, self._base)
        x = self.transformer["ln_f"](x)
        return self.lm_head(x), self.num_embedding_module["num_head"](x)


class PlainAttention(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.c_attn = nn.Linear(config.width, 3 * config.width)
        self.c_proj = nn.Linear(config.width, config.width)
        self._heads = config.heads

    def forward(self, x: Tensor, positions: Tensor, mask: Tensor | None, base: float) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self._heads, -1)).transpose(1, 2)
            for part in self.c_attn(x).chunk(3, -1)
        )
        q, k = (_rotated(functional.rms_norm(p, p.shape[-1:]), positions, base) for p in (q, k))
        # Padding is at the end of a row, so that causal attention ignores it.
        mixed = functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None
        )
        projected: Tensor = self.c_proj(mixed.transpose(1, 2).flatten(2))
        return projected


class PlainMlp(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.width, config.mlp * config.width)
        self.c_proj = nn.Linear(config.mlp * config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        projected: Tensor = self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))
        return projected


class PlainBlock(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.RMSNorm(config.width), nn.RMSNorm(config.width)
        self.attn, self.mlp = PlainAttention(config), PlainMlp(config)

    def forward(self, x: Tensor, positions: Tensor, mask: Tensor | None, base: float) -> Tensor:
        x = x + self.attn(self.ln_1(x), positions, mask, base)
        mixed: Tensor = x + self.mlp(self.ln_2(x))
        return mixed


class PlainTraining:
    """Trains step by step; every batch is laid out in rows."""

    def __init__(self, config: ModelConfig, device: torch.device, *, is_padded: bool) -> None:
        self.network = PlainNetwork(config).to(device)
        self._optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-3)
        self._vocabulary, self._device = Vocabulary(config.encoding), device
        self._number = self._vocabulary.ids[NUM]
        self._padded = is_padded

    def step(self, samples: Samples) -> float:
        """Train on a batch and return its mean loss per target before the step."""
        layout = padded if self._padded else packed
        rows = layout(samples, self._vocabulary, self._device)
        logits, outputs = self.network(rows, self._padded)
        loss = functional.cross_entropy(
            logits.flatten(0, 1), rows.targets.flatten(), ignore_index=NO_LOSS
        )
        number = rows.targets == self._number
        bits = functional.binary_cross_entropy_with_logits(
            outputs[number], _bits(rows.following[number]), reduction="none"
        )
        targets = (rows.targets != NO_LOSS).sum()
        loss = loss + NUMBER_LOSS * bits.mean(-1).sum() / targets
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._optimizer.zero_grad()
        return float(loss.detach())


def _bits(codes: Tensor) -> Tensor:
    """Return the 64 bits of int64 values, most significant first, as 0 and 1: (…, 64)."""
    return torch.stack([codes >> shift & 1 for shift in range(63, -1, -1)], -1).float()


def _both_as_bits(codes: Tensor) -> Tensor:
    """Return ±1 for each bit of a number and of its reciprocal: (…, 128)."""
    inverse = (1 / codes.view(torch.float64)).view(torch.int64)
    return torch.cat([_bits(codes), _bits(inverse)], -1) * 2 - 1


def _rotated(x: Tensor, positions: Tensor, base: float) -> Tensor:
    """Rotate x of shape (rows, heads, length, channels)."""
    channels = x.shape[-1]
    exponents = torch.arange(0, channels, 2, device=x.device) / channels
    angles = (positions[..., None] / base**exponents)[:, None]
    first, second = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos + second * sin, second * cos - first * sin], -1)
