"""The trunk: a GPT-2 with rotary positions, QK-norm and RMSNorm (paper, "Architecture").

Parameters bear GPT-2's names. With 6 layers, 6 heads, width 768 and the released vocabulary of
48,577 tokens there are 117,182,272 of them.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.bittoken.attention import Layout, attend, rotated, rotation
from bench.bittoken.cache import Cache, Past
from bench.bittoken.config import ModelConfig
from bench.bittoken.inputs import NumberInput
from bench.bittoken.vocabulary import NUM, Vocabulary


class Attention(nn.Module):
    """Causal self-attention; queries and keys are normalised without weights, then rotated."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.c_attn = nn.Linear(config.width, 3 * config.width)
        self.c_proj = nn.Linear(config.width, config.width)
        self._heads = config.heads

    def forward(
        self, x: Tensor, layout: Layout, angles: tuple[Tensor, Tensor], past: Past | None = None
    ) -> Tensor:
        q, k, v = (part.unflatten(-1, (self._heads, -1)) for part in self.c_attn(x).chunk(3, -1))
        q, k = (rotated(functional.rms_norm(part, part.shape[-1:]), angles) for part in (q, k))
        q, k = q.to(v.dtype), k.to(v.dtype)
        mixed = attend(q, k, v, layout) if past is None else past.attend(q, k, v, layout)
        out: Tensor = self.c_proj(mixed.flatten(1))
        return out


class Mlp(nn.Module):
    """Two layers with GELU in its tanh form."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.width, config.mlp * config.width)
        self.c_proj = nn.Linear(config.mlp * config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))
        return out


class Block(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = _norm(config), _norm(config)
        self.attn, self.mlp = Attention(config), Mlp(config)

    def forward(
        self, x: Tensor, layout: Layout, angles: tuple[Tensor, Tensor], past: Past | None = None
    ) -> Tensor:
        x = x + self.attn(self.ln_1(x), layout, angles, past)
        out: Tensor = x + self.mlp(self.ln_2(x))
        return out


class Network(nn.Module):
    """Tokens and numbers in, hidden states out; two heads read tokens and numbers off them."""

    def __init__(self, config: ModelConfig, number: int | None = None) -> None:
        """BadInput where no network has this shape.

        number: the id of the number token where it is not the one of our own vocabulary.
        """
        super().__init__()
        config.check()
        self.config = config
        vocabulary = Vocabulary(config.encoding)
        self.encoding = vocabulary.encoding
        self._number = vocabulary.ids[NUM] if number is None else number
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocabulary, config.width),
                "h": nn.ModuleList(Block(config) for _ in range(config.layers)),
                "ln_f": _norm(config),
            }
        )
        self.lm_head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.num_embedding_module = nn.ModuleDict()
        if self.encoding is not None:
            self.num_embedding_module["input"] = NumberInput(config, self.encoding)
            self.num_embedding_module["num_head"] = _number_head(config, self.encoding.outputs)
        self._start()

    def forward(
        self, tokens: Tensor, codes: Tensor, layout: Layout, cache: Cache | None = None
    ) -> Tensor:
        """Hidden states of shape (T, width), normalised, as both heads read them.

        tokens: ids, (T,). codes: (T, columns), read where the token is a number. Whatever stands
        in the run before a sample does not change its hidden states. cache: what the samples'
        earlier tokens left behind; it takes in those of this run.
        """
        x = self.transformer["wte"](tokens)
        if self.encoding is not None:
            x = self.num_embedding_module["input"](x, codes, tokens == self._number)
        angles = rotation(
            layout.positions,
            self.config.width // self.config.heads,
            self.config.rope_base,
            torch.promote_types(x.dtype, torch.float32),
        )
        blocks = cast(nn.ModuleList, self.transformer["h"])
        pasts = [None] * len(blocks) if cache is None else cache.layers
        for block, past in zip(blocks, pasts, strict=True):
            x = block(x, layout, angles, past)
        hidden: Tensor = self.transformer["ln_f"](x)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Of the next token: (…, vocabulary)."""
        logits: Tensor = self.lm_head(hidden)
        return logits

    def numbers(self, hidden: Tensor) -> Tensor:
        """The number head's outputs for the next token, should it be a number: (…, outputs)."""
        outputs: Tensor = self.num_embedding_module["num_head"](hidden)
        return outputs

    @torch.no_grad()
    def _start(self) -> None:
        """GPT-2's initial weights: residual projections smaller, by the number of layers."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                deviation = 0.02
                if name.endswith("c_proj"):
                    deviation /= math.sqrt(2 * self.config.layers)
                nn.init.normal_(module.weight, std=deviation)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)


class _First(nn.Module):
    """The paper's head "none": the first channels of the hidden state."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self._outputs = outputs

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden[..., : self._outputs]


def _number_head(config: ModelConfig, outputs: int) -> nn.Module:
    if config.head == "none":
        return _First(outputs)
    if config.head == "linear":
        return nn.Sequential(nn.Linear(config.width, outputs))
    return nn.Sequential(
        nn.Linear(config.width, config.width), nn.ReLU(), nn.Linear(config.width, outputs)
    )


def _norm(config: ModelConfig) -> nn.Module:
    return nn.RMSNorm(config.width) if config.norm == "rms" else nn.LayerNorm(config.width)
