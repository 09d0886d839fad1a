"""What guessing among the answers that a question allows gets right."""

from __future__ import annotations

from math import factorial


def guessing(task: str, operands: int) -> float:
    """The exact matches, in [0, 1], of a guess at a question of so many operands.

    minmax: any element; interval: any interval, as many as boundaries and the reference; sorting:
    any order. 0 where the answer is a number to be computed, or text.
    """
    match task:
        case "minmax" | "interval":
            return 1 / operands
        case "sorting":
            return 1 / factorial(operands)
    return 0.0
