"""What the sinusoidal encodings share: decimal digits ↔ points on circles."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from bench.bittoken.encodings.base import Codes, NumberEncoding, Vectors

Angles = TypeVar("Angles", NDArray[np.float64], Tensor)

_STEPS = 10_000
"""Points of the circle in the table: the first four digits of a phase."""

_BLOCK = 1 << 11
"""Numbers worked on at a time, so that the steps between stay in the processor's cache."""


class Sinusoidal(NumberEncoding):
    """cos and sin of 2πx/period, for periods that are consecutive powers of ten, longest first.

    The code is a row of decimal digits, most significant first: the grid's fixed-point number.
    x/period is 0.d₁d₂d₃… turns, d₁ the period's own digit and the others all lower ones. The
    vector is cos, sin, cos, sin, … as float32, right to 1e-11 before it is rounded.

    The number head speaks of a digit at a time: two outputs a period, whose inner products with
    the ten points cos, sin of 2πj/10 are the digit's logits (paper, "Single-token number
    representation").
    """

    dtype = np.dtype(np.int8)
    signed = False

    def __init__(self, whole: int, fraction: int) -> None:
        """The grid has `whole` digits before the decimal point and `fraction` digits after it."""
        self.whole = whole
        self.fraction = fraction
        self.columns = whole + fraction
        self.width = self.outputs = 2 * self.columns

    def vector(self, codes: Codes) -> Vectors:
        vectors = np.empty((len(codes), self.columns, 2), np.float32)
        for at in range(0, len(codes), _BLOCK):
            digits = np.pad(codes[at : at + _BLOCK].astype(np.int32), ((0, 0), (0, 11)))
            head, rest = _parts(_four_digits(digits))
            turned = _turned(_COSINE[head], _SINE[head], rest.astype(np.float64) * _RADIANS)
            vectors[at : at + _BLOCK, :, 0], vectors[at : at + _BLOCK, :, 1] = turned
        return vectors.reshape(len(codes), self.width)

    def nearest(self, vectors: Vectors) -> Codes:
        """Digits from phases, lowest first: what the lower ones add is known and taken away."""
        points = vectors.reshape(len(vectors), self.columns, 2).astype(np.float64)
        tenths = np.arctan2(points[:, :, 1], points[:, :, 0]) * (10 / (2 * np.pi))
        codes = np.empty((len(vectors), self.columns), np.int8)
        lower = np.zeros(len(vectors))
        for place in range(self.columns - 1, -1, -1):
            digit = np.rint(tenths[:, place] - lower) % 10
            codes[:, place] = digit
            lower = (digit + lower) / 10
        return codes

    def decide(self, outputs: Vectors) -> Codes:
        pairs = outputs.reshape(len(outputs), self.columns, 2)
        logits: Vectors = pairs[..., :1] * _PROTOTYPES[0] + pairs[..., 1:] * _PROTOTYPES[1]
        codes: Codes = logits.argmax(-1).astype(np.int8)
        return codes

    def torch_vector(self, codes: Tensor) -> Tensor:
        cosines, sines, _ = _tables_on(codes.device)
        head, rest = _parts(_four_digits(functional.pad(codes.to(torch.int64), (0, 11))))
        angle = rest.to(torch.float64) * _RADIANS
        return torch.stack(_turned(cosines[head], sines[head], angle), -1).flatten(-2).float()

    def torch_decide(self, outputs: Tensor) -> Tensor:
        return self._logits(outputs).argmax(-1).to(torch.int8)

    def loss(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Cross-entropy, the mean over the digits."""
        logits = self._logits(outputs).flatten(0, 1)
        target = codes.flatten().to(torch.int64)
        loss = functional.cross_entropy(logits, target, reduction="none")
        return loss.view(codes.shape).mean(-1)

    def _logits(self, outputs: Tensor) -> Tensor:
        """float32 of shape (…, digits, 10)."""
        pairs = outputs.to(torch.float32).reshape(*outputs.shape[:-1], self.columns, 2)
        _, _, prototypes = _tables_on(outputs.device)
        return pairs[..., :1] * prototypes[0] + pairs[..., 1:] * prototypes[1]


def _four_digits(digits: Any) -> Any:
    """Each digit with the three after it as one number; the last three are only followers."""
    first, second, third = digits[..., :-3], digits[..., 1:-2], digits[..., 2:-1]
    return first * 1000 + second * 100 + third * 10 + digits[..., 3:]


def _parts(fours: Any) -> tuple[Any, Any]:
    """Digits 1 to 4 of each phase, and 5 to 12; those after them turn it by less than 1e-11."""
    return fours[..., :-8], fours[..., 4:-4] * 10_000 + fours[..., 8:]


def _turned(cosine: Angles, sine: Angles, angle: Angles) -> tuple[Angles, Angles]:
    """Points of the circle turned by a small angle (below 2π/10⁴: right to 1e-14).

    Products and sums alone, so that NumPy and torch give the same bits.
    """
    square = angle * angle
    by_cosine = 1 - square * 0.5
    by_sine = angle * (1 - square * (1 / 6))
    return cosine * by_cosine - sine * by_sine, sine * by_cosine + cosine * by_sine


def _circle() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """cos and sin of _STEPS equal steps; the four quarters mirror each other exactly."""
    eighth = np.arange(_STEPS // 8 + 1) * (2 * np.pi / _STEPS)
    rising = np.concatenate([np.sin(eighth), np.cos(eighth)[-2::-1]])
    sine = np.concatenate([rising[:-1], rising[:0:-1], -rising[:-1], -rising[:0:-1]])
    return np.roll(sine, -_STEPS // 4), sine


_COSINE, _SINE = _circle()
_RADIANS = 2 * np.pi / 1e12
_PROTOTYPES = np.stack([_COSINE, _SINE])[:, :: _STEPS // 10].astype(np.float32)


@cache
def _tables_on(device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    tables = (torch.from_numpy(table).to(device) for table in (_COSINE, _SINE, _PROTOTYPES))
    return cast(tuple[Tensor, Tensor, Tensor], tuple(tables))
