"""Expressions with many operations: sums of signed terms, and nested binary operations.

Operands are integers in plain notation. A sum of terms has the terms with their signs. A nested
expression has its numbers from left to right, then one integer that encodes its structure: the
digits of its nodes in prefix order, 0 for a number, 1 for `+`, 2 for `-` and 3 for `*`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from numbench.tasks.random_words import RandomWords

MAX_MAGNITUDE = 999
"""The largest absolute value of any part of a nested expression."""

T = TypeVar("T")

_OPERATORS = "+-*"
_CODES = {operator: str(code) for code, operator in enumerate(_OPERATORS, 1)}
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
_TERM = re.compile(r"(-?)(\d+)")
_TOKEN = re.compile(r"\s*(\d+|[-+*()])")


def format_terms(operands: Sequence[str]) -> str:
    """Return the sum of signed terms as text: `123 - 456 + 789`.

    Raises ValueError for an operand that is not an integer.
    """
    parts = []
    for index, operand in enumerate(operands):
        match = _TERM.fullmatch(operand)
        if match is None:
            raise ValueError(f"{operand[:40]!r} is not an integer")
        sign = match[1] or "+"
        parts.append(match[0] if index == 0 else f"{sign} {match[2]}")
    return " ".join(parts)


def parse_terms(text: str) -> tuple[str, ...]:
    """Return the operands of a sum of terms. Raises ValueError for other text."""
    first, *rest = re.split(r" (?=[-+] )", text)
    operands = (first, *(part.removeprefix("+ ").replace("- ", "-", 1) for part in rest))
    if format_terms(operands) != text:
        raise ValueError(f"{text[:40]!r} is not a sum of integers")
    return operands


def evaluate_terms(
    operands: Sequence[str], number: Callable[[str], T], operate: Callable[[str, T, T], T]
) -> T:
    """Return the value of a sum of terms in any arithmetic, added from left to right."""
    value = number(operands[0])
    for operand in operands[1:]:
        operator = "-" if operand.startswith("-") else "+"
        value = operate(operator, value, number(operand.removeprefix("-")))
    return value


def sum_of_terms(operands: Sequence[str]) -> str:
    """Return the value of a sum of terms."""
    return str(sum(map(int, operands)))


def words_of_nested(operations: int) -> int:
    """Return the number of random words that `sample_nested` uses."""
    return 3 * operations + 1


def sample_nested(words: RandomWords, operations: int) -> tuple[str, ...]:
    """Return the operands of an expression of the numbers 1 … 9.

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
        results = {operator: apply(left, right) for operator, apply in _OPERATIONS.items()}
        allowed = [name for name, value in results.items() if abs(value) <= MAX_MAGNITUDE]
        operator = allowed[words.randbelow(len(allowed))]
        codes[position] = _CODES[operator]
        return results[operator]

    sample(operations)
    return (*numbers, "".join(codes))


def format_nested(operands: Sequence[str]) -> str:
    """Return a nested expression, in parentheses except for the outermost operation."""
    return evaluate_nested(operands, str, lambda operator, a, b: f"({a} {operator} {b})")[1:-1]


def value_of_nested(operands: Sequence[str]) -> str:
    """Return the value of a nested expression."""
    return str(evaluate_nested(operands, int, lambda operator, a, b: _OPERATIONS[operator](a, b)))


def parse_nested(text: str) -> tuple[str, ...]:
    """Return the operands of a nested expression. Raises ValueError for other text."""
    numbers: list[str] = []
    stack: list[str] = []
    for match in _TOKEN.finditer(f"({text})"):
        token = match[1]
        if token.isdigit():
            numbers.append(token)
            stack.append("0")
        elif token != ")":
            stack.append(token)
        elif len(stack) < 4 or stack[-4] != "(" or stack[-2] not in _CODES:
            break
        else:
            left, operator, right = stack[-3:]
            stack[-4:] = [_CODES[operator] + left + right]
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
    *numbers, structure = operands
    stack: list[T] = []
    rest = list(numbers)
    # From the right, the operands of an operation are on the stack before it.
    for code in reversed(structure):
        if code == "0" and rest:
            stack.append(number(rest.pop()))
        elif code in "123" and len(stack) > 1:
            left, right = stack.pop(), stack.pop()
            stack.append(operate(_OPERATORS[int(code) - 1], left, right))
        else:
            raise ValueError(f"{structure[:40]!r} is not the structure of an expression")
    if len(stack) != 1 or rest:
        raise ValueError(f"{structure[:40]!r} is not the structure of {len(numbers)} numbers")
    return stack[0]
