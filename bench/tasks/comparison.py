"""The comparison tasks: minimum or maximum, interval, sorting (paper, "Comparing numbers")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from bench.numerals import Number, parse, plain
from bench.tasks import difficulty, lists
from bench.tasks.base import Problem, Sampling, Task
from bench.tasks.draws import Draws
from bench.tasks.phrasing import LETTERS

REACH = 2


def _with_operator(operators: tuple[str, ...]) -> Callable[[Draws, Sampling], Problem | None]:
    def sample(draws: Draws, sampling: Sampling) -> Problem | None:
        numbers = lists.sample_list(draws, sampling.max_digits, REACH)
        if numbers is None:
            return None
        return Problem(operators[draws.below(len(operators))], numbers.texts(), numbers.params)

    return sample


def _sample_interval(draws: Draws, sampling: Sampling) -> Problem | None:
    """Boundaries in ascending order, and a reference whose position among them is uniform."""
    numbers = lists.sample_list(draws, sampling.max_digits, REACH)
    if numbers is None:
        return None
    bounds = _separated(numbers.units)
    position = draws.between(0, len(bounds))
    step = max(1, numbers.radius // len(bounds))
    if position == 0:
        reference = bounds[0] - step
    elif position == len(bounds):
        reference = bounds[-1] + step
    else:
        reference = draws.between(bounds[position - 1], bounds[position] - 1)
    if not all(
        lists.fits(unit, numbers.grid, numbers.params["digits"]) for unit in (reference, *bounds)
    ):
        return None
    operands = tuple(plain(Number(unit, numbers.grid)) for unit in (reference, *bounds))
    return Problem("interval", operands, numbers.params | {"position": position})


def _separated(units: Sequence[int]) -> list[int]:
    """The units in ascending order, each pushed up to one above the last where they coincide."""
    bounds: list[int] = []
    for unit in sorted(units):
        bounds.append(max(unit, bounds[-1] + 1) if bounds else unit)
    return bounds


def _extremum(operator: str, operands: Sequence[str]) -> str:
    """The smallest or largest element, as printed."""
    return {"minimum": min, "maximum": max}[operator](operands, key=_value)


def _ordered(operator: str, operands: Sequence[str]) -> tuple[str, ...]:
    """All elements in order, as printed."""
    return tuple(sorted(operands, key=_value, reverse=operator == "descending"))


def _interval(_operator: str, operands: Sequence[str]) -> str:
    """The letter of the interval that holds the reference. ValueError for unsorted boundaries."""
    reference, *bounds = map(_value, operands)
    if sorted(set(bounds)) != bounds:
        raise ValueError(f"boundaries are not in ascending order: {', '.join(operands[1:])}")
    return LETTERS[sum(bound <= reference for bound in bounds)]


def _value(text: str) -> Fraction:
    number = parse(text)
    return Fraction(number.significand) * Fraction(10) ** number.exponent


MINMAX = Task(
    name="minmax",
    display="MinMax",
    answer_kind="number",
    metric="exact_match",
    system_prompt="minmax",
    operators=("minimum", "maximum"),
    words=lists.WORDS + 1,
    sample=_with_operator(("minimum", "maximum")),
    truth=_extremum,
    difficulty=difficulty.of_extremum,
)

INTERVAL = Task(
    name="interval",
    display="Interval",
    answer_kind="letter",
    metric="exact_match",
    system_prompt="interval",
    operators=("interval",),
    words=lists.WORDS + 2,
    sample=_sample_interval,
    truth=_interval,
    difficulty=difficulty.of_interval,
)

SORTING = Task(
    name="sorting",
    display="Sorting",
    answer_kind="list",
    metric="exact_match",
    system_prompt="sorting",
    operators=("ascending", "descending"),
    words=lists.WORDS + 1,
    sample=_with_operator(("ascending", "descending")),
    truth=_ordered,
    difficulty=difficulty.of_text,
)
