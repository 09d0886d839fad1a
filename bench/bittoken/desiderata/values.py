"""Desiderata 1 to 4: tokens, uniqueness, order and distance, range and precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench.bittoken.desiderata.subjects import RANDOM, SEED, Numbers, Subject
from bench.bittoken.encodings.base import Floats, NumberEncoding

DECADES = range(-324, 309)
MOST_DIGITS = 17.0
"""Correct significant digits of a value that comes back exactly."""

ENOUGH_DIGITS = 3
_A_DECADE = 40


class Precision(NamedTuple):
    """Correct significant digits of the worst number in each of `DECADES`; NaN if it has none."""

    worst: Floats

    @property
    def reach(self) -> tuple[float, float]:
        """The lowest and the highest decade, as powers of ten, that keep `ENOUGH_DIGITS`."""
        kept = [e for e, digits in zip(DECADES, self.worst, strict=True) if digits >= ENOUGH_DIGITS]
        return float(kept[0]), float(kept[-1])


def mean_tokens(subject: Subject, numbers: Numbers) -> float:
    """Mean tokens of a number as the dataset prints it."""
    return float(np.mean([subject.tokens(text) for text in numbers.texts]))


def exact_share(subject: Subject, values: Floats) -> float:
    """Percent of the values that come back exactly."""
    return 100 * float((subject.back(values) == values).mean())


def correct_digits(subject: Subject, values: Floats) -> Floats:
    """-lg of the relative error, from 0 (nothing is right) to 17 (exact), of nonzero values."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        error = np.abs((subject.back(values) - values) / values)
        digits = np.where(error == 0, MOST_DIGITS, -np.log10(error))
    kept: Floats = np.clip(np.nan_to_num(digits, nan=0.0), 0.0, MOST_DIGITS)
    return kept


def precision(subject: Subject) -> Precision:
    """Measured on random numbers of 17 significant digits in every decade of float64."""
    draws = np.random.default_rng(SEED)
    significands = draws.integers(10**16, 10**17, (len(DECADES), _A_DECADE))
    texts = [
        [f"{significand}e{decade - 16}" for significand in row]
        for decade, row in zip(DECADES, significands.tolist(), strict=True)
    ]
    values = np.array(texts).astype(np.float64)
    held = (values > 0) & np.isfinite(values)
    digits = np.full(values.shape, np.inf)
    digits[held] = correct_digits(subject, values[held])
    return Precision(np.where(held.any(axis=1), digits.min(axis=1), np.nan))


def rank_correlations(encoding: NumberEncoding, magnitudes: Floats) -> tuple[float, float]:
    """Spearman's ρ of the distance of two vectors with |lg a - lg b| and with |a - b|."""
    first, second = np.random.default_rng(SEED).integers(0, len(magnitudes), (2, RANDOM))
    vectors = encoding.vector(encoding.code(magnitudes)).astype(np.float64)
    distances = np.linalg.norm(vectors[first] - vectors[second], axis=1)
    logarithms = np.log10(magnitudes)
    ratios = np.abs(logarithms[first] - logarithms[second])
    differences = np.abs(magnitudes[first] - magnitudes[second])
    return spearman(distances, ratios), spearman(distances, differences)


def spearman(left: Floats, right: Floats) -> float:
    """Spearman's rank correlation; ties share their mean rank."""
    return float(np.corrcoef(_ranks(left), _ranks(right))[0, 1])


def _ranks(values: Floats) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks
