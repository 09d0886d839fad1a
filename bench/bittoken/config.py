"""What a network is: one frozen record, stored in its checkpoint."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from bench.bittoken.vocabulary import Vocabulary
from bench.errors import BadInput

Combination = Literal["sum", "product", "concat", "zero-pad", "weighted", "weighted-sum"]
"""How the [NUM] embedding and the encoding's vector become one input (paper, "Ablations")."""

Head = Literal["none", "linear", "mlp"]
"""What reads the number off the last hidden state (paper, "Ablations")."""

Norm = Literal["rms", "layer"]


class ModelShape(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A network's shape but for its vocabulary (defaults: the paper's, appendix "Architecture").

    encoding: a name of `ENCODING_NAMES`. combination and head mean nothing where numbers are
    spelled. context: most tokens of a sample.
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
    """A network's whole shape. vocabulary: the number of token ids."""

    vocabulary: int
    rope_base: float = 10_000.0

    def check(self) -> None:
        """BadInput where no network has this shape."""
        encoding = Vocabulary(self.encoding).encoding
        for name in ("vocabulary", "layers", "heads", "width", "mlp", "context"):
            if getattr(self, name) < 1:
                raise BadInput(f"model.{name} is {getattr(self, name)}: it must be at least 1")
        if self.width % (2 * self.heads):
            raise BadInput(
                f"model.width is {self.width}: it must be a multiple of twice model.heads "
                f"({self.heads}), since positions rotate pairs of channels"
            )
        if encoding is None:
            return
        most = max(encoding.width, encoding.outputs if self.head == "none" else 0)
        if most > self.width and self.combination not in ("weighted", "weighted-sum"):
            raise BadInput(
                f"model.width is {self.width}: {encoding.display} needs {most} channels; widen it "
                'or choose combination = "weighted"'
            )
