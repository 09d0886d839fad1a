"""Conversion of questions to tokens, and of generated tokens to answers.

The layout of a question is defined in `sample_layout`. Each number is one [NUM] token, preceded by
`-` if it is negative and the encoding is unsigned. The encodings "digit" and "subword" write a
number as text: the tokens are `-`, groups of digits and the decimal point.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittoken.encodings.base import IntArray
from bittoken.sample_layout import Layout, question_layout
from bittoken.token_ids import REPLACEMENT_CHARACTER, TokenIds
from bittoken.vocabulary import CHOICE_LETTERS, MINUS, NUM, Vocabulary, tokenize_decimal
from numbench.decimal_numbers import format_decimal, from_decimal, parse_decimal
from numbench.errors import BadInput
from numbench.tasks.prompts import Question

_DECIMAL = r"-?[0-9]+(?:\.[0-9]+)?"
_DECIMAL_PATTERN = re.compile(_DECIMAL)
_LIST_PATTERNS: dict[Layout, re.Pattern[str]] = {
    "brackets": re.compile(rf"\[{_DECIMAL}(?:, ?{_DECIMAL})*\]"),
    "plain": re.compile(rf"{_DECIMAL}(?:, ?{_DECIMAL})+"),
}

SIGNIFICANT_DIGITS = 15
"""Significant digits in the text of a number token."""

Piece = str | float
"""A piece of text, or the number encoded by one [NUM] token."""


class EncodedQuestion(NamedTuple):
    """A question as input of a network.

    tokens: ids, shape (T,), from BOS to EOQ. codes: shape (T, columns), one row per token; zeros
    for tokens that are not numbers.
    """

    tokens: IntArray
    codes: NDArray[np.generic]


def encode_question(question: Question, token_ids: TokenIds) -> EncodedQuestion:
    """Return the tokens of a question.

    Raises BadInput if the operator is not supported or an operand is not a decimal number.
    """
    tokens: list[int] = []
    values, positions = [], []
    pieces = question_pieces(question, token_ids.vocabulary, token_ids.layout)
    for is_text, group in itertools.groupby(pieces, _is_plain_text):
        if is_text:
            tokens += token_ids.encode("".join(map(str, group)))
            continue
        for piece in group:
            if isinstance(piece, float):
                positions.append(len(tokens))
                values.append(piece)
            tokens += token_ids.piece_to_ids[NUM if isinstance(piece, float) else piece]
    encoding = token_ids.vocabulary.encoding
    if encoding is None:
        return EncodedQuestion(np.array(tokens, np.int64), np.zeros((len(tokens), 0), np.int64))
    codes = np.zeros((len(tokens), encoding.columns), encoding.dtype)
    codes[positions] = encoding.encode(np.array(values, np.float64))
    return EncodedQuestion(np.array(tokens, np.int64), codes)


def _is_plain_text(piece: Piece) -> bool:
    return isinstance(piece, str) and not piece.startswith("<|")


def question_pieces(
    question: Question, vocabulary: Vocabulary, layout: Layout = "brackets"
) -> list[Piece]:
    """Return the pieces of text of a question and its numbers by value.

    Raises BadInput as `encode_question` does.
    """
    numbers = [_number_pieces(operand, vocabulary) for operand in question.operands]
    pieces: list[Piece] = []
    for slot in question_layout(question.operator, len(numbers), layout):
        pieces += [slot] if isinstance(slot, str) else numbers[slot]
    return pieces


def _number_pieces(operand: str, vocabulary: Vocabulary) -> list[Piece]:
    try:
        exact = parse_decimal(operand)
    except ValueError as error:
        raise BadInput(str(error)) from None
    if vocabulary.digits_per_token is not None:
        text = operand if _DECIMAL_PATTERN.fullmatch(operand) else format_decimal(exact)
        return list(tokenize_decimal(text, vocabulary.digits_per_token))
    value = float(operand)
    assert vocabulary.encoding is not None
    if vocabulary.encoding.signed:
        return [value]
    return [MINUS, -value] if value < 0 else [value]


def decode_tokens(tokens: Sequence[int], values: Sequence[float], token_ids: TokenIds) -> str:
    """Return the text of generated tokens without the end-of-sample token.

    values: the values of the number tokens, in order. Each is written as a plain decimal of at most
    15 significant digits, or as `inf` or `nan`.
    """
    numbers = iter(values)
    text, previous_is_number = "", False
    for token in tokens:
        if token == token_ids.eos_id:
            continue
        is_number = token == token_ids.number_id
        part = _format_number(next(numbers)) if is_number else token_ids.token_text(token)
        if text and part and _would_join(text[-1], part[0]) and (is_number or previous_is_number):
            text += REPLACEMENT_CHARACTER  # otherwise two numbers would parse as one
        text += part
        previous_is_number = is_number
    return text


def _would_join(left: str, right: str) -> bool:
    return left in "0123456789." and right in "0123456789."


def _format_number(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    return format_decimal(from_decimal(Decimal(f"{value:.{SIGNIFICANT_DIGITS}g}")))


def answer_json(text: str, ended: bool, layout: Layout = "brackets") -> str:
    """Return the JSON object `{"answer": …}` that is scored, or "" if `text` is empty.

    The answer is `null`, with the text as a second field, if the text is not a single number,
    letter or list of numbers, or if it was cut off (`ended` is false).
    """
    text = text.strip()
    if not text:
        return ""
    if ended and _DECIMAL_PATTERN.fullmatch(text):
        return f'{{"answer": {_json_number(text)}}}'
    if ended and text in tuple(CHOICE_LETTERS):
        return f'{{"answer": "{text}"}}'
    if ended and _LIST_PATTERNS[layout].fullmatch(text):
        numbers = ", ".join(_json_number(number) for number in _DECIMAL_PATTERN.findall(text))
        return f'{{"answer": [{numbers}]}}'
    return f'{{"answer": null, "said": {json.dumps(text)}}}'


def _json_number(text: str) -> str:
    """Return a decimal of any length as a JSON number, without leading zeros."""
    sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text)
    whole, point, fraction = digits.partition(".")
    return f"{sign}{whole.lstrip('0') or '0'}{point}{fraction}"
