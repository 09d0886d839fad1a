"""How a number enters the network: the [NUM] embedding combined with the encoding's vector.

The six combinations of the paper's ablation (appendix "Ablations").
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.bittoken.config import ModelConfig
from bench.bittoken.encodings.base import NumberEncoding


class NumberInput(nn.Module):
    """Embeddings with the encodings of their numbers put in."""

    def __init__(self, config: ModelConfig, encoding: NumberEncoding) -> None:
        super().__init__()
        self._encoding = encoding
        # xVal scales the whole embedding; its one channel is no place of its own.
        self._combination = "scale" if encoding.width == 1 else config.combination
        self.bit_weight_matrix: nn.Linear | None = None
        if self._combination in ("weighted", "weighted-sum"):
            self.bit_weight_matrix = nn.Linear(encoding.width, config.width, bias=False)

    def forward(self, embedded: Tensor, codes: Tensor, is_number: Tensor) -> Tensor:
        """Inputs of shape (T, width).

        embedded: the tokens' embeddings, (T, width). codes: (T, columns). is_number: (T,).
        """
        vector = self._encoding.torch_vector(codes).to(embedded.dtype)
        return torch.where(is_number[:, None], self._combined(embedded, vector), embedded)

    def _combined(self, number: Tensor, vector: Tensor) -> Tensor:
        room = number.shape[-1] - vector.shape[-1]
        if self._combination == "scale":
            return number * vector
        if self.bit_weight_matrix is not None:
            weighted: Tensor = self.bit_weight_matrix(vector)
            return weighted if self._combination == "weighted" else number + weighted
        if self._combination == "product":
            return number * functional.pad(vector, (0, room), value=1.0)
        padded = functional.pad(vector, (0, room))
        if self._combination == "sum":
            return number + padded
        if self._combination == "concat":
            return torch.cat([vector, number[:, vector.shape[-1] :]], dim=-1)
        return padded
