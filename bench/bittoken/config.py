"""The configuration of a network, stored in its checkpoint."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from bittoken.vocabulary import Vocabulary
from numbench.errors import BadInput

Combination = Literal["sum", "product", "concat", "zero-pad", "weighted", "weighted-sum"]
"""How the [NUM] embedding and the vector of the number are combined (paper, "Ablations").

Defined in `NumberInput`, as in the study's released code. An encoding with a single channel
(xVal) scales the embedding instead.
"""

Head = Literal["none", "layer-norm", "linear", "mlp", "gelu-mlp"]
"""How a number is predicted from the last hidden state.

The paper's ablations are "none" (its first channels), "linear" and "mlp". The released code has
"layer-norm" (the first channels after a LayerNorm) for FoNE, and "gelu-mlp" for xVal.
"""

Norm = Literal["rms", "layer"]
"""The norm before attention and MLP, at the end, and (without weights) of queries and keys."""


class ModelShape(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of a network except its vocabulary size.

    Defaults are the paper's (appendix "Architecture"). encoding: a name in `ENCODING_NAMES`.
    combination, head: ignored for the encodings "digit" and "subword". mlp: the width of the MLP
    as a multiple of `width`. context: the maximum number of tokens of a sample.
    """

    encoding: str
    combination: Combination = "sum"
    head: Head = "linear"
    norm: Norm = "rms"
    layers: int = 6
    heads: int = 6
    width: int = 768
    mlp: int = 4
    context: int = 1024


class ModelConfig(ModelShape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The full configuration of a network. vocabulary: the number of token ids."""

    vocabulary: int
    rope_base: float = 10_000.0

    def check(self) -> None:
        """Raise BadInput if no network can have this configuration."""
        encoding = Vocabulary(self.encoding).encoding
        for name in ("vocabulary", "layers", "heads", "width", "mlp", "context"):
            if getattr(self, name) < 1:
                raise BadInput(f"model.{name} is {getattr(self, name)}; it must be at least 1")
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
