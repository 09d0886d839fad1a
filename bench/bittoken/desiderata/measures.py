"""Measures of the desiderata (paper, "Desiderata for single-token number representation").

D1: tokens. D2: exactness. D3: order and distance. D4: range and precision. D5: scale. D6: low
precision. D7: smoothness. D8: robustness to noise. D9: learnability.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import torch

from bittoken.desiderata.encoding_under_test import (
    DECADES,
    RANDOM_COUNT,
    SEED,
    EncodingUnderTest,
)
from bittoken.encodings.base import FloatArray, Vectors
from numbench.stats.rank_statistics import spearman

MIN_CORRECT_DIGITS = 3

NETWORK_WIDTH = 768
"""The width of the paper's network, to which vectors are padded with zeros."""

_EPSILON = 1e-6
_ABOUT_VECTORS = ("D3", "D5", "D6", "D7", "D8")

Format = Literal["percent", "number", "power", "small"]


class Measure(NamedTuple):
    """A row of the table: its desideratum, its name, how it is printed, and its value.

    value: computes the value for an encoding; None if it is unknown.
    """

    desideratum: str
    name: str
    format: Format
    value: Callable[[EncodingUnderTest], float | None]

    def of(self, tested: EncodingUnderTest) -> float | None:
        """Return the value for an encoding; None if it does not apply or is unknown."""
        if self.desideratum in _ABOUT_VECTORS and not tested.has_vectors:
            return None
        return self.value(tested)


def percent_exact(tested: EncodingUnderTest, values: FloatArray) -> float:
    """Return the percentage of values that are recovered exactly."""
    return 100 * float((tested.round_trip(values) == values).mean())


def rank_correlation(
    tested: EncodingUnderTest, scale: Callable[[FloatArray], FloatArray]
) -> float | None:
    """Return Spearman's ρ of the distance of vectors and of scaled magnitudes, |s(a) − s(b)|.

    None if all distances are equal.
    """
    magnitudes, encoding = tested.numbers.magnitudes, tested.encoding
    first, second = np.random.default_rng(SEED).integers(0, len(magnitudes), (2, RANDOM_COUNT))
    vectors = encoding.vector(encoding.encode(magnitudes)).astype(np.float64)
    distances = np.linalg.norm(vectors[first] - vectors[second], axis=1)
    scaled = scale(magnitudes)
    return spearman(distances, np.abs(scaled[first] - scaled[second]))


def precise_decade(tested: EncodingUnderTest, index: int) -> float | None:
    """Return the first (0) or last (−1) decade with `MIN_CORRECT_DIGITS`; None without any."""
    precise = np.array(DECADES)[tested.digits_by_decade >= MIN_CORRECT_DIGITS]
    return float(precise[index]) if len(precise) else None


def root_mean_squares(vectors: Vectors) -> FloatArray:
    """Return the RMS of each vector, padded with zeros to the network's width."""
    squares = np.square(vectors, dtype=np.float64).sum(axis=1)
    rms: FloatArray = np.sqrt(squares / max(NETWORK_WIDTH, vectors.shape[1]))
    return rms


def rms_normalised(vectors: Vectors) -> Vectors:
    """Return the vectors after RMSNorm at the network's width."""
    scale = np.sqrt(root_mean_squares(vectors) ** 2 + _EPSILON)
    return (vectors / scale[:, None]).astype(np.float32)


def layer_normalised(vectors: Vectors) -> Vectors:
    """Return the vectors after LayerNorm at the network's width, without its other channels."""
    sums = vectors.sum(axis=1, dtype=np.float64, keepdims=True)
    means = sums / max(NETWORK_WIDTH, vectors.shape[1])
    variances = root_mean_squares(vectors)[:, None] ** 2 - means**2
    normalised: FloatArray = (vectors - means) / np.sqrt(variances + _EPSILON)
    return normalised.astype(np.float32)


def rounded(vectors: Vectors, dtype: torch.dtype) -> Vectors:
    """Return the vectors rounded to a type of lower precision."""
    result: Vectors = torch.from_numpy(vectors).to(dtype).to(torch.float32).numpy()
    return result


def relative_change(tested: EncodingUnderTest, changed: FloatArray) -> float:
    """Return the mean of ‖v(y) − v(x)‖ / ‖v(x)‖ over the magnitudes x and their changed values y.

    Vectors of length 0 are left out.
    """
    encoding = tested.encoding
    before, after = (
        encoding.vector(encoding.encode(values)) for values in (tested.numbers.magnitudes, changed)
    )
    length = np.linalg.norm(before, axis=1)
    distance = np.linalg.norm(after - before, axis=1)
    return float((distance[length > 0] / length[length > 0]).mean())


def percent_recovered_from_noise(tested: EncodingUnderTest, sigma: float) -> float:
    """Return the percentage recovered under Gaussian noise, relative to the RMS of all vectors."""
    vectors = tested.vectors
    scale = np.sqrt(np.square(vectors.astype(np.float64)).mean())
    noise = np.random.default_rng(SEED).standard_normal(vectors.shape) * (sigma * scale)
    return tested.percent_recovered((vectors + noise).astype(np.float32))


def _noise_measure(sigma: float) -> Measure:
    name = f"σ = {sigma}, decoded %"
    return Measure("D8", name, "percent", lambda e: percent_recovered_from_noise(e, sigma))


MEASURES = (
    Measure("D1", "tokens a number", "number", lambda e: float(e.token_counts.mean())),
    Measure("D2", "exact, dataset %", "percent", lambda e: percent_exact(e, e.numbers.values)),
    Measure("D2", "exact, float64 %", "percent", lambda e: percent_exact(e, e.numbers.random)),
    Measure("D3", "ρ with ratios", "number", lambda e: rank_correlation(e, np.log10)),
    Measure("D3", "ρ with differences", "number", lambda e: rank_correlation(e, np.positive)),
    Measure("D4", "smallest magnitude", "power", lambda e: precise_decade(e, 0)),
    Measure("D4", "largest magnitude", "power", lambda e: precise_decade(e, -1)),
    Measure("D4", "digits, median", "number", lambda e: float(np.median(e.digits))),
    Measure("D4", "digits, worst", "number", lambda e: float(e.digits.min())),
    Measure("D5", "RMS, smallest", "number", lambda e: float(root_mean_squares(e.vectors).min())),
    Measure("D5", "RMS, largest", "number", lambda e: float(root_mean_squares(e.vectors).max())),
    Measure(
        "D5", "after RMSNorm %", "percent", lambda e: e.percent_recovered(rms_normalised(e.vectors))
    ),
    Measure(
        "D5",
        "after LayerNorm %",
        "percent",
        lambda e: e.percent_recovered(layer_normalised(e.vectors)),
    ),
    Measure(
        "D6",
        "in bf16 %",
        "percent",
        lambda e: e.percent_recovered(rounded(e.vectors, torch.bfloat16)),
    ),
    Measure(
        "D6",
        "in FP8 %",
        "percent",
        lambda e: e.percent_recovered(rounded(e.vectors, torch.float8_e4m3fn)),
    ),
    Measure(
        "D7",
        "change, next value",
        "small",
        lambda e: relative_change(e, np.nextafter(e.numbers.magnitudes, np.inf)),
    ),
    Measure(
        "D7",
        "change, 1 % more",
        "small",
        lambda e: relative_change(e, e.numbers.magnitudes * 1.01),
    ),
    _noise_measure(0.1),
    _noise_measure(0.3),
    _noise_measure(0.5),
    Measure("D9", "trained score %", "percent", lambda e: e.trained_score),
)
"""The rows of the table. `docs/encodings.md` explains them."""
