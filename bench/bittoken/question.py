"""From a question to the tokens that a small model reads.

Layout, between the begin of the sample and the end of the question: two operands `n + n`; a list
`<|max|>[n, n, n]`; an interval `<|intva|>n[n, n]`, the reference before the boundaries.

A number is one [NUM] token. Encodings without a sign put `-` before it where the number is less
than 0. Models that spell numbers write `-`, the digits before and behind the point in groups from
the left, and the point as tokens.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.bittoken.data.packing import Ints
from bench.bittoken.lexicon import Lexicon
from bench.bittoken.vocabulary import (
    BOS,
    CLOSE,
    COMMA,
    EOQ,
    INFIX,
    LIST_TASKS,
    MINUS,
    OPEN,
    Vocabulary,
    spelled,
)
from bench.errors import BadInput
from bench.numerals import parse, plain
from bench.tasks.phrasing import Question

_PLAIN = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")

Piece = str | float
"""A token by name, or a number that one [NUM] token holds."""


class Encoded(NamedTuple):
    """A question as a network reads it.

    tokens: ids, shape (T,), from the begin of the sample to the end of the question. codes: a row
    per token, shape (T, columns); zeros where the token is no number.
    """

    tokens: Ints
    codes: NDArray[np.generic]


def encode(question: Question, lexicon: Lexicon) -> Encoded:
    """The tokens of a question. BadInput where it has no layout or holds no decimal number."""
    tokens: list[int] = []
    values, places = [], []
    for piece in pieces(question, lexicon.vocabulary):
        if isinstance(piece, float):
            places.append(len(tokens))
            values.append(piece)
            tokens.append(lexicon.number)
        else:
            tokens += lexicon.ids[piece]
    encoding = lexicon.vocabulary.encoding
    if encoding is None:
        return Encoded(np.array(tokens, np.int64), np.zeros((len(tokens), 0), np.int64))
    codes = np.zeros((len(tokens), encoding.columns), encoding.dtype)
    codes[places] = encoding.code(np.array(values, np.float64))
    return Encoded(np.array(tokens, np.int64), codes)


def pieces(question: Question, vocabulary: Vocabulary) -> list[Piece]:
    """The question's tokens by name, numbers by value. BadInput as for `encode`."""
    operator = question.operator
    numbers = [_number(operand, vocabulary) for operand in question.operands]
    if operator in INFIX and len(numbers) == 2:
        return [BOS, *numbers[0], INFIX[operator], *numbers[1], EOQ]
    if operator not in LIST_TASKS or len(numbers) < 1 + (operator == "interval"):
        raise BadInput(f"no small model reads {operator!r} of {len(numbers)} numbers")
    head: list[Piece] = [BOS, LIST_TASKS[operator]]
    if operator == "interval":
        head += numbers.pop(0)
    listed = [piece for number in numbers for piece in (COMMA, *number)]
    return [*head, OPEN, *listed[1:], CLOSE, EOQ]


def _number(operand: str, vocabulary: Vocabulary) -> list[Piece]:
    try:
        exact = parse(operand)
    except ValueError as error:
        raise BadInput(str(error)) from None
    if vocabulary.group is not None:
        text = operand if _PLAIN.fullmatch(operand) else plain(exact)
        return list(spelled(text, vocabulary.group))
    value = float(operand)
    assert vocabulary.encoding is not None
    if vocabulary.encoding.signed:
        return [value]
    return [MINUS, -value] if value < 0 else [value]
