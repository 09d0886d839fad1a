"""Read numbers, letters and lists in the notations that models use, as exact values.

Every reader takes a whole text and returns None unless all of it matches. Readers run in linear
time, never raise and do not use binary floating point.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import ROUND_05UP, Decimal
from typing import NamedTuple, cast

from numbench.core.decimal_numbers import wide_context
from numbench.tasks.base import AnswerKind, Form


class WrittenNumber(NamedTuple):
    """A number, numerator / denominator, and the form in which it is written.

    form: None for one that no question asks for, such as 12.5e3 or 1.5/2.
    """

    numerator: Decimal
    denominator: Decimal
    form: Form | None


AnswerValue = Decimal | str | WrittenNumber | tuple[Decimal, ...]
"""The value of an answer: a number, a letter, a number in a form, or a list."""

MAX_EXPONENT = 999_999
"""The largest decimal exponent of a value, as in Python's default decimal context."""

MAX_LIST_LENGTH = 10_000
"""The largest number of elements of a list."""

MAX_DIGITS = 20_000
"""The number of significant digits that are read exactly."""

_MAX_REPORTED_DIGITS = 40
# ROUND_05UP (sticky rounding) keeps a second rounding to fewer digits correct.
_PARSING_CONTEXT = wide_context(MAX_DIGITS, ROUND_05UP)
_REPORTING_CONTEXT = wide_context(_MAX_REPORTED_DIGITS, ROUND_05UP)
_ZERO = Decimal(0)

_MINUS_SIGNS = "−‐‑‒–﹣－"
SIGN_PATTERN = rf"[+\-{_MINUS_SIGNS}]"
# With longer exponents, `Decimal` would round to 0 or infinity.
_EXPONENT_VALUE = rf"{SIGN_PATTERN}?[0-9]{{1,9}}+"
NUMBER_LITERAL = re.compile(
    rf"""(?P<sign>{SIGN_PATTERN})?
    (?: (?P<grouped> [1-9][0-9]{{0,2}} (?P<comma>[,_'’\xa0\u2007-\u200a\u202f]|\\[,;:!\ ]|{{\\?,}})
                     [0-9]{{3}} (?: (?P=comma) [0-9]{{3}} )* (?![0-9]) (?: \.[0-9]++ )?+ )
      | (?P<plain> [0-9]++ (?: \.[0-9]++ )?+ | \.[0-9]++ ) )
    (?: [eE](?P<e>{_EXPONENT_VALUE})
      | \s*+ (?:[×x*·⋅]|\\times|\\cdot) \s*+ 10
        (?: \s*+ (?:\^|\*\*) \s*+ (?: \{{(?P<braces>{_EXPONENT_VALUE})\}}
                                   | \((?P<round>{_EXPONENT_VALUE})\)
                                   | (?P<bare>{_EXPONENT_VALUE}) )
          | (?P<super>[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,9}}+) ) )?""",
    re.VERBOSE,
)
"""A number literal in the notations of `read_number`; match it at the index where it starts."""

# In linear time: what is not a fraction is consumed as a number.
_INTEGER = r"[0-9]++(?:,[0-9]{3})*+"
FRACTION_LITERAL = re.compile(
    rf"({SIGN_PATTERN}?{_INTEGER})\s?/\s?({_INTEGER})(?![.eE/][0-9])"
    rf"|({SIGN_PATTERN}?)\\[dt]?frac\{{({_INTEGER})\}}\{{({_INTEGER})\}}"
)
"""A fraction of two integers; match it at the index where it starts."""

_NORMALIZED = re.compile(r"[1-9](?:\.[0-9]*)?")
_ASCII_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]++)?+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,9})?")
_TO_ASCII = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹" + _MINUS_SIGNS, "+-0123456789" + "-" * len(_MINUS_SIGNS))
# The bounds of its interval may follow a letter: `B: 1 <= x < 5`.
_LETTER = re.compile(r"[(\[]?([A-Za-z])[)\]]?[:.]?(?:\s(?:[^A-Za-z]|x\b|(?:and|to|from)\b)*+)?")
_LIST_SEPARATOR = re.compile(r",\s*+and\s|,\s|[;<>≤≥]=?|(?<=\s)and\s|\n\s*+")


def read_number(text: str) -> Decimal | None:
    """Return the value of a text that is a single number.

    Accepts a sign (hyphen or a Unicode minus), leading zeros, `.5`, `1e-7`, `1.5 × 10^-7` (also
    `*`, `x`, `·`, `\\times`, `10**-7`, `10⁻⁷`, braces), and thousands separators (comma, `_`, `'`,
    `’`, a no-break or narrow space, a space of LaTeX, or `{,}`, the same throughout): groups of
    three digits, the first group of one to three digits and without a leading 0. `1,234` is
    therefore 1234, and `0,123` is not a number.

    The value is exact up to MAX_DIGITS significant digits. A longer one is shortened so that
    rounding it to fewer digits gives the same result as rounding the text. None for values outside
    10^±999,999; every zero is the same.
    """
    if _ASCII_NUMBER.fullmatch(text):
        return exact_decimal(text)
    match = NUMBER_LITERAL.fullmatch(text)
    if match is None:
        return None
    grouped = match["grouped"]
    mantissa = grouped.replace(match["comma"], "") if grouped else match["plain"]
    exponent = match["e"] or match["braces"] or match["round"] or match["bare"] or match["super"]
    literal = f"{match['sign'] or ''}{mantissa}e{exponent or 0}"
    return exact_decimal(literal.translate(_TO_ASCII))


def read_value(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Return the value of a text that is a value of the kind. A number may end in a full stop."""
    if kind == "number":
        return read_number(text.removesuffix("."))
    if kind == "letter":
        return read_letter(text)
    return read_list(text) if kind == "list" else read_written_number(text.removesuffix("."))


def read_written_number(text: str) -> WrittenNumber | None:
    """Return the value and form of a number, as `read_number` reads it, or of a fraction.

    A fraction is `-3/4` or `-\\frac{3}{4}`, of integers, the denominator not 0.
    """
    if fraction := FRACTION_LITERAL.fullmatch(text):
        *parts, last = (part for part in fraction.groups() if part is not None)
        numerator, denominator = read_number("".join(parts)), read_number(last)
        if numerator is None or not denominator:
            return None
        return WrittenNumber(numerator, denominator, "fraction")
    value, literal = read_number(text), NUMBER_LITERAL.fullmatch(text)
    if value is None or literal is None:
        return None
    form: Form | None = "plain"
    if literal.end("plain") < len(text) and literal.end("grouped") < len(text):
        form = "scientific" if _NORMALIZED.fullmatch(literal["plain"] or "") else None
    return WrittenNumber(value, Decimal(1), form)


def read_letter(text: str) -> str | None:
    """Return the letter of `b`, `B.`, `(B)` or `B: 1 <= x < 5` in upper case."""
    match = _LETTER.fullmatch(text)
    return match[1].upper() if match else None


def read_list(text: str) -> tuple[Decimal, ...] | None:
    """Return the numbers of `[a, b]`, or of at least two numbers without brackets.

    Between the numbers are commas, semicolons, signs of comparison, line breaks or `and`. If there
    is a space after a comma, commas without one are thousands separators. None for more than 10,000
    numbers.
    """
    is_bracketed = text.startswith("[") and text.endswith("]")
    if is_bracketed:
        text = text[1:-1].strip().rstrip(", \t\r\n")
        if not text:
            return ()
    parts = _LIST_SEPARATOR.split(text)
    if len(parts) == 1:
        parts = text.split(",")
    if len(parts) > MAX_LIST_LENGTH or (len(parts) == 1 and not is_bracketed):
        return None
    return as_list(read_number(part.strip("\"'`*$ \t\r\n").removesuffix(".")) for part in parts)


def as_list(values: Iterable[Decimal | None]) -> tuple[Decimal, ...] | None:
    """Return the values as a list; None if one of them is not a number."""
    numbers = tuple(values)
    return None if None in numbers else cast(tuple[Decimal, ...], numbers)


def exact_decimal(literal: str) -> Decimal | None:
    """Return the value of a literal of Python's `Decimal`, as `read_number` does."""
    value = _PARSING_CONTEXT.create_decimal(literal)
    if not value:
        return _ZERO
    return value if -MAX_EXPONENT <= value.adjusted() <= MAX_EXPONENT else None


def format_number(value: Decimal, every_digit: bool = False) -> str:
    """Format a value: plain decimal within 10^±40, else scientific; no trailing zeros, no -0.

    More than 40 significant digits are shortened, unless `every_digit` is to be shown; then the
    plain notation may have as many digits as are read.
    """
    if not value:
        return "0"
    largest = MAX_DIGITS if every_digit else _MAX_REPORTED_DIGITS
    value = value.normalize(_PARSING_CONTEXT if every_digit else _REPORTING_CONTEXT)
    return f"{value:f}" if -_MAX_REPORTED_DIGITS <= value.adjusted() <= largest else f"{value:e}"
