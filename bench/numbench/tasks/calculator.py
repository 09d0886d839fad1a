"""An exact calculator, which a run can offer to its model as a tool (`--tools`).

Expressions are untrusted text: they are parsed here and never evaluated as code, and their length,
depth, numbers and results are bounded, so that each takes a few milliseconds at most. Values are
fractions. Irrational ones have 60 correct digits, and a last one that says whether they are exact.
"""

from __future__ import annotations

import hashlib
import operator
import re
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import reduce
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS, format_decimal
from numbench.errors import BadInput
from numbench.records import ToolCall
from numbench.tasks.exact_arithmetic import GUARD_DIGITS, root

NAME = "calculator"
_DESCRIPTION = (
    "Evaluates an arithmetic expression exactly and returns its value, rounded to 15 significant "
    "digits. Operators: + - * / ^ and parentheses. Functions: sqrt(x), mean(x, y, ...), "
    "std(x, y, ...) (population standard deviation), min(x, y, ...), max(x, y, ...), "
    "sort(x, y, ...). Numbers may have an exponent, such as 1.5e-7."
)
_EXPRESSION = {"type": "string", "description": "such as (48.25 + 3) / 2^0.5"}


def declaration(parameters: str) -> dict[str, object]:
    """Return the function that a request offers. parameters: the name of the field for them."""
    schema: dict[str, object] = {"type": "object", "properties": {"expression": _EXPRESSION}}
    schema |= {"required": ["expression"], "additionalProperties": False}
    return {"name": NAME, "description": _DESCRIPTION, parameters: schema}


MAX_CALLS = 16
"""Calls in one reply; the conversation ends with a reply that has more."""

MAX_RESULT_CHARACTERS = 500
"""The longest result, an error message included."""

_MAX_CHARACTERS = 2000
_MAX_ARGUMENT_CHARACTERS = 20_000
_MAX_DEPTH = 40
_MAX_BITS = 8192
"""Of the numerator or the denominator of a value: about 2,400 digits."""
_MAX_ROOT = 100
_LONGEST_PLAIN = 20
"""Digits before or after the decimal point from which a result has an exponent."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\*\*|[-+*/^(),\[\]])|(?P<other>\S)|$)"
)
_SIGNS = str.maketrans("×·÷−–", "**/--")
_ROUNDED = Context(prec=SIGNIFICANT_DIGITS)


class CalculatorError(ValueError):
    """An expression without a value. The message is for who wrote it."""


def evaluate(expression: str) -> str:
    """Return the value of an expression, rounded once to 15 significant digits.

    The value of `sort(…)` is a list. Raises CalculatorError if there is no value, or none within
    the bounds.
    """
    values = _Parser(expression).value()
    texts = [_text(value) for value in values]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    if len(text) > MAX_RESULT_CHARACTERS:
        raise CalculatorError("the list is too long")
    return text


class Calculator(NamedTuple):
    """The calculator of a run, and which of its results have a wrong digit.

    faulty: the share of the results, from 0 to 1. seed: of the choice of results and digits.
    """

    faulty: float = 0.0
    seed: int = 0

    def answer(self, call: ToolCall, question: str, number: int) -> ToolCall:
        """Return a call with its result, which may be an error message.

        question, number: the id of the question, and the number of the call among its calls. They
        decide, with the seed, whether a digit of the result is changed, and which.
        """
        try:
            if call.name != NAME:
                raise CalculatorError(f"no function {call.name[:40]!r}; use {NAME}")
            result = evaluate(_expression(call.arguments))
        except CalculatorError as error:
            return replace(call, result=f"error: {error}"[:MAX_RESULT_CHARACTERS], failed=True)
        seed = f"{self.seed}|{question}|{number}".encode()
        choice = int.from_bytes(hashlib.sha256(seed).digest())
        if choice % 10**6 >= self.faulty * 10**6:
            return replace(call, result=result)
        wrong, digit = _with_wrong_digit(result, choice // 10**6)
        return replace(call, result=wrong, correct_result=result, changed_digit=digit)


def parse_calculator(text: str) -> Calculator:
    """Return the calculator of `calculator`, `calculator:faulty=0.1` or `…,seed=2`.

    Raises BadInput for another text.
    """
    match = re.fullmatch(
        rf"{NAME}(?::faulty=(0\.[0-9]{{1,6}}|[01])(?:,seed=([0-9]{{1,9}}))?)?", text.strip()
    )
    if match is None:
        raise BadInput(f"--tools {text}: give {NAME}, or {NAME}:faulty=0.1")
    return Calculator(float(match[1] or 0), int(match[2] or 0))


def _expression(arguments: str) -> str:
    """Return the expression in the arguments of a call, which are JSON."""
    if len(arguments) > _MAX_ARGUMENT_CHARACTERS:
        raise CalculatorError(f"an expression has at most {_MAX_CHARACTERS} characters")
    try:
        fields = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise CalculatorError("the arguments are not valid JSON") from None
    expression = fields.get("expression") if isinstance(fields, dict) else None
    if not isinstance(expression, str):
        raise CalculatorError('the arguments must be {"expression": "..."}')
    return expression


def _with_wrong_digit(result: str, choice: int) -> tuple[str, int]:
    """Return a result with another digit in one place, and the number of the place, from 1.

    Zeros that only show the magnitude, and exponents, stay as they are.
    """
    places = [
        place
        for match in re.finditer(r"([\d.]+)(?:e[+-]?\d+)?", result)
        for place in range(*match.span(1))
        if result[place].isdigit()
        and (result[match.start() : place + 1].strip("0.") or match[1] == "0")
    ]
    choice, index = divmod(choice, len(places))
    place = places[index]
    is_leading = not result[:place].rstrip("0.")[-1:].isdigit()
    others = [digit for digit in "0123456789"[is_leading:] if digit != result[place]]
    return result[:place] + others[choice % len(others)] + result[place + 1 :], index + 1


class _Parser:
    """A parser by precedence, which computes while it reads.

    Every value is a list: of one number, or of those that `sort` returns.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _MAX_CHARACTERS:
            raise CalculatorError(f"an expression has at most {_MAX_CHARACTERS} characters")
        text = text.translate(_SIGNS)
        self._tokens = deque(match for match in _TOKEN.finditer(text) if match.lastgroup)
        self._depth = 0

    def value(self) -> list[Fraction]:
        """Return the value of the whole text."""
        values = self._expression()
        if self._tokens:
            raise self._unexpected()
        return values

    def _unexpected(self) -> CalculatorError:
        if not self._tokens:
            return CalculatorError("the expression is incomplete")
        kind = self._tokens[0].lastgroup or 0
        text, position = self._tokens[0][kind][:40], self._tokens[0].start(kind) + 1
        return CalculatorError(f"unexpected {text!r} at character {position}")

    def _take(self, kind: str, texts: Container[str] | None = None) -> str:
        """Return the next token and remove it if it is one of a kind; else an empty text."""
        token = self._tokens[0][kind] if self._tokens else None
        if token is None or (texts is not None and token not in texts):
            return ""
        self._tokens.popleft()
        return token

    def _need(self, sign: str) -> None:
        if not self._take("sign", sign):
            raise self._unexpected()

    def _expression(self, level: int = 0) -> list[Fraction]:
        """Return the value of an operand, and of the operators after it that bind closer."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise CalculatorError(f"parentheses and powers are nested more than {_MAX_DEPTH} deep")
        if sign := self._take("sign", "+-"):
            # A sign binds closer than `*`, and less close than `^`.
            operand = _single(self._expression(3))
            values = [-operand if sign == "-" else operand]
        else:
            values = self._operand()
        closer = [sign for sign, (of_sign, _) in _OPERATORS.items() if of_sign > level]
        while sign := self._take("sign", closer):
            of_sign, compute = _OPERATORS[sign]
            # Powers are computed from the right.
            right = self._expression(of_sign - (compute is _power))
            values = [_bounded(compute(_single(values), _single(right)))]
        self._depth -= 1
        return values

    def _operand(self) -> list[Fraction]:
        if number := self._take("number"):
            return [_number(number)]
        if name := self._take("name"):
            if (function := _FUNCTIONS.get(name.lower())) is None:
                names = ", ".join(_FUNCTIONS)
                raise CalculatorError(f"unknown name {name[:40]!r}; the functions are {names}")
            self._need("(")
            return [_bounded(value) for value in function(self._list(")"))]
        if self._take("sign", "["):
            return self._list("]")
        self._need("(")
        values = self._expression()
        self._need(")")
        return values

    def _list(self, end: str) -> list[Fraction]:
        """Return the values of expressions that are separated by commas, up to `end`."""
        values = self._expression()
        while self._take("sign", ","):
            values += self._expression()
        self._need(end)
        return values


def _single(values: Sequence[Fraction]) -> Fraction:
    if len(values) != 1:
        raise CalculatorError("a list has no arithmetic; use mean, std, min or max")
    return values[0]


def _number(token: str) -> Fraction:
    exponent = token.lower().partition("e")[2]
    if len(exponent) > 5 or abs(int(exponent or 0)) > 2000:
        raise CalculatorError("a number is too large or too small")
    return _bounded(Fraction(token))


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise CalculatorError("a value is too large, too small or has too many digits")
    return value


def _quotient(a: Fraction, b: Fraction) -> Fraction:
    if not b:
        raise CalculatorError("division by zero")
    return a / b


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if not base:
        if exponent <= 0:
            raise CalculatorError("0 to a power that is not positive is undefined")
        return base
    if exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length()) - 1
        if bits * abs(exponent.numerator) > _MAX_BITS:
            raise CalculatorError("a power is too large, too small or has too many digits")
        # The powers of 1 and -1 have one bit, whatever the exponent.
        return base ** (exponent.numerator if bits else exponent.numerator % 2)
    if base < 0:
        raise CalculatorError("a negative number to a fractional power has no real value")
    if exponent.denominator <= _MAX_ROOT and abs(exponent.numerator) <= _MAX_ROOT:
        return _root(_power(base, Fraction(exponent.numerator)), exponent.denominator)
    context = Context(prec=GUARD_DIGITS + 20)
    logarithm = context.multiply(_decimal(exponent, context), context.ln(_decimal(base, context)))
    if abs(logarithm) > _MAX_BITS // 2:
        raise CalculatorError("a power is too large or too small")
    return Fraction(context.exp(logarithm))


_OPERATORS: Mapping[str, tuple[int, Callable[[Fraction, Fraction], Fraction]]] = {
    "+": (1, operator.add),
    "-": (1, operator.sub),
    "*": (2, operator.mul),
    "/": (2, _quotient),
    "^": (4, _power),
    "**": (4, _power),
}
"""How close each operator binds, and its function."""


def _decimal(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _root(value: Fraction, degree: int) -> Fraction:
    if value < 0:
        raise CalculatorError("the root of a negative number is not real")
    return root(value, degree)


def _mean(values: Sequence[Fraction]) -> Fraction:
    return reduce(lambda total, value: _bounded(total + value), values) / len(values)


def _std(values: Sequence[Fraction]) -> Fraction:
    mean = _mean(values)
    return _root(_mean([_bounded((value - mean) ** 2) for value in values]), 2)


_FUNCTIONS: Mapping[str, Callable[[list[Fraction]], list[Fraction]]] = {
    "sqrt": lambda values: [_root(_single(values), 2)],
    "mean": lambda values: [_mean(values)],
    "std": lambda values: [_std(values)],
    "min": lambda values: [min(values)],
    "max": lambda values: [max(values)],
    "sort": sorted,
}


def _text(value: Fraction) -> str:
    """Return a value in plain notation, or with an exponent if that is long."""
    rounded = _decimal(value, _ROUNDED)
    if abs(rounded.adjusted()) > _LONGEST_PLAIN:
        return f"{rounded.normalize(_ROUNDED):e}"
    return format_decimal(rounded)
