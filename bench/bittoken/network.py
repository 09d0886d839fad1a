"""The network: GPT-2 with rotary positions, QK-norm, RMSNorm and number inputs and outputs.

See the paper, "Architecture". Parameters have GPT-2's names. With 6 layers, 6 heads, width 768 and
the released vocabulary of 48,577 tokens, there are 117,182,272 of them.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from bittoken.attention import (
    KeyValueCache,
    LayerCache,
    PackedLayout,
    apply_rotary,
    causal_attention,
    rotary_cos_sin,
)
from bittoken.config import ModelConfig
from bittoken.encodings.base import NumberEncoding
from bittoken.vocabulary import NUM, Vocabulary


class Attention(nn.Module):
    """Causal self-attention. Queries and keys are normalised without weights, then rotated."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.c_attn = nn.Linear(config.width, 3 * config.width)
        self.c_proj = nn.Linear(config.width, config.width)
        self._heads = config.heads
        self._norm = functional.rms_norm if config.norm == "rms" else functional.layer_norm

    def forward(
        self,
        x: Tensor,
        layout: PackedLayout,
        angles: tuple[Tensor, Tensor],
        layer_cache: LayerCache | None = None,
    ) -> Tensor:
        q, k, v = (part.unflatten(-1, (self._heads, -1)) for part in self.c_attn(x).chunk(3, -1))
        q, k = (apply_rotary(self._norm(part, part.shape[-1:]), angles) for part in (q, k))
        q, k = q.to(v.dtype), k.to(v.dtype)
        mixed = (
            causal_attention(q, k, v, layout)
            if layer_cache is None
            else layer_cache.attend(q, k, v, layout)
        )
        out: Tensor = self.c_proj(mixed.flatten(1))
        return out


class Mlp(nn.Module):
    """Two linear layers with GELU (tanh approximation) in between."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.width, config.mlp * config.width)
        self.c_proj = nn.Linear(config.mlp * config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))
        return out


class Block(nn.Module):
    """A pre-norm transformer block: attention, then an MLP."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = _norm(config), _norm(config)
        self.attn, self.mlp = Attention(config), Mlp(config)

    def forward(
        self,
        x: Tensor,
        layout: PackedLayout,
        angles: tuple[Tensor, Tensor],
        layer_cache: LayerCache | None = None,
    ) -> Tensor:
        x = x + self.attn(self.ln_1(x), layout, angles, layer_cache)
        out: Tensor = x + self.mlp(self.ln_2(x))
        return out


class Network(nn.Module):
    """A transformer over tokens and numbers, with a token head and a number head."""

    def __init__(self, config: ModelConfig, number_id: int | None = None) -> None:
        """Raises BadInput if no network can have this configuration.

        number_id: the id of the number token; by default its id in `Vocabulary`.
        """
        super().__init__()
        config.check()
        self.config = config
        vocabulary = Vocabulary(config.encoding)
        self.encoding = vocabulary.encoding
        self._number_id = vocabulary.ids[NUM] if number_id is None else number_id
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
        self._init_weights()

    def forward(
        self,
        tokens: Tensor,
        codes: Tensor,
        layout: PackedLayout,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Return the normalised hidden states, shape (T, width), the input of both heads.

        tokens: ids, (T,). codes: (T, columns), used only for number tokens. Samples are
        independent: the hidden states of one do not depend on the others in the sequence. cache:
        keys and values of earlier tokens of the samples; those of `tokens` are added to it.
        """
        x = self.transformer["wte"](tokens)
        if self.encoding is not None:
            x = self.num_embedding_module["input"](x, codes, tokens == self._number_id)
        angles = rotary_cos_sin(
            layout.positions,
            self.config.width // self.config.heads,
            self.config.rope_base,
            torch.promote_types(x.dtype, torch.float32),
        )
        blocks = cast(nn.ModuleList, self.transformer["h"])
        layer_caches = [None] * len(blocks) if cache is None else cache.layers
        for block, layer_cache in zip(blocks, layer_caches, strict=True):
            x = block(x, layout, angles, layer_cache)
        hidden: Tensor = self.transformer["ln_f"](x)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of the next token, (…, vocabulary)."""
        logits: Tensor = self.lm_head(hidden)
        return logits

    def number_outputs(self, hidden: Tensor) -> Tensor:
        """Return the outputs of the number head, (…, outputs), valid if the next token is [NUM]."""
        outputs: Tensor = self.num_embedding_module["num_head"](hidden)
        return outputs

    @torch.no_grad()
    def _init_weights(self) -> None:
        """Initialise weights as GPT-2 does: residual projections scaled by 1/√(2 · layers)."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                std = 0.02
                if name.endswith("c_proj"):
                    std /= math.sqrt(2 * self.config.layers)
                nn.init.normal_(module.weight, std=std)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)


class _FirstChannels(nn.Module):
    """The first channels of the hidden state."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self._outputs = outputs

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden[..., : self._outputs]


GELU_HEAD_WIDTH = 3072
"""The hidden width of the head "gelu-mlp", for networks of any width."""


def _number_head(config: ModelConfig, outputs: int) -> nn.Module:
    width = config.width
    if config.head == "none":
        return _FirstChannels(outputs)
    if config.head == "layer-norm":
        return nn.Sequential(nn.LayerNorm(width), _FirstChannels(outputs))
    if config.head == "linear":
        return nn.Sequential(nn.Linear(width, outputs))
    hidden = width // 2 if config.head == "mlp" else GELU_HEAD_WIDTH
    activation = nn.ReLU() if config.head == "mlp" else nn.GELU()
    return nn.Sequential(nn.Linear(width, hidden), activation, nn.Linear(hidden, outputs))


def _norm(config: ModelConfig) -> nn.Module:
    return nn.RMSNorm(config.width) if config.norm == "rms" else nn.LayerNorm(config.width)


class NumberInput(nn.Module):
    """Combines the embeddings of number tokens with the vectors of their numbers.

    Combinations, with e the embedding of [NUM], v the vector of n channels (padded with zeros) and
    W a learned matrix without bias: "sum" e + v; "product" e · v, with ones as padding; "weighted"
    Wv; "weighted-sum" e + Wv; "zero-pad" v · √(width / n), so that a vector of ±1 has an RMS of 1;
    "concat" v, followed by the remaining channels of e divided by their RMS.
    """

    def __init__(self, config: ModelConfig, encoding: NumberEncoding) -> None:
        super().__init__()
        self._encoding = encoding
        # xVal has a single channel, which scales the whole embedding.
        self._combination = "scale" if encoding.width == 1 else config.combination
        self.bit_weight_matrix: nn.Linear | None = None
        if self._combination in ("weighted", "weighted-sum"):
            self.bit_weight_matrix = nn.Linear(encoding.width, config.width, bias=False)

    def forward(self, embedded: Tensor, codes: Tensor, is_number: Tensor) -> Tensor:
        """Return the inputs of the first block, shape (T, width).

        embedded: the embeddings of the tokens, (T, width). codes: (T, columns). is_number: (T,).
        """
        vector = self._encoding.torch_vector(codes).to(embedded.dtype)
        return torch.where(is_number[:, None], self._combine(embedded, vector), embedded)

    def _combine(self, embedded: Tensor, vector: Tensor) -> Tensor:
        missing = embedded.shape[-1] - vector.shape[-1]
        if self._combination == "scale":
            return embedded * vector
        if self.bit_weight_matrix is not None:
            weighted: Tensor = self.bit_weight_matrix(vector)
            return weighted if self._combination == "weighted" else embedded + weighted
        if self._combination == "product":
            return embedded * functional.pad(vector, (0, missing), value=1.0)
        if self._combination == "concat":
            rest = embedded[:, vector.shape[-1] :]
            rms = rest.square().mean(-1, keepdim=True).sqrt()
            return torch.cat([vector, rest / rms], dim=-1)
        padded = functional.pad(vector, (0, missing))
        if self._combination == "sum":
            return embedded + padded
        return padded * math.sqrt(embedded.shape[-1] / self._encoding.scaled_width)
