"""Measures of desiderata 1 to 8 (paper, "Desiderata for single-token number representation").

D1: tokens. D2: exactness. D3: order and distance. D4: range and precision. D5: scale. D6: low
precision. D7: smoothness. D8: robustness to noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from numbench.bittoken.desiderata.encodings_under_test import (
    RANDOM_COUNT,
    SEED,
    DatasetNumbers,
    EncodedNumbers,
    EncodingUnderTest,
)
from numbench.bittoken.encodings.base import FloatArray, NumberEncoding, Vectors
from numbench.stats.rank_statistics import spearman

DECADES = range(-324, 309)
MAX_DIGITS = 17.0
"""Correct significant digits of a value that is recovered exactly."""

MIN_CORRECT_DIGITS = 3
_NUMBERS_PER_DECADE = 40

NETWORK_WIDTH = 768
"""The width of the paper's network, to which vectors are padded with zeros."""

_EPSILON = 1e-6


class DecadePrecision(NamedTuple):
    """The minimum number of correct digits in each of `DECADES`; NaN without a float64 in it."""

    worst: FloatArray

    @property
    def decade_range(self) -> tuple[float, float]:
        """The lowest and highest decade, as powers of ten, with `MIN_CORRECT_DIGITS` or more."""
        precise = [
            decade
            for decade, digits in zip(DECADES, self.worst, strict=True)
            if digits >= MIN_CORRECT_DIGITS
        ]
        return float(precise[0]), float(precise[-1])


def mean_tokens(encoding: EncodingUnderTest, numbers: DatasetNumbers) -> float:
    """Return the mean number of tokens of a number as printed in the dataset."""
    return float(np.mean([encoding.tokens(text) for text in numbers.texts]))


def percent_exact(encoding: EncodingUnderTest, values: FloatArray) -> float:
    """Return the percentage of values that are recovered exactly."""
    return 100 * float((encoding.round_trip(values) == values).mean())


def correct_digits(encoding: EncodingUnderTest, values: FloatArray) -> FloatArray:
    """Return −lg of the relative error of nonzero values, clipped to 0 … 17 (exact)."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        error = np.abs((encoding.round_trip(values) - values) / values)
        digits = np.where(error == 0, MAX_DIGITS, -np.log10(error))
    clipped: FloatArray = np.clip(np.nan_to_num(digits, nan=0.0), 0.0, MAX_DIGITS)
    return clipped


def precision_by_decade(encoding: EncodingUnderTest) -> DecadePrecision:
    """Measure random numbers of 17 significant digits in every decade of float64."""
    rng = np.random.default_rng(SEED)
    significands = rng.integers(10**16, 10**17, (len(DECADES), _NUMBERS_PER_DECADE))
    texts = [
        [f"{significand}e{decade - 16}" for significand in row]
        for decade, row in zip(DECADES, significands.tolist(), strict=True)
    ]
    values = np.array(texts).astype(np.float64)
    is_valid = (values > 0) & np.isfinite(values)
    digits = np.full(values.shape, np.inf)
    digits[is_valid] = correct_digits(encoding, values[is_valid])
    return DecadePrecision(np.where(is_valid.any(axis=1), digits.min(axis=1), np.nan))


def rank_correlations(
    encoding: NumberEncoding, magnitudes: FloatArray
) -> tuple[float | None, float | None]:
    """Return Spearman's ρ of the distance of two vectors with |lg a − lg b| and with |a − b|.

    None if all distances are equal.
    """
    first, second = np.random.default_rng(SEED).integers(0, len(magnitudes), (2, RANDOM_COUNT))
    vectors = encoding.vector(encoding.encode(magnitudes)).astype(np.float64)
    distances = np.linalg.norm(vectors[first] - vectors[second], axis=1)
    logarithms = np.log10(magnitudes)
    ratios = np.abs(logarithms[first] - logarithms[second])
    differences = np.abs(magnitudes[first] - magnitudes[second])
    return spearman(distances, ratios), spearman(distances, differences)


def pad_to_width(vectors: Vectors) -> FloatArray:
    """Return the vectors padded with zeros: float64 of shape (n, NETWORK_WIDTH)."""
    missing = NETWORK_WIDTH - vectors.shape[1]
    return np.pad(vectors.astype(np.float64), ((0, 0), (0, missing)))


def root_mean_squares(vectors: Vectors) -> FloatArray:
    """Return the RMS of each vector, padded to the network's width."""
    rms: FloatArray = np.sqrt(np.square(pad_to_width(vectors)).mean(axis=1))
    return rms


def rms_normalised(vectors: Vectors) -> Vectors:
    """Return the vectors after RMSNorm at the network's width, without the padding."""
    padded = pad_to_width(vectors)
    scale = np.sqrt(np.square(padded).mean(axis=1, keepdims=True) + _EPSILON)
    return _unpad(padded / scale, vectors)


def layer_normalised(vectors: Vectors) -> Vectors:
    """Return the vectors after LayerNorm at the network's width, without the padding."""
    padded = pad_to_width(vectors)
    padded -= padded.mean(axis=1, keepdims=True)
    scale = np.sqrt(np.square(padded).mean(axis=1, keepdims=True) + _EPSILON)
    return _unpad(padded / scale, vectors)


def rounded(vectors: Vectors, dtype: torch.dtype) -> Vectors:
    """Return the vectors rounded to a type of lower precision."""
    result: Vectors = torch.from_numpy(vectors).to(dtype).to(torch.float32).numpy()
    return result


def percent_recovered_from_noise(encoded: EncodedNumbers, sigma: float) -> float:
    """Return the percentage recovered under Gaussian noise, relative to the RMS of all vectors."""
    vectors = encoded.vectors
    scale = np.sqrt(np.square(vectors.astype(np.float64)).mean())
    noise = np.random.default_rng(SEED).standard_normal(vectors.shape) * (sigma * scale)
    return encoded.percent_recovered((vectors + noise).astype(np.float32))


def mean_relative_change(encoding: NumberEncoding, x: FloatArray, y: FloatArray) -> float:
    """Return the mean of ‖v(y) − v(x)‖ / ‖v(x)‖ over pairs of values."""
    before, after = (encoding.vector(encoding.encode(values)) for values in (x, y))
    length = np.linalg.norm(before, axis=1)
    return float((np.linalg.norm(after - before, axis=1) / length).mean())


def _unpad(padded: FloatArray, vectors: Vectors) -> Vectors:
    return padded[:, : vectors.shape[1]].astype(np.float32)
