"""Multiple tests: Holm's correction, and the ranks that follow from significant differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np


class RankSet(NamedTuple):
    """The best and the worst rank that a member may have."""

    best: int
    worst: int


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values, in the given order.

    The i-th smallest of m is multiplied by m - i + 1; it is at least the one before it and at
    most 1.
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    factors = np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return list(adjusted.tolist())


def rank_sets(members: Sequence[int], beaten_by: Iterable[tuple[int, int]]) -> dict[int, RankSet]:
    """Return the ranks that each member may have, given pairs (worse, better).

    A member is behind all significantly better ones and ahead of all significantly worse ones, so
    members that are not significantly different may share a rank. If the probability of any wrong
    pair is at most 5%, all sets contain the true ranks with a probability of at least 95%.
    """
    better, worse = dict.fromkeys(members, 0), dict.fromkeys(members, 0)
    for loser, winner in set(beaten_by):
        if loser in better and winner in better:
            better[loser] += 1
            worse[winner] += 1
    return {member: RankSet(1 + better[member], len(better) - worse[member]) for member in members}
