"""The other computations that an answer is compared with, and their values for a question.

Values have 60 digits where the computation is exact, and the digits of the type where it is not.
`numbench.tasks.exact_arithmetic` proves the 15 digits of an answer; the further digits separate an
exact value from a floating-point one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_DOWN,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from functools import cached_property, lru_cache, reduce
from pathlib import Path
from statistics import median

from numbench.core.installation import read_toml
from numbench.forensics.agreement import readings, round_half_up
from numbench.models.baseline import FLOAT_FORMATS, UnsupportedOperator, calculate
from numbench.records import Item
from numbench.tasks import TASKS, prompts

LABEL, FLOAT64, CONVENTION = "label", "float64", "convention"
_OPERAND_DIGITS = range(8, 17)
_SHORTENED = (("truncated", ROUND_DOWN), ("rounded", ROUND_HALF_EVEN))
_POWERS_OF_TEN = -6, -5, -4, -3, -1, 1, 3, 4, 5, 6
_NEIGHBORS = {"+": "-", "-": "+", "*": "/", "/": "*", "^": "*"}
_MAX_DROPPED_DIGITS = 80
_LARGEST_EXPONENT = 400

COMPUTATIONS: dict[str, str] = read_toml(Path(__file__).with_suffix(".toml"))
"""Identifier of each computation in files → the same in words, in the order of all tables."""

Values = tuple[Decimal, ...]

_TRAPS = [InvalidOperation, DivisionByZero, Overflow]
_WORKING = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=_TRAPS)
# Sums of squares keep all digits of operands that differ by up to 10^60.
_WIDE = Context(prec=240, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=_TRAPS)


@dataclass(frozen=True, eq=False)
class Question:
    """An item of a task whose answers are computed numbers. Equal to itself only.

    label: the published answer, None if the dataset has none.
    """

    item: Item
    label: Decimal | None = None
    _answers: dict[int, dict[str, frozenset[Decimal]]] = field(default_factory=dict)

    @cached_property
    def operands(self) -> Values:
        """The operands as numbers."""
        return tuple(map(Decimal, self.item.operands))

    @cached_property
    def truth(self) -> Decimal:
        """The exact value, as far as it is known."""
        value = evaluate(self.item.operator, self.operands)
        return Decimal(str(self.item.answer)) if value is None else value

    @cached_property
    def float64(self) -> Decimal | None:
        """The result of float64 arithmetic."""
        return self._in_type(FLOAT64)

    @cached_property
    def alternatives(self) -> dict[str, Values]:
        """The values of every other computation that applies."""
        operator, numbers, truth = self.item.operator, self.operands, self.truth
        values: dict[str, Sequence[Decimal | None]] = {
            LABEL: [self.label],
            FLOAT64: [self.float64],
            "one_pass": [self._one_pass()],
            "float32": [self._in_type("float32")],
            "bfloat16": [self._in_type("bfloat16")],
            "half_up": [round_half_up(truth)],
            CONVENTION: self._conventions(),
            "integer_parts": [self._of(n.to_integral_value(ROUND_DOWN) for n in numbers)],
            "percent": [100 * truth],
            "hundredth": [truth / 100],
            "power_of_ten": [truth.scaleb(power) for power in _POWERS_OF_TEN],
            "sign": [-truth],
            "swapped": [self._of(numbers[::-1])] if operator in ("-", "/", "^") else [],
            "neighbour": self._neighbors(),
            "exponent": self._other_powers(),
            "operand": numbers,
            "dropped_answer_digit": _without_a_digit(str(self.item.answer)),
            "dropped_operand_digit": self._without_operand_digits(),
        }
        for name, rounding in _SHORTENED:
            for digits in _OPERAND_DIGITS:
                shorten = Context(digits, rounding).plus
                values[f"{name}_{digits}"] = [self._of(map(shorten, numbers))]
        if operator in ("mean", "std"):
            values["element_sign"] = [self._replaced(i, -n) for i, n in enumerate(numbers)]
            values["dropped_element"] = self._without_elements()
        return {
            name: known
            for name in COMPUTATIONS
            if (known := tuple(v for v in values.get(name, ()) if v is not None))
        }

    def answers(self, digits: int) -> dict[str, frozenset[Decimal]]:
        """Return the answers of so many digits by each alternative, without the exact value.

        Without alternatives that have no other answer.
        """
        if digits not in self._answers:
            exact = readings((self.truth,), digits)
            different = {
                name: readings(values, digits) - exact for name, values in self.alternatives.items()
            }
            self._answers[digits] = {name: known for name, known in different.items() if known}
        return self._answers[digits]

    def _of(self, operands: Iterable[Decimal], operator: str = "") -> Decimal | None:
        """Return the value with other operands, None if it is undefined."""
        return evaluate(operator or self.item.operator, tuple(operands))

    def _replaced(self, index: int, *operands: Decimal) -> Decimal | None:
        """Return the value with other operands, or none, in place of one of them."""
        return self._of((*self.operands[:index], *operands, *self.operands[index + 1 :]))

    def _in_type(self, name: str) -> Decimal | None:
        """Return the result in a floating-point type, in the fewest digits that identify it."""
        item = self.item
        question = prompts.Question(item.task, item.operator, item.operands)
        try:
            text = calculate(question, FLOAT_FORMATS[name])
        except UnsupportedOperator:
            return None
        return None if text == "null" else Decimal(text)

    def _one_pass(self) -> Decimal | None:
        if self.item.operator != "std":
            return None
        numbers = list(map(float, self.operands))
        mean = sum(numbers) / len(numbers)
        variance = sum(number * number for number in numbers) / len(numbers) - mean * mean
        is_defined = variance >= 0 and math.isfinite(variance)
        return Decimal(repr(math.sqrt(variance))) if is_defined else None

    def _conventions(self) -> list[Decimal]:
        values = []
        for convention in TASKS[self.item.task].conventions:
            with suppress(ValueError):
                text = convention.exact_answer(self.item.operator, self.item.operands)
                values.append(Decimal(text))
        return values

    def _neighbors(self) -> list[Decimal | None]:
        operator, numbers = self.item.operator, self.operands
        if operator in _NEIGHBORS:
            return [self._of(numbers, _NEIGHBORS[operator])]
        if operator == "mean":
            return [total_of(numbers), Decimal(median(numbers))]
        if operator != "std":
            return []
        center = total_of(numbers) / len(numbers)
        return [
            squared_deviations(numbers, len(numbers)),
            self._of(numbers, "mean"),
            self._of((abs(number - center) for number in numbers), "mean"),
        ]

    def _other_powers(self) -> list[Decimal | None]:
        """Return powers with the exponent negated, one more or less, or a printed 1/ξ exact."""
        if self.item.operator != "^":
            return []
        base, exponent = self.operands
        shifted = () if exponent % 1 else (exponent - 1, exponent + 1)
        inverse = 1 / exponent if exponent else Decimal(0)
        exact = (1 / round(inverse),) if exponent % 1 and round(inverse) else ()
        return [self._of((base, Decimal(other))) for other in (-exponent, *shifted, *exact)]

    def _without_elements(self) -> list[Decimal | None]:
        numbers = self.operands
        if len(numbers) < 3:
            return []
        values = [self._replaced(index) for index in range(len(numbers))]
        if self.item.operator == "mean":
            total = total_of(numbers)
            values += [_WIDE.subtract(total, number) / len(numbers) for number in numbers]
        return values

    def _without_operand_digits(self) -> list[Decimal | None]:
        if sum(len(number.as_tuple().digits) for number in self.operands) > _MAX_DROPPED_DIGITS:
            return []
        return [
            self._replaced(index, number)
            for index, text in enumerate(self.item.operands)
            for number in _without_a_digit(text)
        ]


def _without_a_digit(text: str) -> list[Decimal]:
    """Return the different numbers that remain when one digit other than 0 is left out.

    Without a 0 a number can be the same one, ten times as large.
    """
    shorter = (
        text[:index] + text[index + 1 :] for index, char in enumerate(text) if char in "123456789"
    )
    return list(dict.fromkeys(Decimal(rest) for rest in shorter if rest.strip("-.")))


def evaluate(operator: str, operands: Values) -> Decimal | None:
    """Return the value of an operator of the paper's arithmetic tasks.

    None if it is undefined, above 10^400 in magnitude, or the operator is another one.
    """
    operation = _OPERATIONS.get(operator)
    if operation is None or not operands:
        return None
    try:
        return operation(operands)
    except ArithmeticError:
        return None


def squared_deviations(numbers: Sequence[Decimal], divisor: int) -> Decimal:
    """Return the sum of the squared deviations from the mean, divided by `divisor`."""
    count = Decimal(len(numbers))
    total, squares = total_of(numbers), Decimal(0)
    for number in numbers:
        squares = _WIDE.fma(number, number, squares)
    # n · Σx² − (Σx)² has no rounding before the difference.
    difference = _WIDE.subtract(_WIDE.multiply(count, squares), _WIDE.multiply(total, total))
    return _WORKING.divide(difference, _WIDE.multiply(count, Decimal(divisor)))


def total_of(numbers: Sequence[Decimal]) -> Decimal:
    """Return the sum."""
    return reduce(_WIDE.add, numbers, Decimal(0))


# Operands that are shortened to 8, 9 … digits are often the same; a power takes longest.
@lru_cache(maxsize=64)
def _power(base: Decimal, exponent: Decimal) -> Decimal:
    if base and abs(exponent) * (abs(base.adjusted()) + 1) > _LARGEST_EXPONENT:
        raise Overflow
    return _WORKING.power(base, exponent)


_OPERATIONS: dict[str, Callable[[Values], Decimal]] = {
    "+": lambda operands: _WORKING.add(*operands),
    "-": lambda operands: _WORKING.subtract(*operands),
    "*": lambda operands: _WORKING.multiply(*operands),
    "/": lambda operands: _WORKING.divide(*operands),
    "^": lambda operands: _power(*operands),
    "mean": lambda operands: _WORKING.divide(total_of(operands), Decimal(len(operands))),
    "std": lambda operands: _WORKING.sqrt(squared_deviations(operands, len(operands))),
}
