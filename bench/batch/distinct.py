"""Remembering which of many millions of items came before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench.batch.fixed import Flags

Hashes = NDArray[np.uint64]
_SMALLEST_FILTER, _LARGEST_FILTER = 16, 26


class Seen:
    """A growing set of 64-bit hashes: a byte filter in front of sorted runs.

    It takes 8 bytes per hash and at most 64 MiB for the filter; runs of like size are merged.
    """

    def __init__(self, expected: int) -> None:
        """`expected` is the number of hashes for which the filter is laid out."""
        bits = min(max((8 * expected).bit_length(), _SMALLEST_FILTER), _LARGEST_FILTER)
        self._shift = np.uint64(64 - bits)
        self._filter = np.zeros(1 << bits, np.bool_)
        self._runs: list[Hashes] = []
        self.count = 0

    def add(self, hashes: Hashes) -> Flags:
        """Take `hashes` in; True where one appears for the first time."""
        _, first = np.unique(hashes, return_index=True)
        fresh = np.zeros(len(hashes), np.bool_)
        fresh[first] = True
        slots = (hashes >> self._shift).astype(np.int64)
        known = np.flatnonzero(fresh & self._filter[slots])
        fresh[known] = ~self._contains(hashes[known])
        self._filter[slots] = True
        self._keep(np.sort(hashes[fresh]))
        return fresh

    def _contains(self, hashes: Hashes) -> Flags:
        found = np.zeros(len(hashes), np.bool_)
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            found |= run[place] == hashes
        return found

    def _keep(self, run: Hashes) -> None:
        if not len(run):
            return
        self.count += len(run)
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last, before = self._runs.pop(), self._runs.pop()
            # Timsort merges two sorted runs in one pass.
            self._runs.append(np.sort(np.concatenate([before, last]), kind="stable"))
