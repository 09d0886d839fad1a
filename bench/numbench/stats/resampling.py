"""Exact sums and seeded random draws, for the bootstrap and permutation tests.

The draws are the same on every machine and for every chunk size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from numbench.stats.design import Column, Matrix, Stratum

SEED = 20_250_601
_MAX_DRAWS_PER_CHUNK = 2_000_000
_COLUMNS_PER_BATCH = 256
_SUM_BITS = 51


def column_batches(strata: Sequence[Stratum]) -> Iterator[list[Stratum]]:
    """Yield the strata with at most 256 columns at a time, to limit memory; at least once."""
    columns = strata[0].values.shape[1]
    for start in range(0, columns, _COLUMNS_PER_BATCH) or range(1):
        yield [s.select_columns(slice(start, start + _COLUMNS_PER_BATCH)) for s in strata]


def round_for_exact_sums(values: Matrix) -> Matrix:
    """Round each column to multiples of a power of two for which all its sums are exact.

    The error is below 1e-11 of the column's largest value for up to 10,000 items. Sums are then
    bit-identical in any order and on any machine, and equal sums compare equal.
    """
    largest = np.max(np.abs(np.nan_to_num(values)), axis=0, initial=0.0)
    bits = _SUM_BITS - len(values).bit_length()
    unit = np.ldexp(1.0, np.frexp(largest)[1] - bits)
    return np.asarray(np.round(values / unit) * unit)


def sum_errors(values: Matrix) -> Column:
    """Return how far two signed sums of each column's values may be apart through rounding.

    values: rounded by `round_for_exact_sums`. Leaves room for errors of the unrounded values, such
    as those of differences of means over samples.
    """
    largest = np.max(np.abs(values), axis=0, initial=0.0)
    unit = np.ldexp(largest, len(values).bit_length() - _SUM_BITS + 2)
    return np.asarray(np.count_nonzero(values, axis=0) * unit)


def bootstrap_weights(items: int, resamples: int, stream: str = "") -> Iterator[Matrix]:
    """Yield how often each resample draws each item, in chunks of shape (some resamples, items).

    Each resample draws `items` items with replacement. Another `stream` gives other draws.
    """
    generator = _philox(items, stream)
    for count in _chunk_sizes(resamples, items):
        uniform = _uniform(generator, count * items)
        drawn = (uniform * items).astype(np.int64).reshape(count, items)
        drawn += np.arange(count)[:, None] * items
        times = np.bincount(drawn.ravel(), minlength=count * items)
        yield times.reshape(count, items).astype(np.float64)


def uniform_numbers(shape: tuple[int, ...], stream: str) -> Matrix:
    """Return uniform random numbers, 0 ≤ u < 1."""
    count = math.prod(shape)
    return _uniform(_philox(count, stream), count).reshape(shape)


def coin_flips(items: int, resamples: int, stream: str = "") -> Iterator[Matrix]:
    """Yield a fair 0 or 1 per resample and item, in chunks of shape (some resamples, items).

    The flips of an item do not depend on the number of items after it.
    """
    generators = [_philox(start, f"{stream} flips") for start in range(0, items, 64)]
    for count in _chunk_sizes(resamples, items):
        raw = np.stack([generator.random_raw(count) for generator in generators], axis=1)
        bits = np.unpackbits(raw.astype("<u8").view(np.uint8), axis=1, count=items)
        yield bits.astype(np.float64)


def _philox(number: int, stream: str) -> np.random.Philox:
    # `random_raw` is the only stream that numpy guarantees to stay the same across versions.
    return np.random.Philox(np.random.SeedSequence([SEED, number, *stream.encode()]))


def _uniform(generator: np.random.Philox, count: int) -> Matrix:
    return np.asarray((generator.random_raw(count) >> np.uint64(11)) * 2.0**-53)


def _chunk_sizes(resamples: int, items: int) -> Iterator[int]:
    step = max(1, _MAX_DRAWS_PER_CHUNK // max(1, items))
    for start in range(0, resamples, step):
        yield min(step, resamples - start)
