"""How often floating-point addition is exact for integers of a size, counted without sampling.

The counts use no floating-point number: they sum up pairs of integers in classes that round alike.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product


def share_of_exact_sums(digits: int, bits: int) -> Fraction:
    """Return the probability that a + b is exact, for uniform integers of a number of digits.

    bits: of the significand. Operands and the result are rounded to nearest, ties to even.
    """
    low, end = 10 ** (digits - 1), 10**digits
    largest_step = _step(2 * end, bits)
    # Rounding to a multiple of the step depends on the residue modulo twice the step.
    modulus = 2 * largest_step
    operand_ranges = _ranges(low, end, bits)
    exact = 0
    for (a0, a1), (b0, b1) in product(operand_ranges, repeat=2):
        for i, j in product(range(modulus), repeat=2):
            a_error = _rounded(i, _step(a0, bits)) - i
            b_error = _rounded(j, _step(b0, bits)) - j
            error = a_error + b_error
            for s0, s1 in _ranges(a0 + b0, a1 + b1, bits):
                # The sum of the rounded operands is a + b + error; it is in [s0, s1).
                residue = (i + j + error) % modulus
                if _rounded(residue, _step(s0, bits)) - residue == -error:
                    exact += _pairs((a0, a1), i, (b0, b1), j, modulus, s1 - error)
                    exact -= _pairs((a0, a1), i, (b0, b1), j, modulus, s0 - error)
    return Fraction(exact, (end - low) ** 2)


def _step(value: int, bits: int) -> int:
    """Return the distance of neighbouring numbers of the type at an integer."""
    return 2 ** max(0, value.bit_length() - bits)


def _rounded(value: int, step: int) -> int:
    """Return the nearest multiple of the step, ties to an even multiple."""
    lower, rest = divmod(value, step)
    return (lower + (2 * rest > step or (2 * rest == step and lower % 2 == 1))) * step


def _ranges(low: int, end: int, bits: int) -> list[tuple[int, int]]:
    """Return the parts of [low, end) that have one step each."""
    inner = [2**k for k in range(bits, end.bit_length()) if low < 2**k < end]
    return list(pairwise([low, *inner, end]))


def _pairs(a: tuple[int, int], i: int, b: tuple[int, int], j: int, modulus: int, below: int) -> int:
    """Count a ≡ i and b ≡ j, each in its half-open range, with a + b < below."""
    (u0, u), (v0, v) = (_members(part, r, modulus) for part, r in ((a, i), (b, j)))
    # With a = u0 + modulus · x and b = v0 + modulus · y: x + y < w.
    w = -((u0 + v0 - below) // modulus)
    return _triangle(w) - _triangle(w - u) - _triangle(w - v) + _triangle(w - u - v)


def _members(part: tuple[int, int], residue: int, modulus: int) -> tuple[int, int]:
    """Return the first number of the residue in a range, and how many there are."""
    first = part[0] + (residue - part[0]) % modulus
    return first, max(0, -(-(part[1] - first) // modulus))


def _triangle(w: int) -> int:
    """Count pairs x, y ≥ 0 with x + y < w."""
    return w * (w + 1) // 2 if w > 0 else 0
