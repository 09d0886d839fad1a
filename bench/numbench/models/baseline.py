"""Arithmetic in floating point as a model: `baseline/float64`, `baseline/bfloat16`, …

The operands are rounded to the type, then the result of every operation. Each operation is
computed in binary64 first; for types of at most 25 bits this equals a single rounding
(53 ≥ 2·p + 2).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from itertools import takewhile
from typing import NamedTuple

from numbench.errors import BadInput
from numbench.models.base import Message, ModelTarget, RequestSettings, last_user_message
from numbench.models.facts import ReasoningLevel
from numbench.models.failures import failed_completion
from numbench.models.providers import ModelProperties, ProviderPlugin, join_names
from numbench.records import Completion, Failure
from numbench.tasks import FORM_TASKS, PAPER_TASKS, SCALED_TASKS, TASKS
from numbench.tasks.base import LETTERS, Approximation
from numbench.tasks.prompts import Question, load_prompt_set

BASELINE_PREFIX = "baseline/"
"""Prefix of the models that compute answers in this process, without generating tokens."""


class UnsupportedOperator(Exception):
    """A question with an operator that has no floating-point rule."""


class FloatFormat(NamedTuple):
    """A binary floating-point type.

    bits: significant bits. min_exponent: the smallest step is 2^min_exponent.
    """

    bits: int
    min_exponent: int
    max_value: float

    def round(self, value: float | Fraction) -> float:
        """Return the nearest number of the type, ties to even; infinite beyond its range."""
        try:
            place = self._place(value)
            is_binary = isinstance(value, float)
            steps = math.ldexp(value, -place) if is_binary else value / Fraction(2) ** place
            rounded = math.ldexp(round(steps), place)
        except OverflowError:
            rounded = math.inf if value > 0 else -math.inf
        return rounded if abs(rounded) <= self.max_value else math.copysign(math.inf, rounded)

    def _place(self, value: float | Fraction) -> int:
        """Return the exponent of the step between the numbers of the type at a value."""
        return max(math.frexp(value)[1] - self.bits, self.min_exponent)

    def parse(self, text: str) -> float:
        """Return the number of the type nearest to a decimal or a fraction such as 1/3."""
        value = math.inf if "/" in text else float(text)
        # binary64 may round to the middle of two numbers of the type, which then hides the nearer.
        is_safe = math.isfinite(value) and math.ldexp(value, 1 - self._place(value)) % 2 != 1
        return self.round(value if is_safe else Fraction(text))

    def format(self, value: float) -> str:
        """Return the shortest decimal that `parse` maps to `value`, as JSON."""
        for digits in range(1, 18):
            text = f"{value:.{digits}g}"
            if self.parse(text) == value:
                break
        return text


FLOAT_FORMATS = {
    "float64": FloatFormat(53, -1074, math.ldexp(2 - 2**-52, 1023)),
    "float32": FloatFormat(24, -149, math.ldexp(2 - 2**-23, 127)),
    "bfloat16": FloatFormat(8, -133, math.ldexp(2 - 2**-7, 127)),
}

_BINARY_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": math.pow,
    "//": operator.floordiv,
    "%": operator.mod,
}
_FORM_OPERATORS = {*_BINARY_OPERATIONS, "minimum", "maximum", "copy"}
"""The operators of forms of numbers that have a rule; forms use others for digits."""


class BaselineModel:
    """A calculator with numbers of one floating-point type."""

    def __init__(self, target: ModelTarget) -> None:
        """Raise BadInput for an unknown type."""
        if target.served_name not in FLOAT_FORMATS:
            raise BadInput(
                f"unknown model {target.name!r}: use {join_names(list(PROVIDER.routes), 'or')}"
            )
        self.name = target.name
        self.properties = ModelProperties(display=f"{target.served_name} arithmetic")
        self._format = FLOAT_FORMATS[target.served_name]

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Answer the last question, with null if the type has no answer (overflow, complex).

        The completion has a failure of kind `item` for a text that is not a question, or a
        question with an operator that has no floating-point rule.
        """
        try:
            question = load_prompt_set().parse_question(last_user_message(messages))
            answer = calculate(question, self._format)
        except (ValueError, UnsupportedOperator) as error:
            return failed_completion(Failure(kind="item", message=str(error)))
        return Completion(text=f'{{"answer": {answer}}}', finish_reason="stop")

    async def close(self) -> None:
        """Do nothing: the model holds no resources."""


def has_rule(name: str) -> bool:
    """Return whether a task's questions can be calculated."""
    task = TASKS[name]
    is_known = name in PAPER_TASKS or name in SCALED_TASKS
    if name in FORM_TASKS:
        is_known = {*task.operators} <= _FORM_OPERATORS and task.answer_kind != "fraction"
    is_evaluated = task.operand_format is not None and task.operand_format.evaluate is not None
    return is_known or is_evaluated or task.approximate is not None


def calculate(question: Question, float_format: FloatFormat) -> str:
    """Return the answer to `question` as JSON.

    The bundled tasks have rules here; any other task needs a `Task.approximate` or an
    `OperandFormat.evaluate`.
    Raises UnsupportedOperator if there is no rule for the operator.
    """
    task = TASKS[question.task]
    if not has_rule(task.name):
        raise UnsupportedOperator(
            f"no floating-point rule for {question.operator!r}: the task {question.task} has no "
            "`approximate`"
        )
    result: Approximation
    try:
        if task.operand_format and task.operand_format.evaluate:
            result = _evaluate(task.operand_format.evaluate, question.operands, float_format)
        else:
            values = [float_format.parse(operand) for operand in question.operands]
            if task.approximate is not None:
                result = task.approximate(question.operator, values, float_format.round)
            elif question.operator in _BINARY_OPERATIONS:
                result = _BINARY_OPERATIONS[question.operator](*values)
            else:
                result = _OPERATIONS[question.operator](values, float_format)
        if task.answer_kind == "scientific" and isinstance(result, float):
            return f"{Decimal(float_format.format(float_format.round(result))):e}"
        return _json(result, float_format, in_full=task.sizes is not None)
    except NotImplementedError:
        raise UnsupportedOperator(f"no floating-point rule for {question.operator!r}") from None
    except (OverflowError, ValueError, ZeroDivisionError):
        return "null"


def _evaluate(
    evaluate: Callable[..., float], operands: Sequence[str], float_format: FloatFormat
) -> float:
    """Return the value of an expression, with every result rounded."""

    def operate(symbol: str, a: float, b: float) -> float:
        return float_format.round(_BINARY_OPERATIONS[symbol](a, b))

    return float(evaluate(operands, float_format.parse, operate))


def _json(result: Approximation, float_format: FloatFormat, in_full: bool) -> str:
    """Return an answer as JSON. in_full: all digits of integers, not the shortest decimal."""
    if isinstance(result, str):
        return f'"{result}"'
    if isinstance(result, Sequence):
        return f"[{', '.join(_json(value, float_format, in_full) for value in result)}]"
    value = float_format.round(result)
    if not math.isfinite(value):
        return "null"
    if in_full and value.is_integer():
        return f"{Decimal(value):f}"
    return float_format.format(value)


def _sum(values: Sequence[float], float_format: FloatFormat) -> float:
    return reduce(lambda total, value: float_format.round(total + value), values, 0.0)


def _mean(values: Sequence[float], float_format: FloatFormat) -> float:
    return float_format.round(_sum(values, float_format) / float_format.round(float(len(values))))


def _std(values: Sequence[float], float_format: FloatFormat) -> float:
    mean = _mean(values, float_format)
    deviations = [float_format.round(value - mean) for value in values]
    squares = [float_format.round(deviation * deviation) for deviation in deviations]
    return math.sqrt(_mean(squares, float_format))


def _interval(values: Sequence[float], float_format: FloatFormat) -> str:
    reference, *boundaries = values
    return LETTERS[len(list(takewhile(lambda boundary: reference >= boundary, boundaries)))]


_OPERATIONS: dict[str, Callable[[Sequence[float], FloatFormat], Approximation]] = {
    "interval": _interval,
    # Rounding may have made the numbers equal.
    "larger": lambda values, _: "A" if values[0] >= values[1] else "B",
    "ascending": lambda values, _: sorted(values),
    "descending": lambda values, _: sorted(values, reverse=True),
    "minimum": lambda values, _: min(values),
    "maximum": lambda values, _: max(values),
    "copy": lambda values, _: values[0],
    "sum": _sum,
    "mean": _mean,
    "std": _std,
}
"""The results of operators; `math` raises where there is none."""


PROVIDER = ProviderPlugin(
    name="baseline",
    open_model=BaselineModel,
    examples=tuple(FLOAT_FORMATS),
    in_process=True,
    deterministic=True,
    levels={"none": ReasoningLevel()},
    takes_prompts=False,
)
