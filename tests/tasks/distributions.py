"""Attempts of the samplers as arrays, and the tests of a drawn sample against a stated law.

Every comparison ends in one p-value, and fails below ALPHA. A law is written down by the caller
from the dataset card; nothing here asks the sampler what it meant to draw.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bench.batch.questions import Questions
from bench.batch.rows import SAMPLERS
from bench.batch.words import Words
from bench.numerals import Number, plain
from bench.tasks import TASKS
from bench.tasks.draws import Stream

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ALPHA = 1e-6
"""The chance of each comparison to fail, over the seeds, where the sampler is right."""
ATTEMPTS = 500_000
SEED = 2025
FEWEST = 25
"""Cells of a chi-square test that expect fewer attempts than this are taken together."""


class Operand(NamedTuple):
    """One column of operands as signed, reduced significands with their digits and magnitudes."""

    significand: Ints
    digits: Ints
    magnitude: Ints

    @property
    def size(self) -> Ints:
        """The absolute significands."""
        return np.abs(self.significand)

    @property
    def negative(self) -> Ints:
        """1 for the numbers below 0, otherwise 0."""
        return (self.significand < 0).astype(np.int64)


def stream_of(task: str) -> Stream:
    """The random stream from which the attempts of a task are drawn here."""
    return Stream(SEED, TASKS[task].stream or task, "train", 0)


@lru_cache(maxsize=14)
def attempts_at(task: str, max_digits: int, count: int = ATTEMPTS) -> Questions:
    """The first attempts at questions of a task, with those that break a rule (`valid` false)."""
    words = Words(stream_of(task), TASKS[task].words, 0, count)
    return SAMPLERS[task](words, max_digits)


def operand(questions: Questions, column: int) -> Operand:
    """A column of operands. Digits are counted without the zeros at the end."""
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
    """The operands of one row in plain decimal."""
    significands, exponents = (part[row].tolist() for part in questions.operands)
    both = zip(significands, exponents, strict=True)
    return tuple(plain(Number(*parts)) for parts in both)[: int(questions.length[row])]


def digits_of(values: Ints) -> Ints:
    """Decimal digits of |values|."""
    digits: Ints = (np.abs(values)[:, None] >= 10 ** np.arange(19, dtype=np.int64)).sum(axis=1)
    return digits


def counted(*columns: Ints, low: int | tuple[int, ...] = 0, shape: tuple[int, ...]) -> Ints:
    """How often each combination of values occurs, in a table that starts at `low`.

    AssertionError where a value lies outside the table.
    """
    lows = (low,) * len(columns) if isinstance(low, int) else low
    places = [column - start for column, start in zip(columns, lows, strict=True)]
    for place, size in zip(places, shape, strict=True):
        assert place.size and place.min() >= 0 and place.max() < size, (place.min(), place.max())
    flat = np.ravel_multi_index(places, shape)
    table: Ints = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
    return table


def follows(counts: Ints, law: Floats) -> None:
    """Chi-square: the counts come from a law, given up to its scale.

    What the law rules out must not occur at all.
    """
    assert not counts[law == 0].any(), np.argwhere((counts > 0) & (law == 0))[:5]
    observed = counts[law > 0].astype(np.float64)
    expected = law[law > 0] / law.sum() * counts.sum()
    rare = expected < FEWEST
    if rare.any():
        pooled, left = expected[rare].sum(), observed[rare].sum()
        expected, observed = expected[~rare], observed[~rare]
        if pooled < FEWEST:
            smallest = int(expected.argmin())
            expected[smallest] += pooled
            observed[smallest] += left
        else:
            expected, observed = np.append(expected, pooled), np.append(observed, left)
    assert len(expected) > 1 and expected.min() >= FEWEST
    plausible(float(stats.chisquare(observed, expected).pvalue))


def follows_uniform(counts: Ints) -> None:
    """Chi-square: all cells of the table are equally likely."""
    follows(counts, np.ones(counts.shape))


def follows_cdf(sample: Floats, cdf: Callable[[Floats], Floats] | str) -> None:
    """Kolmogorov and Smirnov: the sample comes from a continuous law."""
    assert len(sample) >= 1000
    plausible(float(stats.kstest(sample, cdf, method="asymp").pvalue))


def independent(columns: dict[str, Ints]) -> None:
    """Chi-square of every pair: columns of small integers do not depend on each other."""
    for (_, a), (_, b) in combinations(columns.items(), 2):
        shape = int(a.max()) + 1, int(b.max()) + 1
        table = counted(a, b, shape=shape)
        assert np.outer(table.sum(1), table.sum(0)).min() >= FEWEST * table.sum()
        plausible(float(stats.chi2_contingency(table, correction=False).pvalue))


def occurs(count: int, total: int, rate: float) -> None:
    """Binomial: `count` of `total` happened at a rate."""
    plausible(float(stats.binomtest(int(count), total, rate).pvalue))


def plausible(p_value: float) -> None:
    """Every comparison ends here."""
    assert p_value >= ALPHA, f"p = {p_value:.2g}"


def spread_out(index: Ints, size: Ints, salt: int = 0) -> Floats:
    """Uniform on (0, 1) where `index` is uniform on {0 … size−1}, whatever the sizes.

    Each index is moved to a random place of its share of the interval; columns that are to be
    compared with each other take different salts. AssertionError where an index lies outside.
    """
    assert (index >= 0).all() and (index < size).all()
    inside = np.random.default_rng([SEED, salt]).random(len(index))
    return np.asarray((index + inside) / size, np.float64)


def rank(significand: Ints, digits: Ints) -> tuple[Ints, Ints]:
    """The place of significands among those of as many digits without a final 0; their number."""
    single = digits == 1
    first = 10 ** np.maximum(digits - 2, 0)
    prefix, last = significand // 10, significand % 10
    assert (last > 0).all()
    place = np.where(single, significand - 1, 9 * (prefix - first) + last - 1)
    return place, np.where(single, 9, 81 * first)


def tenths(sample: Floats, parts: int = 10) -> Ints:
    """The part of the interval (0, 1) in which each value lies."""
    return np.minimum((sample * parts).astype(np.int64), parts - 1)
