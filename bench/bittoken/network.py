"""The network: GPT-2 with rotary positions, QK-norm, RMSNorm and number inputs and outputs.

See the paper, "Architecture". Parameters have GPT-2's names. With 6 layers, 6 heads, width 768 and
the paper's vocabulary of 48,577 tokens, there are 117,182,272 of them.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, cast

import torch
from msgspec import Meta, Struct
from torch import Tensor, nn
from torch.nn import functional

from bittoken.encodings import find_encoding
from bittoken.encodings.base import NumberEncoding
from bittoken.tokens import NUM, Vocabulary
from numbench.errors import BadInput

Combination = Literal["sum", "product", "concat", "zero-pad", "weighted", "weighted-sum"]
"""How the [NUM] embedding and the vector of the number are combined (paper, "Ablations").

Defined in `NumberInput`, as in the paper's own code. An encoding with a single channel (xVal)
scales the embedding instead.
"""

Head = Literal["none", "layer-norm", "linear", "mlp", "gelu-mlp"]
"""How a number is predicted from the last hidden state.

The paper's ablations are "none" (its first channels), "linear" and "mlp". The paper's own code has
"layer-norm" (the first channels after a LayerNorm) for FoNE, and "gelu-mlp" for xVal.
"""

Norm = Literal["rms", "layer"]
"""The norm before attention and MLP, at the end, and (without weights) of queries and keys."""

Angles = tuple[Tensor, Tensor]
"""cos and sin of rotary positions."""

PositiveInt = Annotated[int, Meta(ge=1)]


class ModelShape(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of a network except its vocabulary size.

    Defaults are the paper's (appendix "Architecture"). encoding: a name in `ENCODINGS`, "digit" or
    "subword".
    combination, head: ignored for the encodings "digit" and "subword". mlp: the width of the MLP
    as a multiple of `width`. context: the maximum number of tokens of a sample.
    """

    encoding: str
    combination: Combination = "sum"
    head: Head = "linear"
    norm: Norm = "rms"
    layers: PositiveInt = 6
    heads: PositiveInt = 6
    width: PositiveInt = 768
    mlp: PositiveInt = 4
    context: PositiveInt = 1024


class ModelConfig(ModelShape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The full configuration of a network. vocabulary: the number of token ids."""

    vocabulary: PositiveInt
    rope_base: float = 10_000.0

    def check(self) -> None:
        """Raise BadInput if no network can have this configuration."""
        encoding = find_encoding(self.encoding)
        if self.width % (2 * self.heads):
            raise BadInput(
                f"model.width is {self.width}; it must be a multiple of twice model.heads "
                f"({self.heads}), since rotary positions rotate pairs of channels"
            )
        if encoding is None:
            return
        sliced = encoding.outputs if self.head in ("none", "layer-norm") else 0
        channels = max(encoding.width, sliced)
        if channels > self.width and self.combination not in ("weighted", "weighted-sum"):
            raise BadInput(
                f"model.width is {self.width}; {encoding.display} needs {channels} channels: "
                'increase it or use combination = "weighted"'
            )


class Network(nn.Module):
    """A transformer over tokens and numbers, with a token head and a number head."""

    def __init__(self, config: ModelConfig, number_id: int | None = None) -> None:
        """Raise BadInput if no network can have this configuration.

        number_id: the id of the number token; by default its id in `Vocabulary`.
        """
        super().__init__()
        config.check()
        self.config = config
        self.encoding = find_encoding(config.encoding)
        self._number_id = Vocabulary(config.encoding).ids[NUM] if number_id is None else number_id
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocabulary, config.width),
                "h": nn.ModuleList(Block(config, layer) for layer in range(config.layers)),
                "ln_f": _norm(config),
            }
        )
        self.lm_head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.num_embedding_module = nn.ModuleDict()
        if self.encoding is not None:
            self.num_embedding_module["input"] = NumberInput(config, self.encoding)
            head = _number_head(config.head, config.width, self.encoding.outputs)
            self.num_embedding_module["num_head"] = head
        self._init_weights()

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.lm_head.weight.device

    def forward(self, tokens: Tensor, codes: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Return the normalized hidden states (B, T, width), the input of both heads.

        tokens: ids (B, T). Rows are padded on the right: attention is causal, so the hidden states
        of a row's own tokens do not depend on its padding or on other rows. codes: (B, T, columns),
        used only for number tokens. cache: keys and values of earlier tokens of the rows; those of
        `tokens` are added to it.
        """
        x = self.transformer["wte"](tokens)
        if self.encoding is not None:
            x = self.num_embedding_module["input"](x, codes, tokens == self._number_id)
        positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
        if cache is not None:
            positions = cache.add_tokens(positions)
        angles = self._rotary_cos_sin(positions, torch.promote_types(x.dtype, torch.float32))
        for block in cast(nn.ModuleList, self.transformer["h"]):
            x = block(x, angles, cache)
        hidden: Tensor = self.transformer["ln_f"](x)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of the next token, (…, vocabulary)."""
        logits: Tensor = self.lm_head(hidden)
        return logits

    def number_outputs(self, hidden: Tensor) -> Tensor:
        """Return the outputs of the number head, (…, outputs), valid if the next token is [NUM]."""
        assert self.encoding is not None
        outputs: Tensor = self.num_embedding_module["num_head"](hidden)
        return outputs[..., : self.encoding.outputs]

    def _rotary_cos_sin(self, positions: Tensor, dtype: torch.dtype) -> Angles:
        """Return cos and sin of θ = position / base^(2i / channels), each (B, 1, T, channels / 2).

        positions: (B, T).
        """
        channels = self.config.width // self.config.heads
        exponents = torch.arange(0, channels, 2, device=positions.device, dtype=dtype) / channels
        angles = positions[:, None, :, None].to(dtype) / self.config.rope_base**exponents
        return angles.cos(), angles.sin()

    @torch.no_grad()
    def _init_weights(self) -> None:
        """Initialize weights as GPT-2 does: residual projections scaled by 1/√(2 · layers)."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                std = 0.02
                if name.endswith("c_proj"):
                    std /= math.sqrt(2 * self.config.layers)
                nn.init.normal_(module.weight, std=std)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)


class Block(nn.Module):
    """A pre-norm transformer block: attention, then an MLP."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = _norm(config), _norm(config)
        self.attn, self.mlp = Attention(config, layer), Mlp(config)

    def forward(self, x: Tensor, angles: Angles, cache: KeyValueCache | None) -> Tensor:
        x = x + self.attn(self.ln_1(x), angles, cache)
        out: Tensor = x + self.mlp(self.ln_2(x))
        return out


class Attention(nn.Module):
    """Causal self-attention. Queries and keys are normalized without weights, then rotated."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.c_attn = nn.Linear(config.width, 3 * config.width)
        self.c_proj = nn.Linear(config.width, config.width)
        self._heads, self._layer = config.heads, layer
        self._norm = functional.rms_norm if config.norm == "rms" else functional.layer_norm

    def forward(self, x: Tensor, angles: Angles, cache: KeyValueCache | None) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self._heads, -1)).transpose(1, 2)
            for part in self.c_attn(x).chunk(3, -1)
        )
        q, k = (apply_rotary(self._norm(part, part.shape[-1:]), angles) for part in (q, k))
        # PyTorch's CPU kernel is several times faster in float32 for samples this short.
        dtype = q.dtype if v.device.type == "cpu" else v.dtype
        q, k, values = (part.to(dtype) for part in (q, k, v))
        with torch.autocast(v.device.type, enabled=False):
            mixed = (
                functional.scaled_dot_product_attention(q, k, values, is_causal=True)
                if cache is None
                else cache.attend(self._layer, q, k, values)
            )
        out: Tensor = self.c_proj(mixed.to(v.dtype).transpose(1, 2).flatten(2))
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
        """Return the inputs of the first block, (B, T, width).

        embedded: the embeddings of the tokens, (B, T, width). codes: (B, T, columns). is_number:
        (B, T).
        """
        vector = self._encoding.vector(codes).to(embedded.dtype)
        return torch.where(is_number[..., None], self._combine(embedded, vector), embedded)

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
            rest = embedded[..., vector.shape[-1] :]
            rms = rest.square().mean(-1, keepdim=True).sqrt()
            return torch.cat([vector, rest / rms], dim=-1)
        padded = functional.pad(vector, (0, missing))
        if self._combination == "sum":
            return embedded + padded
        return padded * math.sqrt(embedded.shape[-1] / self._encoding.scaled_width)


GELU_HEAD_WIDTH = 3072
"""The hidden width of the head "gelu-mlp", for networks of any width."""


def _number_head(head: Head, width: int, outputs: int) -> nn.Module:
    """Return the layers of a head; the first `outputs` channels of their output are used."""
    if head == "none":
        return nn.Sequential()
    if head == "layer-norm":
        return nn.Sequential(nn.LayerNorm(width))
    if head == "linear":
        return nn.Sequential(nn.Linear(width, outputs))
    hidden = width // 2 if head == "mlp" else GELU_HEAD_WIDTH
    activation = nn.ReLU() if head == "mlp" else nn.GELU()
    return nn.Sequential(nn.Linear(width, hidden), activation, nn.Linear(hidden, outputs))


def _norm(config: ModelConfig) -> nn.Module:
    return nn.RMSNorm(config.width) if config.norm == "rms" else nn.LayerNorm(config.width)


def apply_rotary(x: Tensor, angles: Angles) -> Tensor:
    """Apply rotary positions: rotate channel pairs by −θ. x: (B, heads, T, channels)."""
    cos, sin = angles
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos + second * sin, second * cos - first * sin], dim=-1)


class KeyValueCache:
    """The keys and values of the rows of a batch, for each layer.

    The first forward pass stores those of complete questions; each later one adds one token per
    row, after the padding of the questions, to which nothing attends.
    """

    def __init__(self, lengths: Tensor) -> None:
        """lengths: the tokens of each row of the first forward pass, (B,)."""
        self._lengths = lengths
        self._is_visible: Tensor | None = None
        self._stored: dict[int, tuple[Tensor, Tensor]] = {}

    def add_tokens(self, positions: Tensor) -> Tensor:
        """Return the positions of the tokens of the next forward pass, (1, T) or (B, 1).

        positions: those of tokens without cache, (1, T).
        """
        if self._is_visible is None:
            self._is_visible = positions < self._lengths[:, None]
            return positions
        self._is_visible = functional.pad(self._is_visible, (0, 1), value=True)
        self._lengths = self._lengths + 1
        return self._lengths[:, None] - 1

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Store new tokens and return their attention to all tokens of their rows so far.

        All tensors have shape (B, heads, T, channels).
        """
        assert self._is_visible is not None
        if layer not in self._stored:
            self._stored[layer] = k, v
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        keys, values = self._stored[layer]
        keys, values = torch.cat([keys, k], dim=2), torch.cat([values, v], dim=2)
        self._stored[layer] = keys, values
        return functional.scaled_dot_product_attention(
            q, keys, values, attn_mask=self._is_visible[:, None, None]
        )

    def select(self, rows: Tensor) -> None:
        """Remove all rows except those with these indices."""
        assert self._is_visible is not None
        self._lengths, self._is_visible = self._lengths[rows], self._is_visible[rows]
        self._stored = {n: (keys[rows], values[rows]) for n, (keys, values) in self._stored.items()}
