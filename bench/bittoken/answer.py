"""From the tokens that a small model generates to the answer that is judged."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal

from bench.bittoken.lexicon import UNKNOWN, Lexicon
from bench.bittoken.vocabulary import CHOICES
from bench.numerals import number_of, plain

DIGITS = 15
"""Significant digits of a number that one token holds."""

_DECIMAL = r"-?[0-9]+(?:\.[0-9]+)?"
_NUMBER = re.compile(_DECIMAL)
_LIST = re.compile(rf"\[{_DECIMAL}(?:, ?{_DECIMAL})*\]")


def said(tokens: Sequence[int], values: Sequence[float], lexicon: Lexicon) -> str:
    """The text of generated tokens; `values` are those of its number tokens, in their order.

    A number is plain decimal of at most 15 significant digits, or `inf` or `nan`. The token that
    ends a sample says nothing.
    """
    numbers = iter(values)
    text, number_before = "", False
    for token in tokens:
        if token == lexicon.end:
            continue
        is_number = token == lexicon.number and lexicon.vocabulary.encoding is not None
        part = _decimal(next(numbers)) if is_number else lexicon.text(token)
        if text and part and _joins(text[-1], part[0]) and (is_number or number_before):
            text += UNKNOWN  # else two numbers would read as one
        text += part
        number_before = is_number
    return text


def _joins(left: str, right: str) -> bool:
    return left in "0123456789." and right in "0123456789."


def _decimal(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    return plain(number_of(Decimal(f"{value:.{DIGITS}g}")))


def answer_json(text: str, ended: bool) -> str:
    """The JSON object `{"answer": …}` of an answer's text, as the scoring reads it.

    `null`, with the text beside it, where that is not one number, one letter or one list of
    numbers, or where it was cut off before its end; nothing where the text is empty.
    """
    text = text.strip()
    if not text:
        return ""
    if ended and _NUMBER.fullmatch(text):
        return f'{{"answer": {_literal(text)}}}'
    if ended and text in tuple(CHOICES):
        return f'{{"answer": "{text}"}}'
    if ended and _LIST.fullmatch(text):
        numbers = ", ".join(_literal(number) for number in _NUMBER.findall(text))
        return f'{{"answer": [{numbers}]}}'
    return f'{{"answer": null, "said": {json.dumps(text)}}}'


def _literal(text: str) -> str:
    """A decimal, however long, as JSON writes it: no idle zeros before it."""
    sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text)
    whole, point, fraction = digits.partition(".")
    return f"{sign}{whole.lstrip('0') or '0'}{point}{fraction}"
