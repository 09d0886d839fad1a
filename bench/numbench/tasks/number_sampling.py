"""Sampling of numbers, pairs and lists: digits, magnitudes, signs (paper, "Number sampling")."""

from __future__ import annotations

from typing import NamedTuple

from numbench.decimal_numbers import DecimalNumber, format_decimal
from numbench.tasks.random_words import RandomWords

MIN_EXPONENT, MAX_EXPONENT = -14, 14
"""An operand n has 10^x ≤ |n| < 10^(x+1) with x in this range."""

SIGNS = ((1, 1), (-1, 1), (1, -1), (-1, -1))
SIGN_WEIGHTS = (40, 20, 20, 20)

MAX_LIST_LENGTH = 5
WORDS_PER_LIST = 5 + MAX_LIST_LENGTH
"""Random words of one list, whatever its length."""


def sample_significand(words: RandomWords, digits: int) -> int:
    """Return an integer uniform over those of `digits` digits with a last digit other than 0.

    Uses one word.
    """
    if digits == 1:
        return words.randint(1, 9)
    first: int = 10 ** (digits - 2)
    prefix, last = divmod(words.randbelow(9 * first * 9), 9)
    return (first + prefix) * 10 + last + 1


def sample_exponent(words: RandomWords) -> int:
    """Return x, uniform over the orders of magnitude of an operand. Uses one word."""
    return words.randint(MIN_EXPONENT, MAX_EXPONENT)


def scale_to_exponent(significand: int, exponent: int) -> DecimalNumber:
    """Return the number with these significant digits and its leading digit at 10^exponent."""
    return DecimalNumber(significand, exponent - len(str(abs(significand))) + 1)


def sample_digit_counts(words: RandomWords, max_digits: int) -> tuple[int, int]:
    """Return (p₁, p₂) with p₁ ≥ p₂; their sum is uniform on {2 … 2·max_digits}, p₁ triangular.

    Uses two words.
    """
    total_digits = words.randint(2, 2 * max_digits)
    low = (total_digits + 1) // 2
    high = min(total_digits - 1, max_digits)
    first = low + words.weighted_index(triangular_weights(high - low + 1))
    return first, total_digits - first


def sample_signs(words: RandomWords) -> tuple[int, int]:
    """Return the signs of two operands: 40 % ++, 20 % −+, 20 % +−, 20 % −−. Uses one word."""
    return SIGNS[words.weighted_index(SIGN_WEIGHTS)]


def randomly_swapped(words: RandomWords, a: int, b: int) -> tuple[int, int]:
    """Return (a, b) or (b, a) with equal probability. Uses one word."""
    return (a, b) if words.randbelow(2) else (b, a)


def triangular_weights(n: int) -> list[int]:
    """Return the weights of the integer part of a triangular variable on [0, n) with mode 1.

    They are (n−1, 2n−3, 2n−5, …, 1) and sum to n(n−1); for n = 1 the only outcome is 0.
    """
    return [n - 1 or 1, *range(2 * n - 3, 0, -2)]


class NumberList(NamedTuple):
    """A list with the elements units[i] · 10^unit_exponent.

    radius: 10^spread in units. digits: the largest number of digits of an element.
    """

    units: tuple[int, ...]
    unit_exponent: int
    radius: int
    digits: int
    params: dict[str, int]

    def texts(self) -> tuple[str, ...]:
        """Return the elements in plain decimal notation."""
        return tuple(format_decimal(DecimalNumber(unit, self.unit_exponent)) for unit in self.units)


def sample_list(
    words: RandomWords, max_digits: int, max_orders_above_mean: int
) -> NumberList | None:
    """Return a list with its spread at most that many orders above its mean; None if out of range.

    length l ~ U{2…5}; x ~ U{−14…14}; s ~ U{min(13, x−13) … min(x+max_orders_above_mean, 13)} (x−13
    rises with fewer digits, so that every spread can be represented); p ~ U{max(2, x−s+2) …
    max_digits}. The sum is drawn so that 10^x ≤ mean < 10^(x+1), or one unit if the last digit is
    above 10^x. Uses WORDS_PER_LIST words.
    """
    length = words.randint(2, MAX_LIST_LENGTH)
    x = sample_exponent(words)
    s = words.randint(min(13, x - min(13, max_digits - 2)), min(x + max_orders_above_mean, 13))
    digits = words.randint(max(2, x - s + 2), max_digits)
    unit_exponent = max(x, s) - digits + 1
    mean_exponent = max(x, unit_exponent)
    total = words.randint(
        length * 10 ** (mean_exponent - unit_exponent),
        length * 10 ** (mean_exponent + 1 - unit_exponent) - 1,
    )
    radius = 10 ** (s - unit_exponent)
    units = _units_with_sum(words, length, total, radius)
    if len(set(units)) == 1 or not all(fits_digits(unit, unit_exponent, digits) for unit in units):
        return None
    params = {"length": length, "exponent": x, "spread": s, "digits": digits}
    return NumberList(units, unit_exponent, radius, digits, params)


def fits_digits(unit: int, unit_exponent: int, digits: int) -> bool:
    """Return whether unit · 10^unit_exponent has at most `digits` digits and is 0 or ≥ 10⁻¹⁴."""
    if abs(unit) >= 10**digits:
        return False
    smallest = 10 ** max(0, MIN_EXPONENT - unit_exponent)
    return unit == 0 or abs(unit) >= smallest


def _units_with_sum(words: RandomWords, length: int, total: int, radius: int) -> tuple[int, ...]:
    """Return `length` integers of sum `total`, each within `radius` (+1) of total / length.

    Uniform offsets are shifted to the required sum; their range is reduced by 2(l−1)/l, the
    largest possible shift. Always uses MAX_LIST_LENGTH words.
    """
    half = radius * length // (2 * (length - 1))
    offsets = [words.randint(-half, half) for _ in range(MAX_LIST_LENGTH)][:length]
    shift, remainder = divmod(total - sum(offsets), length)
    return tuple(offset + shift + (i < remainder) for i, offset in enumerate(offsets))
