"""Choosing a subset that keeps the difficulty distribution of the whole."""

from __future__ import annotations

from collections.abc import Sequence

from bench.tasks.draws import Draws


def stratified(difficulties: Sequence[int], size: int, draws: Draws) -> list[int]:
    """The places of `size` items, spread evenly over the ranking by difficulty, in random order.

    The items are shuffled, ranked by difficulty (ties stay shuffled) and cut into `size`
    consecutive strata of equal length (±1); one item is drawn from each. ValueError for a size
    beyond the number of items. Uses 3·len(difficulties) words at most.
    """
    if size > len(difficulties):
        raise ValueError(f"cannot choose {size} of {len(difficulties)} items")
    ranked = sorted(shuffled(range(len(difficulties)), draws), key=difficulties.__getitem__)
    chosen = []
    for stratum in range(size):
        low = stratum * len(ranked) // size
        high = (stratum + 1) * len(ranked) // size
        chosen.append(ranked[draws.between(low, high - 1)])
    return shuffled(chosen, draws)


def shuffled(places: Sequence[int], draws: Draws) -> list[int]:
    """The places in uniformly random order (Fisher and Yates)."""
    order = list(places)
    for last in range(len(order) - 1, 0, -1):
        other = draws.between(0, last)
        order[last], order[other] = order[other], order[last]
    return order
