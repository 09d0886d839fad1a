"""xVal: one embedding, scaled by the number (paper, "Comparing BitTokens …")."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bittoken.encodings.base import Codes, FloatArray, NumberEncoding, reject_nan

MAX_SCALE = 5.0
_EPSILON = 1e-14


class XVal(NumberEncoding):
    """sign(x) · (lg(|x| + 1e-14)/6 + 2.5), within ±5: one float32 that scales [NUM].

    Numbers above 1e15, including inf, are clipped to ±5. Numbers below 1e-14 lose digits and become
    indistinguishable from zero at 1e-21. In between, consecutive float32 codes decode to numbers
    with a relative difference of up to 7e-6: five to six significant digits are preserved.
    """

    name = "xval"
    display = "xVal"
    columns = width = outputs = 1
    dtype = np.dtype(np.float32)

    def encode(self, values: FloatArray) -> Codes:
        """Return the codes. Raises BadInput if a value is NaN."""
        reject_nan(values, self.display)
        scale = np.sign(values) * (np.log10(np.abs(values) + _EPSILON) / 6 + 2.5)
        return np.clip(scale, -MAX_SCALE, MAX_SCALE).astype(np.float32)[:, None]

    def decode(self, codes: Codes) -> FloatArray:
        scale = codes[:, 0].astype(np.float64)
        magnitude = np.maximum(10 ** ((np.abs(scale) - 2.5) * 6) - _EPSILON, 0)
        return np.sign(scale) * magnitude

    def vector(self, codes: Tensor) -> Tensor:
        return codes.to(torch.float32)

    def predict(self, outputs: Tensor) -> Tensor:
        return outputs.to(torch.float32).clamp(-MAX_SCALE, MAX_SCALE)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the squared error of the scale."""
        return (outputs.to(torch.float32) - codes).square().mean(-1)
