"""Read numbers, letters and lists in the notations that models use, as exact values.

Every reader takes a whole text and returns None unless all of it matches. Readers run in linear
time, never raise and do not use binary floating point.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_05UP, Context, Decimal
from functools import lru_cache

from numbench.tasks.base import LETTERS, AnswerKind

AnswerValue = Decimal | str | tuple[Decimal, ...]
"""The value of an answer: a number, a letter or a list."""

MAX_EXPONENT = 999_999
"""The largest decimal exponent of a value, as in Python's default decimal context."""

MAX_LIST_LENGTH = 10_000
"""The largest number of elements of a list."""

MAX_DIGITS = 20_000
"""The number of significant digits that are read exactly."""

_MAX_REPORTED_DIGITS = 40
# ROUND_05UP (sticky rounding) keeps a second rounding to fewer digits correct.
_PARSING_CONTEXT = Context(
    prec=MAX_DIGITS, rounding=ROUND_05UP, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[]
)

_REPORTING_CONTEXT = Context(
    prec=_MAX_REPORTED_DIGITS, rounding=ROUND_05UP, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[]
)

_ZERO = Decimal(0)

_MINUS_SIGNS = "−–﹣－"
SIGNS = f"+-{_MINUS_SIGNS}"
SIGN_PATTERN = rf"[+\-{_MINUS_SIGNS}]"
# With longer exponents, `Decimal` would round to 0 or infinity.
_EXPONENT_VALUE = rf"{SIGN_PATTERN}?[0-9]{{1,9}}+"
EXPONENT_PATTERN = rf"""
    [eE](?P<e>{_EXPONENT_VALUE})
    | \s*+ (?:[×x*·⋅]|\\times|\\cdot) \s*+ 10
      (?: \s*+ (?:\^|\*\*) \s*+ (?: \{{(?P<braces>{_EXPONENT_VALUE})\}}
                                 | \((?P<round>{_EXPONENT_VALUE})\)
                                 | (?P<bare>{_EXPONENT_VALUE}) )
        | (?P<super>[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,9}}+) )
"""
_GROUPED = (
    r"[1-9][0-9]{0,2} (?P<comma>[,\u00a0\u2009\u202f]) [0-9]{3} (?: (?P=comma) [0-9]{3} )*+ "
    r"(?![0-9])"
)
_MANTISSA = r"(?: [0-9]++ (?: \.[0-9]++ )?+ | \.[0-9]++ )"

NUMBER_LITERAL = re.compile(
    rf"(?P<sign>{SIGN_PATTERN})?"
    rf" (?: (?P<grouped>{_GROUPED} (?: \.[0-9]++ )?+) | (?P<plain>{_MANTISSA}) )"
    rf" (?: {EXPONENT_PATTERN} )?",
    re.VERBOSE,
)
"""A number literal in the notations of `read_number`; match it at the index where it starts."""

_ASCII_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]++)?+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,9})?")
_TO_ASCII = str.maketrans(dict.fromkeys(_MINUS_SIGNS, "-"))
_SUPERSCRIPTS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_LETTER = re.compile(r"\(([A-Za-z])\)|([A-Za-z])[:.)]?")
# A comma without a space, followed by exactly three digits, may be a thousands separator.
_TIGHT_COMMA = re.compile(r"(?<=[0-9]),[0-9]{3}(?![0-9])")
_LOOSE_COMMA = re.compile(r",\s")
_DECIMAL_COMMA = re.compile(r"(?<![0-9.])(?:[0-9]{1,3}(?:\.[0-9]{3})++|[0-9]++),[0-9]++(?!\.)")
_MARKUP = ("**", "__", "*", "`", '"', "'")


def read_number(text: str) -> Decimal | None:
    """Return the value of a text that is a single number.

    Accepts a sign (hyphen or a Unicode minus), leading zeros, `.5`, `1e-7`, `1.5 × 10^-7` (also
    `*`, `x`, `·`, `\\times`, `10**-7`, `10⁻⁷`, braces), and thousands separators: a comma or a
    narrow or no-break space, the same throughout, groups of three digits, the first group of one
    to three digits and without a leading 0. `1,234` is therefore 1234, and `0,123` is not a number.

    The value is exact up to MAX_DIGITS significant digits. A longer one is shortened so that
    rounding it to fewer digits gives the same result as rounding the text. None for values outside
    10^±999,999; every zero is the same.
    """
    if _ASCII_NUMBER.fullmatch(text):
        return _decimal(text)
    match = NUMBER_LITERAL.fullmatch(text)
    if match is None:
        return None
    grouped, comma = match["grouped"], match["comma"]
    mantissa = grouped.replace(comma, "") if grouped else match["plain"]
    exponent = match["e"] or match["braces"] or match["round"] or match["bare"]
    if match["super"]:
        exponent = match["super"].translate(_SUPERSCRIPTS)
    literal = f"{match['sign'] or ''}{mantissa}e{exponent or 0}"
    return _decimal(literal.translate(_TO_ASCII))


def read_list_element(text: str) -> Decimal | None:
    """Return the value of a list element.

    Unlike in `read_number`, no comma is allowed; the decimal point may be at the end (`5.`).
    """
    return None if "," in text else read_number(text.removesuffix("."))


def read_letter(text: str) -> str | None:
    """Return the letter of `B`, `B:`, `B.`, `B)` or `(B)` in upper case; accepts either case."""
    match = _LETTER.fullmatch(text)
    return (match[1] or match[2]).upper() if match else None


def with_options(pattern: re.Pattern[str], prompt: str) -> re.Pattern[str]:
    """Return a pattern of the letters A to F for the options of a question, which may be more.

    The options after F are those that the question names in order (`G: 5 <= x < 6`). An `I` before
    a lower-case word is a pronoun.
    """
    last = _last_option(prompt)
    return pattern if last == "F" else _with_letters_up_to(pattern, last)


@lru_cache(1024)
def _last_option(prompt: str) -> str:
    last = "F"
    for letter in LETTERS[LETTERS.index(last) + 1 :]:
        if not re.search(rf"\b{letter}\b", prompt):
            break
        last = letter
    return last


@lru_cache(64)
def _with_letters_up_to(pattern: re.Pattern[str], last: str) -> re.Pattern[str]:
    several = pattern.pattern.replace("[B-F]", rf"(?!I\s[a-z])[B-{last}]")
    return re.compile(several.replace("[A-F]", f"[A-{last}]"), pattern.flags)


def has_ambiguous_commas(text: str) -> bool:
    """Return whether a comma in a list could be part of a number (see `read_list`)."""
    loose = _LOOSE_COMMA.search(text) is not None
    bracketed = text.startswith("[") and text.endswith("]")
    return ((loose or not bracketed) and _TIGHT_COMMA.search(text) is not None) or (
        loose and _DECIMAL_COMMA.search(text) is not None
    )


def read_text(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Return the value of a text that is a value of the kind."""
    if kind == "number":
        return read_number(text)
    return read_letter(text) if kind == "letter" else read_list(text)


def read_list(text: str) -> tuple[Decimal, ...] | None:
    """Return the numbers of `[a, b]`, or of `a, b, c` with at least two numbers.

    None for more than 10,000 numbers, and if a comma could be part of a number. It could be a
    thousands separator if it has no space and is followed by exactly three digits, unless the list
    has brackets and no comma has a space. It could be a decimal comma if it has no space and is
    between integers (`0,5`), and other commas have a space.
    """
    if text.count(",") >= MAX_LIST_LENGTH or has_ambiguous_commas(text):
        return None
    bracketed = text.startswith("[") and text.endswith("]")
    if bracketed and not text[1:-1].strip():
        return ()
    parts = (text[1:-1] if bracketed else text).split(",")
    if len(parts) < 2 and not bracketed:
        return None
    values = [read_list_element(strip_markup(part.strip())) for part in parts]
    present = [value for value in values if value is not None]
    return tuple(present) if len(present) == len(values) else None


def strip_markup(text: str) -> str:
    """Remove one pair of quotes, backticks or emphasis marks around the text."""
    for mark in _MARKUP:
        if text.startswith(mark) and text.endswith(mark) and len(text) > 2 * len(mark):
            return text[len(mark) : -len(mark)].strip()
    return text


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


def _decimal(literal: str) -> Decimal | None:
    value = _PARSING_CONTEXT.create_decimal(literal)
    if not value:
        return _ZERO
    return value if -MAX_EXPONENT <= value.adjusted() <= MAX_EXPONENT else None
