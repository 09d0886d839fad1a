"""Many tests at once: Holm's correction, and ranks in which noise decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given.

    The i-th smallest of m is multiplied by m - i + 1, is at least the one before it, at most 1.
    """
    adjusted = [0.0] * len(p_values)
    least = 0.0
    by_size = sorted(range(len(p_values)), key=p_values.__getitem__)
    for done, place in enumerate(by_size):
        least = max(least, min(1.0, (len(p_values) - done) * p_values[place]))
        adjusted[place] = least
    return adjusted


def ranks(members: Sequence[int], beaten_by: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Rank of each member: 1 + how many members are shown to be better.

    `beaten_by` holds (worse, better). Members that nothing tells apart may share a rank; that is
    not transitive: where a beats c, and b is told apart from neither, a and b share rank 1.
    """
    found = dict.fromkeys(members, 1)
    for worse, better in set(beaten_by):
        if worse in found and better in found:
            found[worse] += 1
    return found
