"""Numbers as text: one spelling per value, and no value lost."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.numerals import Number, aligned, parse, plain, reduced

NUMBERS = st.builds(Number, st.integers(-(10**18), 10**18), st.integers(-40, 40))
PLAIN = re.compile(r"0|-?(?:[1-9]\d*|0|[1-9]\d*\.\d*[1-9]|0\.\d*[1-9])")


def value(number: Number) -> Fraction:
    return Fraction(number.significand) * Fraction(10) ** number.exponent


@given(NUMBERS)
def test_plain_text_has_the_value_and_one_spelling(number: Number) -> None:
    text = plain(number)
    assert Fraction(text) == value(number)
    assert PLAIN.fullmatch(text) and text != "-0"


@given(NUMBERS)
def test_parsing_inverts_plain_text(number: Number) -> None:
    assert reduced(parse(plain(number))) == reduced(number)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_parse_agrees_with_decimal(decimal: Decimal) -> None:
    assert value(parse(str(decimal))) == Fraction(decimal)


@pytest.mark.parametrize("text", ["", "abc", "nan", "inf", "1.2.3", "--1", "0x10"])
def test_parse_rejects_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        parse(text)


@given(st.lists(NUMBERS, min_size=1, max_size=5))
def test_alignment_keeps_every_value(numbers: list[Number]) -> None:
    units, exponent = aligned(numbers)
    assert [value(Number(unit, exponent)) for unit in units] == [value(n) for n in numbers]
