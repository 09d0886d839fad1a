"""The comparison tasks of the paper: minimum or maximum, interval, sorting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import factorial

from numbench.decimal_numbers import DecimalNumber, format_decimal, parse_decimal
from numbench.tasks import difficulty, number_sampling
from numbench.tasks.base import LETTERS, SampledQuestion, SamplingSettings, Task
from numbench.tasks.random_words import RandomWords

MAX_ORDERS_ABOVE_MEAN = 2
"""Orders of magnitude by which the spread of a list may exceed its mean."""


def _list_sampler(
    operators: tuple[str, ...],
) -> Callable[[RandomWords, SamplingSettings], SampledQuestion | None]:
    """Return a sampler of lists, each with one of `operators`."""

    def sample(words: RandomWords, settings: SamplingSettings) -> SampledQuestion | None:
        numbers = number_sampling.sample_list(words, settings.max_digits, MAX_ORDERS_ABOVE_MEAN)
        if numbers is None:
            return None
        operator = operators[words.randbelow(len(operators))]
        return SampledQuestion(operator, numbers.texts(), numbers.params)

    return sample


def _sample_interval(words: RandomWords, settings: SamplingSettings) -> SampledQuestion | None:
    """Draw boundaries in ascending order and a reference in a uniformly drawn interval."""
    numbers = number_sampling.sample_list(words, settings.max_digits, MAX_ORDERS_ABOVE_MEAN)
    if numbers is None:
        return None
    bounds = _separated(numbers.units)
    position = words.randint(0, len(bounds))
    step = max(1, numbers.radius // len(bounds))
    if position == 0:
        reference = bounds[0] - step
    elif position == len(bounds):
        reference = bounds[-1] + step
    else:
        reference = words.randint(bounds[position - 1], bounds[position] - 1)
    units, exponent = (reference, *bounds), numbers.unit_exponent
    if not all(number_sampling.fits_digits(unit, exponent, numbers.digits) for unit in units):
        return None
    operands = tuple(format_decimal(DecimalNumber(unit, exponent)) for unit in units)
    return SampledQuestion("interval", operands, numbers.params | {"position": position})


def _separated(units: Sequence[int]) -> list[int]:
    """Return the units in ascending order, equal ones raised to one above their predecessor."""
    bounds: list[int] = []
    for unit in sorted(units):
        bounds.append(max(unit, bounds[-1] + 1) if bounds else unit)
    return bounds


def _extremum(operator: str, operands: Sequence[str]) -> str:
    """Return the smallest or largest element as printed."""
    return {"minimum": min, "maximum": max}[operator](operands, key=_value)


def _ordered(operator: str, operands: Sequence[str]) -> tuple[str, ...]:
    """Return all elements in order, as printed."""
    return tuple(sorted(operands, key=_value, reverse=operator == "descending"))


def _interval_letter(_operator: str, operands: Sequence[str]) -> str:
    """Return the letter of the reference's interval. Raises ValueError for unsorted boundaries."""
    reference, *bounds = map(_value, operands)
    if sorted(set(bounds)) != bounds:
        raise ValueError(f"boundaries are not in ascending order: {', '.join(operands[1:])}")
    return LETTERS[sum(bound <= reference for bound in bounds)]


def _value(text: str) -> Fraction:
    number = parse_decimal(text)
    return Fraction(number.significand) * Fraction(10) ** number.exponent


MINMAX = Task(
    name="minmax",
    display="MinMax",
    metric="exact_match",
    operators=("minimum", "maximum"),
    sample=_list_sampler(("minimum", "maximum")),
    exact_answer=_extremum,
    difficulty=difficulty.of_extremum,
    words_per_attempt=number_sampling.WORDS_PER_LIST + 1,
    system_prompt="minmax",
    chance_accuracy=lambda elements: 1 / elements,
)

INTERVAL = Task(
    name="interval",
    display="Interval",
    answer_kind="letter",
    metric="exact_match",
    operators=("interval",),
    sample=_sample_interval,
    exact_answer=_interval_letter,
    difficulty=difficulty.of_interval,
    words_per_attempt=number_sampling.WORDS_PER_LIST + 2,
    system_prompt="interval",
    # There are as many intervals as operands: one more than boundaries.
    chance_accuracy=lambda operand_count: 1 / operand_count,
    operand_names=("reference", "boundaries"),
)

SORTING = Task(
    name="sorting",
    display="Sorting",
    answer_kind="list",
    metric="exact_match",
    operators=("ascending", "descending"),
    sample=_list_sampler(("ascending", "descending")),
    exact_answer=_ordered,
    difficulty=difficulty.of_printed_digits,
    words_per_attempt=number_sampling.WORDS_PER_LIST + 1,
    system_prompt="sorting",
    chance_accuracy=lambda elements: 1 / factorial(elements),
)
