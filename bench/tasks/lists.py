"""Sampling of number lists with a given mean, spread and precision (paper, "Number sampling").

A list is integers ("units") over one power of ten. Its mean's magnitude x, its spread s and its
digits p are drawn first; the units then reach the drawn mean by construction.
"""

from __future__ import annotations

from typing import NamedTuple

from bench.numerals import Number, plain
from bench.tasks.draws import Draws
from bench.tasks.numbers import LOWEST_EXPONENT, exponent

MAX_LENGTH = 5
WORDS = 5 + MAX_LENGTH
"""Draws of one list, whatever its length."""


class NumberList(NamedTuple):
    """Elements units[i] · 10^grid; `radius` is 10^spread in units."""

    units: tuple[int, ...]
    grid: int
    radius: int
    params: dict[str, int]

    def texts(self) -> tuple[str, ...]:
        """The elements in plain decimal."""
        return tuple(plain(Number(unit, self.grid)) for unit in self.units)


def sample_list(draws: Draws, max_digits: int, reach: int) -> NumberList | None:
    """A list whose spread goes up to `reach` orders above its mean; None if out of bounds.

    length l ~ U{2…5}; x ~ U{−14…14}; s ~ U{min(13, x−13) … min(x+reach, 13)} (x−13 rises with
    fewer digits, so that every spread can be shown); p ~ U{max(2, x−s+2) … max_digits}. The
    sum is drawn so that 10^x ≤ mean < 10^(x+1), or one unit where the digits end above 10^x.
    """
    length = draws.between(2, MAX_LENGTH)
    x = exponent(draws)
    s = draws.between(min(13, x - min(13, max_digits - 2)), min(x + reach, 13))
    digits = draws.between(max(2, x - s + 2), max_digits)
    grid = max(x, s) - digits + 1
    reached = max(x, grid)
    total = draws.between(length * 10 ** (reached - grid), length * 10 ** (reached + 1 - grid) - 1)
    radius = 10 ** (s - grid)
    units = _around(draws, length, total, radius)
    if not all(fits(unit, grid, digits) for unit in units) or len(set(units)) == 1:
        return None
    params = {"length": length, "exponent": x, "spread": s, "digits": digits}
    return NumberList(units, grid, radius, params)


def fits(unit: int, grid: int, digits: int) -> bool:
    """Whether unit · 10^grid has at most `digits` digits and is 0 or no smaller than 10⁻¹⁴."""
    if abs(unit) >= 10**digits:
        return False
    smallest = 10 ** max(0, LOWEST_EXPONENT - grid)
    return unit == 0 or abs(unit) >= smallest


def _around(draws: Draws, length: int, total: int, radius: int) -> tuple[int, ...]:
    """`length` integers that add up to `total`, each within `radius` (+1) of total / length.

    Uniform offsets are shifted to the wanted sum; their range is narrowed by 2(l−1)/l, the
    most that the shift can add. Always draws MAX_LENGTH words.
    """
    half = radius * length // (2 * (length - 1))
    offsets = [draws.between(-half, half) for _ in range(MAX_LENGTH)][:length]
    shift, rest = divmod(total - sum(offsets), length)
    return tuple(offset + shift + (i < rest) for i, offset in enumerate(offsets))
