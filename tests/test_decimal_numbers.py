"""Decimal numbers: one notation per value, and exact values."""

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.core.decimal_numbers import (
    DecimalNumber,
    align_exponents,
    format_decimal,
    normalize,
    parse_decimal,
)

NUMBERS = st.builds(DecimalNumber, st.integers(-(10**18), 10**18), st.integers(-40, 40))
PLAIN = re.compile(r"0|-?(?:[1-9]\d*|0|[1-9]\d*\.\d*[1-9]|0\.\d*[1-9])")


def value(number: DecimalNumber) -> Fraction:
    return Fraction(number.significand) * Fraction(10) ** number.exponent


@given(NUMBERS)
def test_plain_notation_has_the_exact_value_and_a_unique_form(number: DecimalNumber) -> None:
    text = format_decimal(number)
    assert Fraction(text) == value(number)
    assert PLAIN.fullmatch(text) and text != "-0"


@given(NUMBERS)
def test_parsing_inverts_plain_notation(number: DecimalNumber) -> None:
    assert normalize(parse_decimal(format_decimal(number))) == normalize(number)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_parse_agrees_with_decimal(decimal: Decimal) -> None:
    assert value(parse_decimal(str(decimal))) == Fraction(decimal)


@pytest.mark.parametrize("text", ["", "abc", "nan", "inf", "1.2.3", "--1", "0x10"])
def test_text_that_is_not_a_number_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        parse_decimal(text)


@given(st.lists(NUMBERS, min_size=1, max_size=5))
def test_alignment_preserves_every_value(numbers: list[DecimalNumber]) -> None:
    units, exponent = align_exponents(numbers)
    assert [value(DecimalNumber(unit, exponent)) for unit in units] == [value(n) for n in numbers]
