"""Numbers as tokens, thousands at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.bittoken.data.ragged import Ints, Ragged
from bench.bittoken.vocabulary import MINUS, NUM, POINT, Vocabulary


def number_tokens(texts: pa.StringArray, vocabulary: Vocabulary) -> tuple[Ragged, np.ndarray]:
    """The tokens of plain decimals, and the codes of their values, shape (numbers, columns)."""
    if vocabulary.encoding is None:
        return _spelled(texts, vocabulary), np.zeros((len(texts), 0), np.int8)
    values = np.asarray(pc.cast(texts, pa.float64()))
    codes = vocabulary.encoding.code(values)
    number = vocabulary.ids[NUM]
    if vocabulary.encoding.signed:
        return Ragged.of(np.full(len(values), number), np.ones(len(values), np.int64)), codes
    negative = np.signbit(values)
    rows = Ragged(np.array([vocabulary.ids[MINUS], number]), np.array([0, 1]), np.array([2, 1]))
    return rows.take(np.where(negative, 0, 1)), codes


def _spelled(texts: pa.StringArray, vocabulary: Vocabulary) -> Ragged:
    """Signs and points as they are, every run of digits in groups from the left."""
    assert vocabulary.group is not None
    lengths = np.asarray(pc.binary_length(texts)).astype(np.int64)
    text = np.frombuffer(_bytes(texts), np.uint8).astype(np.int64)
    digit = (text >= ord("0")) & (text <= ord("9"))
    starts = np.cumsum(lengths) - lengths
    opens = ~digit
    opens[1:] |= ~digit[:-1]
    opens[starts] = True
    # The place of each digit in its run tells where groups begin.
    run = np.flatnonzero(opens)
    place = np.arange(len(text)) - np.repeat(run, np.diff(np.r_[run, len(text)]))
    begins = place % vocabulary.group == 0
    first = np.flatnonzero(begins)
    size = np.diff(np.r_[first, len(text)])
    tokens = _of_groups(text, first, size, vocabulary)
    return Ragged.of(tokens, np.add.reduceat(begins.astype(np.int64), starts))


def _of_groups(text: Ints, first: Ints, size: Ints, vocabulary: Vocabulary) -> Ints:
    """The id of each group of digits, sign or point that starts at `first` in `text`."""
    padded = np.r_[text, np.zeros(3, np.int64)] - ord("0")
    value = padded[first]
    for place in range(1, vocabulary.group or 1):
        value = np.where(size > place, value * 10 + padded[first + place], value)
    # Groups of n digits stand behind all shorter ones, in order.
    shorter = np.array([0, 0, 10, 110])
    tokens: Ints = vocabulary.ids["0"] + shorter[size] + value
    for mark in (MINUS, POINT):
        tokens[text[first] == ord(mark)] = vocabulary.ids[mark]
    return tokens


def _bytes(texts: pa.StringArray) -> memoryview:
    _, offsets, data = texts.buffers()
    bounds = memoryview(offsets).cast("i")
    return memoryview(data)[bounds[texts.offset] : bounds[texts.offset + len(texts)]]
