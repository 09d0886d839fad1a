"""Choosing a subset that keeps the difficulty distribution of the whole."""

from __future__ import annotations

from collections.abc import Sequence

from bench.records import Item
from bench.tasks.draws import Draws


def stratified(items: Sequence[Item], size: int, draws: Draws) -> list[Item]:
    """`size` of `items`, spread evenly over the ranking by difficulty, in random order.

    The items are shuffled, ranked by base-10 difficulty (ties stay shuffled) and cut into `size`
    consecutive strata of equal length (±1); one item is drawn from each. ValueError for a size
    beyond the number of items. Uses 2·len(items) + size words at most.
    """
    if size > len(items):
        raise ValueError(f"cannot choose {size} of {len(items)} items")
    ranked = sorted(shuffled(items, draws), key=lambda item: item.difficulty.base10)
    chosen = []
    for stratum in range(size):
        low = stratum * len(ranked) // size
        high = (stratum + 1) * len(ranked) // size
        chosen.append(ranked[draws.between(low, high - 1)])
    return shuffled(chosen, draws)


def shuffled(items: Sequence[Item], draws: Draws) -> list[Item]:
    """The items in uniformly random order (Fisher and Yates)."""
    order = list(items)
    for last in range(len(order) - 1, 0, -1):
        other = draws.between(0, last)
        order[last], order[other] = order[other], order[last]
    return order
