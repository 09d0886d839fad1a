"""Scaled tasks: questions of any size, for the horizon of a model (`numbench.horizon`).

The size is the number of digits of the operands, of elements of a list, or of operations. Every
digit of an answer has to be right. The difficulty of a question is its size.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from math import factorial, gcd

from numbench.records import Answer, Difficulty
from numbench.resources import resource_folder
from numbench.tasks import expressions, float_rules
from numbench.tasks.base import (
    AnswerKind,
    Approximation,
    ExpressionFormat,
    SampledQuestion,
    SamplingSettings,
    SizeAxis,
    Task,
    TaskPrompts,
)
from numbench.tasks.long_integers import (
    format_integer,
    parse_integer,
    sample_integer,
    words_of,
)
from numbench.tasks.random_words import RandomWords

SMALLEST_ELEMENT, LARGEST_ELEMENT = 100_000, 999_999
"""The elements of lists have six digits."""

SMALLEST_TERM, LARGEST_TERM = 100, 999
"""The terms of a chain have three digits."""

Operands = Sequence[str]
Sample = Callable[[RandomWords, int], tuple[str, tuple[str, ...]]]
"""Returns operator and operands of a question of a size."""

Approximate = Callable[[str, Sequence[float], Callable[[float], float]], Approximation]


def _pair(words: RandomWords, size: int) -> tuple[str, str]:
    return sample_integer(words, size), sample_integer(words, size)


def _sample_division(words: RandomWords, size: int) -> tuple[str, tuple[str, ...]]:
    quotient, divisor = _pair(words, size)
    return "/", (format_integer(parse_integer(quotient) * parse_integer(divisor)), divisor)


def _sample_comparison(words: RandomWords, size: int) -> tuple[str, tuple[str, ...]]:
    """Draw a number, and the same number with another digit at one position, in either order."""
    first = sample_integer(words, size)
    position = words.randbelow(size)
    # The first digit is not 0.
    choices = [d for d in "0123456789"[position == 0 :] if d != first[position]]
    digit = choices[words.randbelow(len(choices))]
    second = first[:position] + digit + first[position + 1 :]
    return "larger", (second, first) if words.randbelow(2) else (first, second)


def _sample_elements(words: RandomWords, size: int) -> tuple[str, ...]:
    return tuple(str(words.randint(SMALLEST_ELEMENT, LARGEST_ELEMENT)) for _ in range(size))


def _sample_sorting(words: RandomWords, size: int) -> tuple[str, tuple[str, ...]]:
    operator = ("ascending", "descending")[words.randbelow(2)]
    return operator, _sample_elements(words, size)


def _sample_mean(words: RandomWords, size: int) -> tuple[str, tuple[str, ...]]:
    """Draw a list whose mean has at most one decimal; its last element makes it so."""
    *others, last = map(int, _sample_elements(words, size))
    step = size // gcd(size, 10)
    last -= (sum(others) + last) % step
    if last < SMALLEST_ELEMENT:
        last += step
    return "mean", (*map(str, others), str(last))


def _sample_chain(words: RandomWords, size: int) -> tuple[str, tuple[str, ...]]:
    terms = [words.randint(SMALLEST_TERM, LARGEST_TERM) for _ in range(size + 1)]
    signs = ["", *(("", "-")[words.randbelow(2)] for _ in range(size))]
    return "chain", tuple(f"{sign}{term}" for sign, term in zip(signs, terms, strict=True))


def _arithmetic(operator: str, operands: Operands) -> str:
    a, b = map(parse_integer, operands)
    if operator == "/":
        quotient, remainder = divmod(a, b)
        if remainder:
            raise ValueError("the quotient is not an integer")
        return format_integer(quotient)
    return format_integer({"+": a + b, "-": a - b, "*": a * b}[operator])


def _sorted(operator: str, operands: Operands) -> tuple[str, ...]:
    return tuple(sorted(operands, key=parse_integer, reverse=operator == "descending"))


def _mean(operands: Operands) -> str:
    """Return the mean. Raises ValueError if it has more than one decimal."""
    tenths, remainder = divmod(10 * sum(map(parse_integer, operands)), len(operands))
    if remainder:
        raise ValueError("the mean has more than one decimal")
    whole, tenth = divmod(abs(tenths), 10)
    return f"{'-' if tenths < 0 else ''}{whole}{f'.{tenth}' if tenth else ''}"


@cache
def _templates() -> dict[str, dict[str, str]]:
    path = resource_folder("prompts") / "scaled" / "questions.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def _system_prompt(name: str) -> str:
    path = resource_folder("prompts") / "scaled" / "system" / f"{name}.txt"
    return path.read_text(encoding="utf-8").rstrip("\n")


def _scaled_task(
    name: str,
    display: str,
    operators: tuple[str, ...],
    sample: Sample,
    exact_answer: Callable[[str, Operands], Answer],
    size_of: Callable[[Operands], int],
    sizes: SizeAxis,
    system: str = "integer",
    answer_kind: AnswerKind = "number",
    chance_accuracy: Callable[[int], float] = lambda _operands: 0.0,
    expression: ExpressionFormat | None = None,
    approximate: Approximate | None = None,
) -> Task:
    """Return a scaled task. size_of: the size of a question from its operands."""

    def sample_question(words: RandomWords, settings: SamplingSettings) -> SampledQuestion:
        assert settings.question_size is not None
        operator, operands = sample(words, settings.question_size)
        return SampledQuestion(operator, operands, {"size": settings.question_size})

    def difficulty(_operator: str, operands: Operands, _answer: Answer) -> Difficulty:
        return Difficulty(size_of(operands), size_of(operands))

    return Task(
        name=name,
        display=display,
        operators=operators,
        sample=sample_question,
        exact_answer=exact_answer,
        prompts=TaskPrompts(_system_prompt(system), _templates()[name]),
        answer_kind=answer_kind,
        metric="exact_match",
        difficulty=difficulty,
        chance_accuracy=chance_accuracy,
        sizes=sizes,
        every_digit=answer_kind == "number",
        expression=expression,
        approximate=approximate,
    )


def _of_digits(answer_characters: Callable[[int], int], words: int = 2) -> SizeAxis:
    """Return the axis of numbers with a size in digits. words: random numbers per question."""
    return SizeAxis("digits", lambda n: words * words_of(n), answer_characters, lambda _n: 2)


def _of_elements(answer_characters: Callable[[int], int], words: int = 0) -> SizeAxis:
    """Return the axis of lists. words: random words in addition to one per element."""
    return SizeAxis("elements", lambda n: n + words, answer_characters, lambda n: n, minimum=2)


def _digits_of_last(operands: Operands) -> int:
    return len(operands[-1])


LONG_ADDITION = _scaled_task(
    "long_addition",
    "Long add",
    ("+",),
    lambda words, size: ("+", _pair(words, size)),
    _arithmetic,
    _digits_of_last,
    _of_digits(lambda n: n + 1),
    approximate=float_rules.operation,
)

LONG_SUBTRACTION = _scaled_task(
    "long_subtraction",
    "Long sub",
    ("-",),
    lambda words, size: ("-", _pair(words, size)),
    _arithmetic,
    _digits_of_last,
    _of_digits(lambda n: n + 1),
    approximate=float_rules.operation,
)

LONG_MULTIPLICATION = _scaled_task(
    "long_multiplication",
    "Long mult",
    ("*",),
    lambda words, size: ("*", _pair(words, size)),
    _arithmetic,
    _digits_of_last,
    _of_digits(lambda n: 2 * n),
    approximate=float_rules.operation,
)

LONG_DIVISION = _scaled_task(
    "long_division",
    "Long div",
    ("/",),
    _sample_division,
    _arithmetic,
    _digits_of_last,
    _of_digits(lambda n: n),
    approximate=float_rules.operation,
)

LONG_COMPARISON = _scaled_task(
    "long_comparison",
    "Comparison",
    ("larger",),
    _sample_comparison,
    lambda _operator, operands: "AB"[parse_integer(operands[0]) < parse_integer(operands[1])],
    _digits_of_last,
    SizeAxis("digits", lambda n: words_of(n) + 3, lambda _n: 1, lambda _n: 2),
    system="letter",
    answer_kind="letter",
    chance_accuracy=lambda _operands: 0.5,
    approximate=float_rules.larger,
)

LONG_SORTING = _scaled_task(
    "long_sorting",
    "Long sort",
    ("ascending", "descending"),
    _sample_sorting,
    _sorted,
    len,
    _of_elements(lambda n: 8 * n, words=1),
    system="list",
    answer_kind="list",
    chance_accuracy=lambda operands: 1 / factorial(operands) if operands < 20 else 0.0,
    approximate=float_rules.sort,
)

LONG_MAX = _scaled_task(
    "long_max",
    "Long max",
    ("maximum",),
    lambda words, size: ("maximum", _sample_elements(words, size)),
    lambda _operator, operands: max(operands, key=parse_integer),
    len,
    _of_elements(lambda _n: 6),
    chance_accuracy=lambda operands: 1 / operands,
    approximate=float_rules.maximum,
)

LONG_SUM = _scaled_task(
    "long_sum",
    "Long sum",
    ("sum",),
    lambda words, size: ("sum", _sample_elements(words, size)),
    lambda _operator, operands: format_integer(sum(map(parse_integer, operands))),
    len,
    _of_elements(lambda n: 6 + len(str(n))),
    approximate=float_rules.total,
)

LONG_MEAN = _scaled_task(
    "long_mean",
    "Long mean",
    ("mean",),
    _sample_mean,
    lambda _operator, operands: _mean(operands),
    len,
    _of_elements(lambda _n: 8),
    system="decimal",
    approximate=float_rules.mean,
)

CHAIN = _scaled_task(
    "chain",
    "Chain",
    ("chain",),
    _sample_chain,
    lambda _operator, operands: expressions.sum_of_terms(operands),
    lambda operands: len(operands) - 1,
    SizeAxis("operations", lambda n: 2 * n + 1, lambda n: 4 + len(str(n + 1)), lambda n: n + 1),
    expression=ExpressionFormat(
        expressions.format_terms, expressions.parse_terms, expressions.evaluate_terms
    ),
)

NESTED = _scaled_task(
    "nested",
    "Nested",
    ("nested",),
    lambda words, size: ("nested", expressions.sample_nested(words, size)),
    lambda _operator, operands: expressions.value_of_nested(operands),
    lambda operands: len(operands) - 2,
    SizeAxis("operations", expressions.words_of_nested, lambda _n: 4, lambda n: n + 2),
    expression=ExpressionFormat(
        expressions.format_nested, expressions.parse_nested, expressions.evaluate_nested
    ),
)

COPY = _scaled_task(
    "copy",
    "Copy",
    ("copy",),
    lambda words, size: ("copy", (sample_integer(words, size),)),
    lambda _operator, operands: operands[0],
    _digits_of_last,
    _of_digits(lambda n: n, words=1),
    approximate=float_rules.identity,
)

SCALED_TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        LONG_ADDITION,
        LONG_SUBTRACTION,
        LONG_MULTIPLICATION,
        LONG_DIVISION,
        LONG_COMPARISON,
        LONG_SORTING,
        LONG_MAX,
        LONG_SUM,
        LONG_MEAN,
        CHAIN,
        NESTED,
        COPY,
    )
}
"""The scaled tasks by name. `copy` is the control: reading and writing digits without computing."""
