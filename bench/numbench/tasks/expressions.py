"""Expressions with many operations: sums of signed terms, and nested binary operations.

Operands are integers in plain notation. A sum of terms has the terms with their signs. A nested
expression has its numbers from left to right, then one integer that encodes its structure: the
digits of its nodes in prefix order, 0 for a number, 1 for `+`, 2 for `-` and 3 for `*`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from numbench.tasks.random_words import RandomWords

MAX_MAGNITUDE = 999
"""The largest absolute value of any part of a nested expression."""

T = TypeVar("T")

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_CODES = {sign: str(code) for code, sign in enumerate(_OPERATIONS, 1)}
_SIGNS = {code: sign for sign, code in _CODES.items()}
_TERM = re.compile(r"(-?)(\d+)")
_TOKEN = re.compile(r"\s*(\d+|[-+*()])")


def format_terms(operands: Sequence[str]) -> str:
    """Return the sum of signed terms as text: `123 - 456 + 789`.

    Raises ValueError for an operand that is not an integer.
    """
    parts: list[str] = []
    for operand in operands:
        match = _TERM.fullmatch(operand)
        if match is None:
            raise ValueError(f"{operand[:40]!r} is not an integer")
        parts.append(f"{match[1] or '+'} {match[2]}" if parts else operand)
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
        sign = "-" if operand.startswith("-") else "+"
        value = operate(sign, value, number(operand.removeprefix("-")))
    return value


def sample_nested(words: RandomWords, operations: int) -> tuple[str, ...]:
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
        results = {sign: apply(left, right) for sign, apply in _OPERATIONS.items()}
        allowed = [sign for sign, value in results.items() if abs(value) <= MAX_MAGNITUDE]
        chosen = allowed[words.randbelow(len(allowed))]
        codes[position] = _CODES[chosen]
        return results[chosen]

    sample(operations)
    return (*numbers, "".join(codes))


def format_nested(operands: Sequence[str]) -> str:
    """Return a nested expression, in parentheses except for the outermost operation."""
    return evaluate_nested(operands, str, lambda sign, a, b: f"({a} {sign} {b})")[1:-1]


def value_of_nested(operands: Sequence[str]) -> str:
    """Return the value of a nested expression."""
    return str(evaluate_nested(operands, int, lambda sign, a, b: _OPERATIONS[sign](a, b)))


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
