"""Questions about integers of few bits, and about the same integers divided by powers of ten.

An encoding in base 2 writes an integer m < 2^k with k significant bits, but nearly every decimal
fraction with all 52 bits of the significand of a float64. The two kinds of operands show how much
an encoding depends on that; an encoding in base 10 has the same digits for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numbench.decimal_numbers import DecimalNumber, format_decimal
from numbench.tasks.base import SampledQuestion, SamplingSettings
from numbench.tasks.number_sampling import MAX_LIST_LENGTH
from numbench.tasks.random_words import RandomWords

MIN_BITS, MAX_BITS = 2, 24
"""The range of `SamplingSettings.max_bits`; a product of two operands has at most 15 digits."""

MAX_SHIFT = 6
"""The largest `SamplingSettings.max_shift`."""

WORDS_PER_ATTEMPT = 9

Sampler = Callable[[RandomWords, SamplingSettings], SampledQuestion | None]


def check_settings(tasks: Sequence[str], max_bits: int, max_shift: int) -> None:
    """Raise ValueError if there are no such questions of one of the tasks."""
    if not MIN_BITS <= max_bits <= MAX_BITS:
        raise ValueError(f"{max_bits} bits; use {MIN_BITS} to {MAX_BITS}")
    if not 0 <= max_shift <= MAX_SHIFT:
        raise ValueError(f"a shift of {max_shift}; use 0 to {MAX_SHIFT}")
    for task in tasks:
        if task not in SAMPLERS:
            raise ValueError(
                f"task {task!r} has no questions about short integers; use {', '.join(SAMPLERS)}"
            )


def _integer(words: RandomWords, settings: SamplingSettings) -> int:
    """Return an integer uniform on {1 … 2^max_bits − 1}. Uses one word."""
    assert settings.max_bits is not None
    return words.randint(1, 2**settings.max_bits - 1)


def _shift(words: RandomWords, settings: SamplingSettings) -> int:
    """Return the power of ten that divides an operand: uniform on {1 … max_shift}; 0 for integers.

    Uses one word.
    """
    return words.randint(min(1, settings.max_shift), settings.max_shift)


def _pair_sampler(operators: tuple[str, ...]) -> Sampler:
    def sample(words: RandomWords, settings: SamplingSettings) -> SampledQuestion:
        a, b = _integer(words, settings), _integer(words, settings)
        shift_a, shift_b = _shift(words, settings), _shift(words, settings)
        operator = operators[words.randbelow(len(operators))]
        if operator == "/":
            dividend = DecimalNumber(a * b, -shift_a - shift_b)
        else:
            dividend = DecimalNumber(a, -shift_a)
        operands = (format_decimal(dividend), format_decimal(DecimalNumber(b, -shift_b)))
        return SampledQuestion(
            operator, operands, {"bits_1": a.bit_length(), "bits_2": b.bit_length()}
        )

    return sample


def _list_sampler(operators: tuple[str, ...]) -> Sampler:
    def sample(words: RandomWords, settings: SamplingSettings) -> SampledQuestion | None:
        length, numbers, shift = _list(words, settings)
        operator = operators[words.randbelow(len(operators))]
        if len(set(numbers)) == 1:
            return None
        operands = tuple(format_decimal(DecimalNumber(number, -shift)) for number in numbers)
        return SampledQuestion(operator, operands, {"length": length})

    return sample


def _sample_interval(words: RandomWords, settings: SamplingSettings) -> SampledQuestion | None:
    """Draw boundaries, one of their intervals, and a reference that is uniform in it."""
    length, numbers, shift = _list(words, settings)
    bounds = sorted(numbers)
    position = words.randint(0, length)
    edges = (0, *bounds, 2 ** (settings.max_bits or 0))
    reference = words.randint(edges[position], max(edges[position + 1] - 1, edges[position]))
    if len(set(bounds)) < length or edges[position] == edges[position + 1]:
        return None
    operands = tuple(format_decimal(DecimalNumber(n, -shift)) for n in (reference, *bounds))
    return SampledQuestion("interval", operands, {"length": length, "position": position})


def _list(words: RandomWords, settings: SamplingSettings) -> tuple[int, tuple[int, ...], int]:
    """Return the length of a list, its integers, and the shift of all. Uses 7 words."""
    length = words.randint(2, MAX_LIST_LENGTH)
    numbers = [_integer(words, settings) for _ in range(MAX_LIST_LENGTH)][:length]
    return length, tuple(numbers), _shift(words, settings)


SAMPLERS: dict[str, Sampler] = {
    "minmax": _list_sampler(("minimum", "maximum")),
    "interval": _sample_interval,
    "sorting": _list_sampler(("ascending", "descending")),
    "addition": _pair_sampler(("+", "-")),
    "multiplication": _pair_sampler(("*",)),
    "division": _pair_sampler(("/",)),
}
"""The tasks with such questions; each sampler uses at most WORDS_PER_ATTEMPT words."""
