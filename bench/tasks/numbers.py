"""Sampling of single numbers and pairs: digits, magnitudes, signs (paper, "Number sampling")."""

from __future__ import annotations

from bench.numerals import Number
from bench.tasks.draws import Draws

LOWEST_EXPONENT, HIGHEST_EXPONENT = -14, 14
"""An operand n has 10^x ≤ |n| < 10^(x+1) with x in this range."""

SIGNS = ((1, 1), (-1, 1), (1, -1), (-1, -1))
SIGN_WEIGHTS = (40, 20, 20, 20)


def significand(draws: Draws, digits: int) -> int:
    """Uniform over the integers of exactly `digits` digits whose last digit is not 0. One draw."""
    if digits == 1:
        return draws.between(1, 9)
    first: int = 10 ** (digits - 2)
    prefix, last = divmod(draws.below(9 * first * 9), 9)
    return (first + prefix) * 10 + last + 1


def exponent(draws: Draws) -> int:
    """x, uniform over the orders of magnitude of an operand. One draw."""
    return draws.between(LOWEST_EXPONENT, HIGHEST_EXPONENT)


def scaled(significand: int, exponent: int) -> Number:
    """The number with these significant digits whose leading digit stands at 10^exponent."""
    return Number(significand, exponent - len(str(abs(significand))) + 1)


def pair_digits(draws: Draws, max_digits: int) -> tuple[int, int]:
    """(p₁, p₂) with p₁ ≥ p₂: p₁ + p₂ uniform on {2 … 2·max_digits}, p₁ triangular. Two draws."""
    together = draws.between(2, 2 * max_digits)
    low = (together + 1) // 2
    high = min(together - 1, max_digits)
    first = low + draws.weighted(triangular_weights(high - low + 1))
    return first, together - first


def signs(draws: Draws) -> tuple[int, int]:
    """Signs of two operands: 40 % ++, 20 % −+, 20 % +−, 20 % −−. One draw."""
    return SIGNS[draws.weighted(SIGN_WEIGHTS)]


def swapped(draws: Draws, a: int, b: int) -> tuple[int, int]:
    """(a, b) or (b, a) with equal chances. One draw."""
    return (a, b) if draws.below(2) else (b, a)


def triangular_weights(n: int) -> list[int]:
    """Masses of the integer part of a triangular variable on [0, n) with its mode at 1.

    They are (n−1, 2n−3, 2n−5, …, 1) and add up to n(n−1); for n = 1 the only outcome is 0.
    """
    return [n - 1 or 1, *range(2 * n - 3, 0, -2)]
