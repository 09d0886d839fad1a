"""Scaled tasks: questions of any size, for the horizon of a model (`numbench.horizon`).

The size is the number of digits of the operands, of elements of a list, or of operations. Every
digit of an answer has to be right. The difficulty of a question is its size.
"""

from __future__ import annotations

import operator as op
import re
import tomllib
from collections.abc import Callable, Sequence
from decimal import Decimal
from math import factorial, gcd
from typing import Any

from numbench.records import Answer, Difficulty
from numbench.resources import resource_folder
from numbench.tasks import expressions
from numbench.tasks.base import (
    ExpressionFormat,
    SampledQuestion,
    SamplingSettings,
    SizeAxis,
    Task,
    TaskPrompts,
)
from numbench.tasks.random_words import RandomWords

SMALLEST_ELEMENT, LARGEST_ELEMENT = 100_000, 999_999
"""The elements of lists have six digits."""

SMALLEST_TERM, LARGEST_TERM = 100, 999
"""The terms of a chain have three digits."""

_DIGITS_PER_WORD = 9
_INTEGER = re.compile(r"-?[0-9]+")

Operands = Sequence[str]
Values = Sequence[float]
Round = Callable[[float], float]


# Python refuses to convert integers of more than 4,300 digits to text and back; Decimal does it.
def parse_integer(text: str) -> int:
    """Return the value of an integer in plain notation. Raises ValueError for other text."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not an integer")
    return int(Decimal(text))


def format_integer(value: int) -> str:
    """Return the digits of an integer."""
    return str(Decimal(value))


def _words_of(digits: int) -> int:
    """Return the number of random words of an integer."""
    return 1 + -(-(digits - 1) // _DIGITS_PER_WORD)


def _sample_integer(words: RandomWords, digits: int) -> str:
    """Return an integer uniform on {10^(digits−1) … 10^digits − 1}."""
    first = str(words.randint(1, 9))
    rest = "".join(
        f"{words.randbelow(10**_DIGITS_PER_WORD):0{_DIGITS_PER_WORD}}"
        for _ in range(_words_of(digits) - 1)
    )
    return first + rest[: digits - 1]


def _sample_pair(words: RandomWords, size: int) -> tuple[str, ...]:
    return _sample_integer(words, size), _sample_integer(words, size)


def _sample_division(words: RandomWords, size: int) -> tuple[str, ...]:
    quotient, divisor = _sample_pair(words, size)
    return format_integer(parse_integer(quotient) * parse_integer(divisor)), divisor


def _sample_comparison(words: RandomWords, size: int) -> tuple[str, ...]:
    """Draw a number, and the same number with another digit at one position, in either order."""
    first = _sample_integer(words, size)
    position = words.randbelow(size)
    # The first digit is not 0.
    choices = [d for d in "0123456789"[position == 0 :] if d != first[position]]
    digit = choices[words.randbelow(len(choices))]
    second = first[:position] + digit + first[position + 1 :]
    return (second, first) if words.randbelow(2) else (first, second)


def _sample_elements(words: RandomWords, size: int) -> tuple[str, ...]:
    return tuple(str(words.randint(SMALLEST_ELEMENT, LARGEST_ELEMENT)) for _ in range(size))


def _sample_mean(words: RandomWords, size: int) -> tuple[str, ...]:
    """Draw a list whose mean has at most one decimal; its last element makes it so."""
    *others, last = map(int, _sample_elements(words, size))
    step = size // gcd(size, 10)
    last -= (sum(others) + last) % step
    if last < SMALLEST_ELEMENT:
        last += step
    return (*map(str, others), str(last))


def _sample_chain(words: RandomWords, size: int) -> tuple[str, ...]:
    terms = [words.randint(SMALLEST_TERM, LARGEST_TERM) for _ in range(size + 1)]
    signs = ["", *(("", "-")[words.randbelow(2)] for _ in range(size))]
    return tuple(f"{sign}{term}" for sign, term in zip(signs, terms, strict=True))


def _arithmetic(operator: str, operands: Operands) -> str:
    a, b = map(parse_integer, operands)
    if operator == "/":
        quotient, remainder = divmod(a, b)
        if remainder:
            raise ValueError("the quotient is not an integer")
        return format_integer(quotient)
    return format_integer({"+": op.add, "-": op.sub, "*": op.mul}[operator](a, b))


def _mean(_operator: str, operands: Operands) -> str:
    """Return the mean. Raises ValueError if it has more than one decimal."""
    tenths, remainder = divmod(10 * sum(map(parse_integer, operands)), len(operands))
    if remainder:
        raise ValueError("the mean has more than one decimal")
    whole, tenth = divmod(abs(tenths), 10)
    return f"{'-' if tenths < 0 else ''}{whole}{f'.{tenth}' if tenth else ''}"


# The answers in floating-point arithmetic (`Task.approximate`): operands are rounded before,
# results after; a rule rounds the results of every operation between.
def _float_operation(operator: str, values: Values, round_: Round) -> float:
    a, b = values
    operations = {"+": op.add, "-": op.sub, "*": op.mul, "/": op.truediv}
    return round_(operations[operator](a, b))


def _float_sum(_operator: str, values: Values, round_: Round) -> float:
    """Return the sum, added from left to right."""
    result = 0.0
    for value in values:
        result = round_(result + value)
    return result


def _float_mean(operator: str, values: Values, round_: Round) -> float:
    return round_(_float_sum(operator, values, round_) / round_(float(len(values))))


def _digits(answer_characters: Callable[[int], int], numbers: int = 2, words: int = 0) -> SizeAxis:
    """Return the axis of numbers with a size in digits: random numbers, and further words."""
    return SizeAxis(
        "digits", lambda n: numbers * _words_of(n) + words, answer_characters, lambda _n: 2
    )


def _elements(answer_characters: Callable[[int], int], words: int = 0) -> SizeAxis:
    """Return the axis of lists. words: random words in addition to one per element."""
    return SizeAxis("elements", lambda n: n + words, answer_characters, lambda n: n, minimum=2)


def _last_digits(operands: Operands) -> int:
    return len(operands[-1])


_FOLDER = resource_folder("prompts") / "scaled"
_TEMPLATES = tomllib.loads((_FOLDER / "questions.toml").read_text(encoding="utf-8"))


def _task(
    name: str,
    display: str,
    operators: tuple[str, ...],
    sample_operands: Callable[[RandomWords, int], tuple[str, ...]],
    exact_answer: Callable[[str, Operands], Answer],
    size_of: Callable[[Operands], int],
    sizes: SizeAxis,
    system: str = "integer",
    answer_kind: Any = "number",
    **fields: Any,
) -> Task:
    """Return a scaled task. size_of: the size of a question from its operands."""

    def sample(words: RandomWords, settings: SamplingSettings) -> SampledQuestion:
        size = settings.question_size
        assert size is not None
        operator = operators[words.randbelow(2)] if len(operators) > 1 else operators[0]
        return SampledQuestion(operator, sample_operands(words, size), {"size": size})

    def difficulty(_operator: str, operands: Operands, _answer: Answer) -> Difficulty:
        return Difficulty(size_of(operands), size_of(operands))

    system_prompt = (_FOLDER / "system" / f"{system}.txt").read_text(encoding="utf-8")
    return Task(
        name=name,
        display=display,
        operators=operators,
        sample=sample,
        exact_answer=exact_answer,
        prompts=TaskPrompts(system_prompt.rstrip("\n"), _TEMPLATES[name]),
        answer_kind=answer_kind,
        metric="exact_match",
        difficulty=difficulty,
        sizes=sizes,
        every_digit=answer_kind == "number",
        **fields,
    )


SCALED_TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _task(
            "long_addition", "Long add", ("+",), _sample_pair, _arithmetic, _last_digits,
            _digits(lambda n: n + 1), approximate=_float_operation,
        ),
        _task(
            "long_subtraction", "Long sub", ("-",), _sample_pair, _arithmetic, _last_digits,
            _digits(lambda n: n + 1), approximate=_float_operation,
        ),
        _task(
            "long_multiplication", "Long mult", ("*",), _sample_pair, _arithmetic, _last_digits,
            _digits(lambda n: 2 * n), approximate=_float_operation,
        ),
        _task(
            "long_division", "Long div", ("/",), _sample_division, _arithmetic, _last_digits,
            _digits(lambda n: n), approximate=_float_operation,
        ),
        _task(
            "long_comparison", "Comparison", ("larger",), _sample_comparison,
            lambda _operator, pair: "AB"[parse_integer(pair[0]) < parse_integer(pair[1])],
            _last_digits, _digits(lambda _n: 1, numbers=1, words=3), "letter", "letter",
            # Rounding may have made the numbers equal.
            approximate=lambda _operator, values, _round: "A" if values[0] >= values[1] else "B",
            chance_accuracy=lambda _operands: 0.5,
        ),
        _task(
            "long_sorting", "Long sort", ("ascending", "descending"), _sample_elements,
            lambda operator, operands: tuple(
                sorted(operands, key=parse_integer, reverse=operator == "descending")
            ),
            len, _elements(lambda n: 8 * n, words=1), "list", "list",
            approximate=lambda operator, values, _round: sorted(
                values, reverse=operator == "descending"
            ),
            chance_accuracy=lambda operands: 1 / factorial(operands) if operands < 20 else 0.0,
        ),
        _task(
            "long_max", "Long max", ("maximum",), _sample_elements,
            lambda _operator, operands: max(operands, key=parse_integer), len,
            _elements(lambda _n: 6), approximate=lambda _operator, values, _round: max(values),
            chance_accuracy=lambda operands: 1 / operands,
        ),
        _task(
            "long_sum", "Long sum", ("sum",), _sample_elements,
            lambda _operator, operands: format_integer(sum(map(parse_integer, operands))), len,
            _elements(lambda n: 6 + len(str(n))), approximate=_float_sum,
        ),
        _task(
            "long_mean", "Long mean", ("mean",), _sample_mean, _mean, len,
            _elements(lambda _n: 8), "decimal", approximate=_float_mean,
        ),
        _task(
            "chain", "Chain", ("chain",), _sample_chain,
            lambda _operator, operands: str(sum(map(int, operands))),
            lambda operands: len(operands) - 1,
            SizeAxis(
                "operations", lambda n: 2 * n + 1, lambda n: 4 + len(str(n + 1)), lambda n: n + 1
            ),
            expression=ExpressionFormat(
                expressions.format_terms, expressions.parse_terms, expressions.evaluate_terms
            ),
        ),
        _task(
            "nested", "Nested", ("nested",), expressions.sample_nested,
            lambda _operator, operands: expressions.value_of_nested(operands),
            lambda operands: len(operands) - 2,
            SizeAxis("operations", lambda n: 3 * n + 1, lambda _n: 4, lambda n: n + 2),
            expression=ExpressionFormat(
                expressions.format_nested, expressions.parse_nested, expressions.evaluate_nested
            ),
        ),
        _task(
            "copy", "Copy", ("copy",), lambda words, size: (_sample_integer(words, size),),
            lambda _operator, operands: operands[0], _last_digits,
            _digits(lambda n: n, numbers=1),
            approximate=lambda _operator, values, _round: values[0],
        ),
    )
}  # fmt: skip
"""The scaled tasks by name. `copy` is the control: reading and writing digits without computing."""
