"""Codes of signs and decimal digits as one-hot vectors."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bittoken.encodings.base import NumberEncoding


class OneHotDigits(NumberEncoding):
    """An encoding whose code is a row of signs (classes 0 and 1) and then of digits (0 to 9).

    Vector and outputs have two channels per sign and ten per digit.
    """

    dtype = np.dtype(np.int8)

    def __init__(self, signs: int, digits: int) -> None:
        """Set the number of signs and digits of a code."""
        self._signs, self._digits = signs, digits
        self.columns = signs + digits
        self.width = self.outputs = 2 * signs + 10 * digits

    def torch_vector(self, codes: Tensor) -> Tensor:
        sizes = torch.tensor([2] * self._signs + [10] * self._digits, device=codes.device)
        # The first class of each position follows the last one of the position before.
        indices = codes.to(torch.int64) + sizes.cumsum(0) - sizes
        shape = (*codes.shape[:-1], self.width)
        return torch.zeros(shape, device=codes.device).scatter_(-1, indices, 1.0)

    def torch_predict_codes(self, outputs: Tensor) -> Tensor:
        classes = [logits.argmax(-1) for logits in self._logits(outputs)]
        return torch.cat(classes, dim=-1).to(torch.int8)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Return the cross-entropy, averaged over the positions."""
        targets = torch.split(codes.to(torch.int64), [self._signs, self._digits], dim=-1)
        losses = [
            functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
            for logits, target in zip(self._logits(outputs.to(torch.float32)), targets, strict=True)
        ]
        return torch.cat(losses, dim=-1).mean(-1)

    def _logits(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the signs (…, signs, 2) and of the digits (…, digits, 10)."""
        signs, digits = torch.split(outputs, [2 * self._signs, 10 * self._digits], dim=-1)
        shape = outputs.shape[:-1]
        return signs.reshape(*shape, self._signs, 2), digits.reshape(*shape, self._digits, 10)
