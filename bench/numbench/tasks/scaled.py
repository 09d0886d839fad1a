"""Scaled tasks: questions of any size, for the horizon of a model (`numbench.horizon`).

The size is the number of digits of the operands, of elements of a list, or of operations. Every
digit of an answer has to be right. The difficulty of a question is its size.
"""

from __future__ import annotations

import operator as op
import re
from collections.abc import Callable, Sequence
from math import factorial, gcd
from typing import Any, TypeVar

from numbench.core.installation import read_toml, resource_folder
from numbench.records import Answer, Difficulty
from numbench.tasks.base import (
    OperandFormat,
    SampledQuestion,
    SamplingSettings,
    SizeAxis,
    Task,
    TaskPrompts,
)
from numbench.tasks.exact_arithmetic import evaluate_in_full, to_decimal
from numbench.tasks.paper_tasks import extremum, ordered
from numbench.tasks.random_words import RandomWords

SMALLEST_ELEMENT, LARGEST_ELEMENT = 100_000, 999_999
"""The elements of lists have six digits."""

SMALLEST_TERM, LARGEST_TERM = 100, 999
"""The terms of a chain have three digits."""

MAX_MAGNITUDE = 999
"""The largest absolute value of any part of a nested expression."""

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {"+": op.add, "-": op.sub, "*": op.mul}
_CODES = {sign: str(code) for code, sign in enumerate(OPERATIONS, 1)}
_SIGNS = {code: sign for sign, code in _CODES.items()}
_TOKEN = re.compile(r"\s*(\d+|[-+*()])")

_DIGITS_PER_WORD = 9

T = TypeVar("T")

Operands = Sequence[str]


def words_of(digits: int) -> int:
    """Return the number of random words of an integer."""
    return 1 + -(-(digits - 1) // _DIGITS_PER_WORD)


def sample_integer(words: RandomWords, digits: int) -> str:
    """Return an integer uniform on {10^(digits−1) … 10^digits − 1}."""
    first = str(words.randint(1, 9))
    rest = "".join(
        f"{words.randbelow(10**_DIGITS_PER_WORD):0{_DIGITS_PER_WORD}}"
        for _ in range(words_of(digits) - 1)
    )
    return first + rest[: digits - 1]


def sample_pair(words: RandomWords, size: int) -> tuple[str, ...]:
    return sample_integer(words, size), sample_integer(words, size)


def _sample_division(words: RandomWords, size: int) -> tuple[str, ...]:
    quotient, divisor = sample_pair(words, size)
    return evaluate_in_full("*", (quotient, divisor)), divisor


def sample_comparison(words: RandomWords, size: int) -> tuple[str, ...]:
    """Draw a number, and the same number with another digit at one position, in either order."""
    first = sample_integer(words, size)
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


# Operands of expressions are integers in plain notation: the terms with their signs, or the
# numbers of a nested expression from left to right, then one integer that encodes its structure:
# the digits of its nodes in prefix order, 0 for a number, 1 for `+`, 2 for `-` and 3 for `*`.
def format_terms(operands: Sequence[str]) -> str:
    """Return the sum of signed terms as text: `123 - 456 + 789`."""
    return re.sub(r" (?=\d)", " + ", " ".join(operands)).replace(" -", " - ")


def parse_terms(text: str) -> tuple[str, ...]:
    """Return the operands of a sum of terms."""
    return tuple(text.replace(" - ", " -").replace(" + ", " ").split(" "))


def evaluate_terms(
    operands: Sequence[str], number: Callable[[str], T], operate: Callable[[str, T, T], T]
) -> T:
    """Return the value of a sum of terms in any arithmetic, added from left to right."""
    value = number(operands[0])
    for operand in operands[1:]:
        sign = "-" if operand.startswith("-") else "+"
        value = operate(sign, value, number(operand.removeprefix("-")))
    return value


def _sample_nested(words: RandomWords, operations: int) -> tuple[str, ...]:
    """Return the operands of an expression of the numbers 1 … 9. Uses 3 · operations + 1 words.

    At every operation, the numbers of operations left and right of it are uniform, and the
    operator is uniform among those whose result is at most MAX_MAGNITUDE in absolute value.
    """
    numbers: list[str] = []
    codes: list[str] = []

    def sample(count: int) -> int:
        if not count:
            number = words.randint(1, 9)
            numbers.append(str(number))
            codes.append("0")
            return number
        position = len(codes)
        codes.append("")
        on_the_left = words.randbelow(count)
        left, right = sample(on_the_left), sample(count - 1 - on_the_left)
        results: dict[str, int] = {sign: apply(left, right) for sign, apply in OPERATIONS.items()}
        allowed = [sign for sign, value in results.items() if abs(value) <= MAX_MAGNITUDE]
        chosen = allowed[words.randbelow(len(allowed))]
        codes[position] = _CODES[chosen]
        return results[chosen]

    sample(operations)
    return (*numbers, "".join(codes))


def format_nested(operands: Sequence[str]) -> str:
    """Return a nested expression, in parentheses except for the outermost operation."""
    return evaluate_nested(operands, str, lambda sign, a, b: f"({a} {sign} {b})")[1:-1]


def parse_nested(text: str) -> tuple[str, ...]:
    """Return the operands of a nested expression. Raises ValueError for other text."""
    numbers: list[str] = []
    stack: list[str] = []
    for token in _TOKEN.findall(f"({text})"):
        if token.isdigit():
            numbers.append(token)
            stack.append("0")
        elif token != ")":
            stack.append(token)
        elif len(stack) < 4 or stack[-4] != "(" or stack[-2] not in _CODES:
            break
        else:
            left, sign, right = stack[-3:]
            stack[-4:] = [_CODES[sign] + left + right]
    operands = (*numbers, stack[0] if stack else "")
    if len(stack) != 1 or not stack[0].isdigit() or format_nested(operands) != text:
        raise ValueError(f"{text[:40]!r} is not a nested expression")
    return operands


def evaluate_nested(
    operands: Sequence[str], number: Callable[[str], T], operate: Callable[[str, T, T], T]
) -> T:
    """Return the value of a nested expression in any arithmetic.

    Raises ValueError if the operands are not those of an expression.
    """
    *rest, structure = operands
    stack: list[T] = []
    # From the right, the operands of an operation are on the stack before it.
    for code in reversed(structure):
        if code == "0" and rest:
            stack.append(number(rest.pop()))
        elif code in _SIGNS and len(stack) > 1:
            left, right = stack.pop(), stack.pop()
            stack.append(operate(_SIGNS[code], left, right))
        else:
            stack.clear()
            break
    if len(stack) != 1 or rest:
        raise ValueError(f"{structure[:40]!r} is not the structure of such an expression")
    return stack[0]


def _expression(
    format_: Callable[[Sequence[str]], str], parse: Callable[[str], tuple[str, ...]], evaluate: Any
) -> OperandFormat:
    """Return how the operands are written as one expression."""
    return OperandFormat(
        lambda _operator, operands: {"expression": format_(operands)},
        lambda _operator, fields: parse(fields["expression"]),
        evaluate,
    )


def _digits(answer_characters: Callable[[int], int], numbers: int = 2, words: int = 0) -> SizeAxis:
    """Return the axis of numbers with a size in digits: random numbers, and further words."""
    return SizeAxis(
        "digits",
        lambda n: numbers * words_of(n) + words,
        answer_characters,
        lambda operands: len(operands[-1]),
    )


def _elements(answer_characters: Callable[[int], int], words: int = 0) -> SizeAxis:
    """Return the axis of lists. words: random words in addition to one per element."""
    return SizeAxis("elements", lambda n: n + words, answer_characters, len, minimum=2)


_FOLDER = resource_folder("prompts") / "scaled"
QUESTIONS = read_toml(_FOLDER / "questions.toml")


def scaled_task(
    name: str,
    display: str,
    sample_operands: Callable[[RandomWords, int], tuple[str, ...] | None],
    sizes: SizeAxis,
    system: str = "integer",
    answer_kind: Any = "number",
    exact_answer: Callable[[str, Operands], Answer] = evaluate_in_full,
    **fields: Any,
) -> Task:
    """Return a scaled task, whose operators and wordings are in `questions.toml`."""
    questions = QUESTIONS[name]
    operators = tuple(questions)

    def sample(words: RandomWords, settings: SamplingSettings) -> SampledQuestion | None:
        size = settings.question_size
        assert isinstance(size, int)
        choice = words.randbelow(len(operators)) if len(operators) > 1 else 0
        operands = sample_operands(words, size)
        return SampledQuestion(operators[choice], operands, {"size": size}) if operands else None

    def difficulty(_operator: str, operands: Operands, _answer: Answer) -> Difficulty:
        return Difficulty(sizes.size_of(operands), sizes.size_of(operands))

    system_prompt = (_FOLDER / "system" / f"{system}.txt").read_text(encoding="utf-8")
    return Task(
        name=name,
        display=display,
        operators=operators,
        sample=sample,
        exact_answer=exact_answer,
        prompts=TaskPrompts(system_prompt.rstrip("\n"), questions),
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
        scaled_task("long_addition", "Long add", sample_pair, _digits(lambda n: n + 1)),
        scaled_task("long_subtraction", "Long sub", sample_pair, _digits(lambda n: n + 1)),
        scaled_task("long_multiplication", "Long mult", sample_pair, _digits(lambda n: 2 * n)),
        scaled_task("long_division", "Long div", _sample_division, _digits(lambda n: n)),
        scaled_task(
            "long_comparison", "Comparison", sample_comparison,
            _digits(lambda _n: 1, numbers=1, words=3), "letter", "letter",
            lambda _operator, pair: "AB"[to_decimal(pair[0]) < to_decimal(pair[1])],
            chance_accuracy=lambda _size: 0.5,
        ),
        scaled_task(
            "long_sorting", "Long sort", _sample_elements,
            _elements(lambda n: 8 * n, words=1), "list", "list", ordered,
            chance_accuracy=lambda size: 1 / factorial(size) if size < 20 else 0.0,
        ),
        scaled_task(
            "long_max", "Long max", _sample_elements, _elements(lambda _n: 6),
            exact_answer=extremum, chance_accuracy=lambda size: 1 / size,
        ),
        scaled_task("long_sum", "Long sum", _sample_elements, _elements(lambda n: 6 + len(str(n)))),
        scaled_task("long_mean", "Long mean", _sample_mean, _elements(lambda _n: 8), "decimal"),
        scaled_task(
            "chain", "Chain", _sample_chain,
            SizeAxis(
                "operations", lambda n: 2 * n + 1, lambda n: 4 + len(str(n + 1)),
                lambda operands: len(operands) - 1,
            ),
            exact_answer=lambda _operator, operands: str(sum(map(int, operands))),
            operand_format=_expression(format_terms, parse_terms, evaluate_terms),
        ),
        scaled_task(
            "nested", "Nested", _sample_nested,
            SizeAxis(
                "operations", lambda n: 3 * n + 1, lambda _n: 4,
                lambda operands: len(operands) - 2,
            ),
            exact_answer=lambda _operator, operands: str(
                evaluate_nested(operands, int, lambda sign, a, b: OPERATIONS[sign](a, b))
            ),
            operand_format=_expression(format_nested, parse_nested, evaluate_nested),
        ),
        scaled_task(
            "copy", "Copy", lambda words, size: (sample_integer(words, size),),
            _digits(lambda n: n, numbers=1),
            exact_answer=lambda _operator, operands: operands[0],
        ),
    )
}  # fmt: skip
"""The scaled tasks by name. `copy` is the control: reading and writing digits without computing."""
