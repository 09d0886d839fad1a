"""xVal: one embedding, scaled by the number (paper, "Comparing BitTokens …")."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bench.bittoken.encodings.base import Codes, Floats, NumberEncoding, Vectors
from bench.errors import BadInput

LIMIT = 5.0
_TINY = 1e-14


class XVal(NumberEncoding):
    """sign(x) · (lg(|x| + 1e-14)/6 + 2.5), within ±5: one float32 that scales [NUM].

    Numbers above 1e15, inf too, take its end; those below 1e-14 lose digits and, from 1e-21 on, run
    together with zero. In between, neighbours in float32 stand for numbers up to 7e-6 apart,
    relatively: five to six significant digits remain.
    """

    name = "xval"
    display = "xVal"
    columns = width = outputs = 1
    dtype = np.dtype(np.float32)

    def code(self, values: Floats) -> Codes:
        """BadInput for NaN."""
        if np.isnan(values).any():
            raise BadInput("xVal cannot encode NaN: leave it out, or take BitToken")
        scale = np.sign(values) * (np.log10(np.abs(values) + _TINY) / 6 + 2.5)
        return np.clip(scale, -LIMIT, LIMIT).astype(np.float32)[:, None]

    def value(self, codes: Codes) -> Floats:
        scale = codes[:, 0].astype(np.float64)
        magnitude = np.maximum(10 ** ((np.abs(scale) - 2.5) * 6) - _TINY, 0)
        return np.sign(scale) * magnitude

    def vector(self, codes: Codes) -> Vectors:
        return codes.astype(np.float32)

    def nearest(self, vectors: Vectors) -> Codes:
        return self.decide(vectors)

    def decide(self, outputs: Vectors) -> Codes:
        return np.clip(outputs, np.float32(-LIMIT), np.float32(LIMIT))

    def torch_vector(self, codes: Tensor) -> Tensor:
        return codes.to(torch.float32)

    def torch_decide(self, outputs: Tensor) -> Tensor:
        return outputs.to(torch.float32).clamp(-LIMIT, LIMIT)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Squared error of the scale."""
        return (outputs.to(torch.float32) - codes).square().mean(-1)
