"""How models write numbers, letters and lists, read as exact values.

Every reader takes a whole text, matches all of it or answers None, runs in linear time and
never raises. Nothing passes through binary floating point.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_05UP, Context, Decimal

KEPT_DIGITS = 40
# ROUND_05UP leaves a trace of what it drops, so rounding again to fewer digits is still right.
_READING = Context(prec=KEPT_DIGITS, rounding=ROUND_05UP, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])

_MINUS = "−–﹣－"
SIGN = rf"[+\-{_MINUS}]"
# Decimal holds exponents of up to 18 digits.
_POWER = rf"{SIGN}?[0-9]{{1,18}}+"
EXPONENT = rf"""
    [eE](?P<e>{_POWER})
    | \s*+ (?:[×x*·⋅]|\\times|\\cdot) \s*+ 10
      (?: \s*+ (?:\^|\*\*) \s*+ (?: \{{(?P<braces>{_POWER})\}} | \((?P<round>{_POWER})\)
                                 | (?P<bare>{_POWER}) )
        | (?P<super>[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,18}}+) )
"""
_GROUPED = (
    r"[1-9][0-9]{0,2} (?P<comma>[,\u00a0\u2009\u202f]) [0-9]{3} (?: (?P=comma) [0-9]{3} )*+ "
    r"(?![0-9])"
)
_MANTISSA = r"(?: [0-9]++ (?: \.[0-9]++ )?+ | \.[0-9]++ )"

NUMBER = re.compile(
    rf"(?P<sign>{SIGN})? (?: (?P<grouped>{_GROUPED} (?: \.[0-9]++ )?+) | (?P<plain>{_MANTISSA}) )"
    rf"(?: {EXPONENT} )?",
    re.VERBOSE,
)
"""A number literal as `read_number` takes it; to be matched at the place where it begins."""

_ASCII = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]++)?+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,18})?")
_TO_ASCII = str.maketrans(dict.fromkeys(_MINUS, "-"))
_SUPERSCRIPTS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_LETTER = re.compile(r"\(([A-Fa-f])\)|([A-Fa-f])[:.)]?")
# A comma with no blank, right before exactly three digits, may be a thousands separator.
_TIGHT_COMMA = re.compile(r"(?<=[0-9]),[0-9]{3}(?![0-9])")
_LOOSE_COMMA = re.compile(r",\s")
_MARKS = ("**", "__", "*", "`", '"', "'")


def read_number(text: str) -> Decimal | None:
    """The value of a text that is one number and nothing else.

    Taken: a sign (hyphen or a Unicode minus), leading zeros, `.5`, `1e-7`, `1.5 × 10^-7` (also
    `*`, `x`, `·`, `\\times`, `10**-7`, `10⁻⁷`, braces), and thousands separators: a comma or a
    narrow or no-break space, the same throughout, groups of three, the first group one to three
    digits and not beginning with 0. `1,234` is therefore 1234 and `0,123` is no number.

    The value is exact up to 40 significant digits; beyond, it is cut so that rounding it to 39
    digits or fewer gives what rounding the text would. None for exponents beyond ±10¹⁸.
    """
    if _ASCII.fullmatch(text):
        return _decimal(text)
    match = NUMBER.fullmatch(text)
    if match is None:
        return None
    grouped, comma = match["grouped"], match["comma"]
    mantissa = grouped.replace(comma, "") if grouped else match["plain"]
    exponent = match["e"] or match["braces"] or match["round"] or match["bare"]
    if match["super"]:
        exponent = match["super"].translate(_SUPERSCRIPTS)
    literal = f"{match['sign'] or ''}{mantissa}e{exponent or 0}"
    return _decimal(literal.translate(_TO_ASCII))


def read_element(text: str) -> Decimal | None:
    """As `read_number`, but for a number inside a list, where a comma separates elements."""
    return None if "," in text else read_number(text)


def read_letter(text: str) -> str | None:
    """The upper-case letter of a text that is `B`, `B:`, `B.`, `B)` or `(B)`, any case."""
    match = _LETTER.fullmatch(text)
    return (match[1] or match[2]).upper() if match else None


def read_list(text: str) -> tuple[Decimal, ...] | None:
    """The numbers of a text that is `[a, b]`, or `a, b, c` with at least two of them.

    None where a comma could be a thousands separator: without brackets, a comma that stands
    tight before exactly three digits; with brackets, such a comma beside commas with a blank.
    """
    bracketed = text.startswith("[") and text.endswith("]")
    tight = _TIGHT_COMMA.search(text) is not None
    if tight and (not bracketed or _LOOSE_COMMA.search(text)):
        return None
    parts = (text[1:-1] if bracketed else text).split(",")
    if len(parts) < 2 and not bracketed:
        return None
    values = [read_element(without_marks(part.strip())) for part in parts]
    present = [value for value in values if value is not None]
    return tuple(present) if len(present) == len(values) else None


def without_marks(text: str) -> str:
    """The text without one pair of quotes, backticks or emphasis marks around it."""
    for mark in _MARKS:
        if text.startswith(mark) and text.endswith(mark) and len(text) > 2 * len(mark):
            return text[len(mark) : -len(mark)].strip()
    return text


def write_number(value: Decimal) -> str:
    """The value as text: plain decimal within 10^±40, else scientific; no idle zeros, no -0."""
    if not value:
        return "0"
    value = value.normalize(_READING)
    return f"{value:f}" if -KEPT_DIGITS <= value.adjusted() <= KEPT_DIGITS else f"{value:e}"


def _decimal(literal: str) -> Decimal | None:
    value = _READING.create_decimal(literal)
    return value if value.is_finite() else None
