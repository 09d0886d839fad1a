"""Other notations of the same number, from plain decimal notation (`-1234567.5`)."""

from __future__ import annotations

from numbench.decimal_numbers import normalize, parse_decimal

_EXTRA_ZEROS = "00"


def group_digits(number: str) -> str:
    """Return a number with commas between groups of three digits: `-1,234,567.5`."""
    sign, whole, fraction = _parts(number)
    return f"{sign}{int(whole):,}{fraction}" if len(whole) > 3 else number


def to_scientific(number: str) -> str:
    """Return a number with one digit before the point and a power of ten: `-1.2345675e6`."""
    significand, exponent = normalize(parse_decimal(number))
    sign, digits = ("-" if significand < 0 else ""), str(abs(significand))
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{exponent + len(digits) - 1}"


def add_plus(number: str) -> str:
    """Return a number with a sign in any case: `+5`."""
    return number if number.startswith("-") else f"+{number}"


def add_trailing_zeros(number: str) -> str:
    """Return a number with two more decimals, which are 0: `5.00`, `-1.500`."""
    return f"{number}{_EXTRA_ZEROS}" if "." in number else f"{number}.{_EXTRA_ZEROS}"


def to_decimal_comma(number: str) -> str:
    """Return a number with a comma for the decimal point: `-1234567,5`."""
    return number.replace(".", ",")


def _parts(number: str) -> tuple[str, str, str]:
    """Return the sign, the integer digits, and the rest from the decimal point on."""
    sign = "-" if number.startswith("-") else ""
    whole, point, decimals = number.removeprefix("-").partition(".")
    return sign, whole, point + decimals
