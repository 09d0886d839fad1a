"""What arithmetic of a given precision would score: the yardstick of the report.

Operands are rounded to the type, then every operation's result is. Each operation is computed
in binary64 first; for types of at most 25 bits that rounds as a single rounding would
(53 ≥ 2·p + 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import takewhile
from typing import NamedTuple

from bench.models.base import Message, Settings
from bench.models.failures import failed
from bench.records import Completion, Failure
from bench.tasks.phrasing import LETTERS, Question, prompts


class Precision(NamedTuple):
    """A binary floating-point type: significant bits, smallest step 2^step, largest value."""

    bits: int
    step: int
    largest: float

    def round(self, value: float | Fraction) -> float:
        """`value` to the nearest number of the type, ties to even; infinite beyond its range."""
        if isinstance(value, float) and not math.isfinite(value):
            return value
        exact = Fraction(value)
        if exact == 0:
            return 0.0
        # Beyond the largest value the spacing goes on as if there were no end (IEEE 754, 4.3.1).
        exponent = math.frexp(float(min(abs(exact), Fraction(self.largest))))[1]
        quantum = Fraction(2) ** max(exponent - self.bits, self.step)
        exact = round(exact / quantum) * quantum
        if abs(exact) > self.largest:
            return math.inf if exact > 0 else -math.inf
        return float(exact)

    def parse(self, text: str) -> float:
        """The number of the type nearest to a decimal."""
        return self.round(Fraction(text))

    def show(self, value: float) -> str:
        """The shortest decimal that reads back as `value`, in JSON's notation."""
        for digits in range(1, 18):
            text = f"{value:.{digits}g}"
            if self.parse(text) == value:
                break
        return text


PRECISIONS = {
    "float64": Precision(53, -1074, math.ldexp(2 - 2**-52, 1023)),
    "float32": Precision(24, -149, math.ldexp(2 - 2**-23, 127)),
    "bfloat16": Precision(8, -133, math.ldexp(2 - 2**-7, 127)),
}

_BINARY: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": math.pow,
}


class BaselineModel:
    """A calculator with numbers of one type."""

    def __init__(self, name: str, precision: Precision) -> None:
        self.name = name
        self._precision = precision

    async def answer(self, messages: Sequence[Message], settings: Settings) -> Completion:
        """The answer to the last question; null where the type has none (overflow, complex)."""
        prompt = next(m.content for m in reversed(messages) if m.role == "user")
        try:
            question = prompts().read(prompt)
        except ValueError as error:
            return failed(Failure(kind="item", message=str(error)))
        answer = calculate(question, self._precision)
        return Completion(text=f'{{"answer": {answer}}}', finish_reason="stop")

    async def close(self) -> None:
        """Nothing is held open."""


def calculate(question: Question, precision: Precision) -> str:
    """The answer to `question` as JSON text."""
    values = [precision.parse(operand) for operand in question.operands]
    if question.operator == "interval":
        below = takewhile(lambda boundary: values[0] >= boundary, values[1:])
        return f'"{LETTERS[sum(1 for _ in below)]}"'
    if question.operator in ("ascending", "descending"):
        ordered = sorted(values, reverse=question.operator == "descending")
        return "[" + ", ".join(_number(value, precision) for value in ordered) + "]"
    try:
        return _number(_value(question.operator, values, precision), precision)
    except (OverflowError, ValueError, ZeroDivisionError):
        return "null"


def _value(operator: str, values: Sequence[float], precision: Precision) -> float:
    """One number from `values`. Raises as `math` does where there is none."""
    if operator == "minimum":
        return min(values)
    if operator == "maximum":
        return max(values)
    if operator == "mean":
        return _mean(values, precision)
    if operator == "std":
        mean = _mean(values, precision)
        gaps = [precision.round(value - mean) for value in values]
        variance = _mean([precision.round(gap * gap) for gap in gaps], precision)
        return precision.round(math.sqrt(variance))
    return precision.round(_BINARY[operator](*values))


def _mean(values: Sequence[float], precision: Precision) -> float:
    total = 0.0
    for value in values:
        total = precision.round(total + value)
    return precision.round(total / precision.round(float(len(values))))


def _number(value: float, precision: Precision) -> str:
    return precision.show(value) if math.isfinite(value) else "null"
