"""Seeded random draws, the same on every machine and in chunks of any size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

SEED = 20_250_601
_AT_ONCE = 2_000_000

Matrix = npt.NDArray[np.float64]


def bootstrap_weights(items: int, resamples: int, stream: str = "") -> Iterator[Matrix]:
    """How often each resample draws each item: chunks of shape (some resamples, items).

    A resample draws `items` of the items with replacement. Another `stream` draws others.
    """
    words = _words(items, stream)
    for count in _chunks(resamples, items):
        uniform = (words.random_raw(count * items) >> np.uint64(11)) * 2.0**-53
        drawn = (uniform * items).astype(np.int64).reshape(count, items)
        drawn += np.arange(count)[:, None] * items
        times = np.bincount(drawn.ravel(), minlength=count * items)
        yield times.reshape(count, items).astype(np.float64)


def coin_flips(items: int, resamples: int, stream: str = "") -> Iterator[Matrix]:
    """A fair 0 or 1 per resample and item: chunks of shape (some resamples, items).

    More items leave the flips of the first ones as they are.
    """
    blocks = [_words(start, f"{stream} flips") for start in range(0, items, 64)]
    for count in _chunks(resamples, items):
        raw = np.stack([words.random_raw(count) for words in blocks], axis=1)
        bits = np.unpackbits(raw.astype("<u8").view(np.uint8), axis=1, count=items)
        yield bits.astype(np.float64)


def _words(number: int, stream: str) -> np.random.Philox:
    # Raw words are the one stream that numpy promises to keep the same across versions.
    return np.random.Philox(np.random.SeedSequence([SEED, number, *stream.encode()]))


def _chunks(resamples: int, items: int) -> Iterator[int]:
    step = max(1, _AT_ONCE // max(1, items))
    for start in range(0, resamples, step):
        yield min(step, resamples - start)
