"""Attempts of the samplers as arrays, and statistical tests of a sample against a distribution.

Every comparison ends in one p-value and fails below ALPHA. The caller states the distribution
from the dataset card; nothing here uses the sampler's own parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from numbench.decimal_numbers import DecimalNumber, format_decimal
from numbench.tasks import PAPER_TASKS
from numbench.tasks.random_words import RandomStream
from numbench.vectorized.questions import Questions
from numbench.vectorized.random_words import RandomWordArrays
from numbench.vectorized.samplers import SAMPLERS

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

ALPHA = 1e-6
"""The probability, over seeds, that a comparison fails for a correct sampler."""
ATTEMPTS = 500_000
SEED = 2025
MIN_EXPECTED_COUNT = 25
"""Cells of a chi-square test with a smaller expected count are pooled."""


class Operand(NamedTuple):
    """One column of operands as signed, reduced significands with their digits and magnitudes."""

    significand: IntArray
    digits: IntArray
    magnitude: IntArray

    @property
    def size(self) -> IntArray:
        """The absolute significands."""
        return np.abs(self.significand)

    @property
    def negative(self) -> IntArray:
        """1 for negative numbers, otherwise 0."""
        return (self.significand < 0).astype(np.int64)


def stream_of(task: str) -> RandomStream:
    """Return the random stream of the attempts of a task in these tests."""
    return RandomStream(SEED, PAPER_TASKS[task].stream_name or task, "train", 0)


@lru_cache(maxsize=14)
def attempts_at(task: str, max_digits: int, count: int = ATTEMPTS) -> Questions:
    """Return the first attempts of a task, including those that break a rule (`valid` false)."""
    words = RandomWordArrays(stream_of(task), PAPER_TASKS[task].words_per_attempt, 0, count)
    return SAMPLERS[task](words, max_digits)


def operand(questions: Questions, column: int) -> Operand:
    """Return a column of operands. Digits are counted without trailing zeros."""
    significand = questions.operands.significand[:, column].copy()
    exponent = questions.operands.exponent[:, column].copy()
    rows = np.flatnonzero((significand % 10 == 0) & (significand != 0))
    while rows.size:
        significand[rows] //= 10
        exponent[rows] += 1
        rows = rows[significand[rows] % 10 == 0]
    digits = digits_of(significand)
    return Operand(significand, digits, exponent + digits - 1)


def texts(questions: Questions, row: int) -> tuple[str, ...]:
    """Return the operands of one row in plain notation."""
    significands, exponents = (part[row].tolist() for part in questions.operands)
    both = zip(significands, exponents, strict=True)
    return tuple(format_decimal(DecimalNumber(*parts)) for parts in both)[
        : int(questions.length[row])
    ]


def digits_of(values: IntArray) -> IntArray:
    """Count the decimal digits of |values|."""
    digits: IntArray = (np.abs(values)[:, None] >= 10 ** np.arange(19, dtype=np.int64)).sum(axis=1)
    return digits


def counted(*columns: IntArray, low: int | tuple[int, ...] = 0, shape: tuple[int, ...]) -> IntArray:
    """Count each combination of values, in a table that starts at `low`.

    Raises AssertionError if a value is outside the table.
    """
    lows = (low,) * len(columns) if isinstance(low, int) else low
    indices = [column - start for column, start in zip(columns, lows, strict=True)]
    for index, size in zip(indices, shape, strict=True):
        assert index.size and index.min() >= 0 and index.max() < size, (index.min(), index.max())
    flat = np.ravel_multi_index(indices, shape)
    table: IntArray = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
    return table


def follows(counts: IntArray, law: FloatArray) -> None:
    """Chi-square test that the counts come from a distribution, given as unscaled masses.

    Cells of mass 0 must have no counts.
    """
    assert not counts[law == 0].any(), np.argwhere((counts > 0) & (law == 0))[:5]
    observed = counts[law > 0].astype(np.float64)
    expected = law[law > 0] / law.sum() * counts.sum()
    rare = expected < MIN_EXPECTED_COUNT
    if rare.any():
        pooled_expected, pooled_observed = expected[rare].sum(), observed[rare].sum()
        expected, observed = expected[~rare], observed[~rare]
        if pooled_expected < MIN_EXPECTED_COUNT:
            smallest = int(expected.argmin())
            expected[smallest] += pooled_expected
            observed[smallest] += pooled_observed
        else:
            expected = np.append(expected, pooled_expected)
            observed = np.append(observed, pooled_observed)
    assert len(expected) > 1 and expected.min() >= MIN_EXPECTED_COUNT
    plausible(float(stats.chisquare(observed, expected).pvalue))


def follows_uniform(counts: IntArray) -> None:
    """Chi-square test that all cells of the table are equally likely."""
    follows(counts, np.ones(counts.shape))


def follows_cdf(sample: FloatArray, cdf: Callable[[FloatArray], FloatArray] | str) -> None:
    """Kolmogorov–Smirnov test that the sample comes from a continuous distribution."""
    assert len(sample) >= 1000
    plausible(float(stats.kstest(sample, cdf, method="asymp").pvalue))


def independent(columns: dict[str, IntArray]) -> None:
    """Chi-square test of every pair that columns of small integers are independent."""
    for (_, a), (_, b) in combinations(columns.items(), 2):
        shape = int(a.max()) + 1, int(b.max()) + 1
        table = counted(a, b, shape=shape)
        assert np.outer(table.sum(1), table.sum(0)).min() >= MIN_EXPECTED_COUNT * table.sum()
        plausible(float(stats.chi2_contingency(table, correction=False).pvalue))


def occurs(count: int, total: int, rate: float) -> None:
    """Binomial test that `count` of `total` events happen at a rate."""
    plausible(float(stats.binomtest(int(count), total, rate).pvalue))


def plausible(p_value: float) -> None:
    """Assert that a p-value is not below ALPHA."""
    assert p_value >= ALPHA, f"p = {p_value:.2g}"


def spread_out(index: IntArray, size: IntArray, salt: int = 0) -> FloatArray:
    """Return values uniform on (0, 1) if `index` is uniform on {0 … size−1}, for any sizes.

    Each index becomes a random point of its part of the interval. Columns that are compared with
    each other need different salts. Raises AssertionError if an index is outside its range.
    """
    assert (index >= 0).all() and (index < size).all()
    inside = np.random.default_rng([SEED, salt]).random(len(index))
    return np.asarray((index + inside) / size, np.float64)


def rank(significand: IntArray, digits: IntArray) -> tuple[IntArray, IntArray]:
    """Return ranks of significands among those of equal digits without a final 0; their number."""
    single = digits == 1
    first = 10 ** np.maximum(digits - 2, 0)
    prefix, last = significand // 10, significand % 10
    assert (last > 0).all()
    index = np.where(single, significand - 1, 9 * (prefix - first) + last - 1)
    return index, np.where(single, 9, 81 * first)


def tenths(sample: FloatArray, parts: int = 10) -> IntArray:
    """Return the index of the part of (0, 1) that contains each value."""
    return np.minimum((sample * parts).astype(np.int64), parts - 1)
