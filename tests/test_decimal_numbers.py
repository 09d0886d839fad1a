"""Decimal numbers: one notation per value, and exact values."""

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.core.decimal_numbers import (
    align_decimals,
    format_decimal,
    parse_decimal,
    split_decimal,
)

NUMBERS = st.builds(
    lambda significand, exponent: Decimal(f"{significand}e{exponent}"),
    st.integers(-(10**18), 10**18),
    st.integers(-40, 40),
)
PLAIN = re.compile(r"0|-?(?:[1-9]\d*|0|[1-9]\d*\.\d*[1-9]|0\.\d*[1-9])")


@given(NUMBERS)
def test_plain_notation_has_the_exact_value_and_a_unique_form(number: Decimal) -> None:
    text = format_decimal(number)
    assert Fraction(text) == Fraction(number)
    assert PLAIN.fullmatch(text) and text != "-0"


@given(NUMBERS)
def test_parsing_inverts_plain_notation(number: Decimal) -> None:
    assert parse_decimal(format_decimal(number)) == number


@given(NUMBERS)
def test_the_significand_ends_in_no_zero(number: Decimal) -> None:
    significand, exponent = split_decimal(number)
    assert Fraction(significand) * Fraction(10) ** exponent == Fraction(number)
    assert significand % 10 or (significand, exponent) == (0, 0)


@pytest.mark.parametrize("text", ["", "abc", "nan", "inf", "1.2.3", "--1", "0x10"])
def test_text_that_is_not_a_number_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        parse_decimal(text)


@given(st.lists(NUMBERS, min_size=1, max_size=5))
def test_alignment_preserves_every_value(numbers: list[Decimal]) -> None:
    units, exponent = align_decimals(numbers)
    assert [unit * Fraction(10) ** exponent for unit in units] == [*map(Fraction, numbers)]
