"""Many questions about integers of few bits: vectorized `numbench.tasks.short_integers`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from numbench.tasks import TASKS
from numbench.tasks.base import SamplingSettings
from numbench.tasks.number_sampling import MAX_LIST_LENGTH
from numbench.vectorized.decimal_arrays import BoolArray, DecimalArray, IntArray
from numbench.vectorized.questions import Questions
from numbench.vectorized.random_words import RandomWordArrays


def _integer(words: RandomWordArrays, settings: SamplingSettings) -> IntArray:
    assert settings.max_bits is not None
    return words.randint(1, 2**settings.max_bits - 1)


def _shift(words: RandomWordArrays, settings: SamplingSettings) -> IntArray:
    return words.randint(min(1, settings.max_shift), settings.max_shift)


def _pairs(task: str, words: RandomWordArrays, settings: SamplingSettings) -> Questions:
    a, b = _integer(words, settings), _integer(words, settings)
    shift_a, shift_b = _shift(words, settings), _shift(words, settings)
    operator = words.randbelow(len(TASKS[task].operators))
    params = {"bits_1": _bit_length(a), "bits_2": _bit_length(b)}
    if task == "division":
        a, shift_a = a * b, shift_a + shift_b
    operands = DecimalArray(np.stack([a, b], 1), -np.stack([shift_a, shift_b], 1))
    return Questions(
        task, operands, np.full(len(a), 2), operator, params, np.ones(len(a), np.bool_)
    )


def _lists(task: str, words: RandomWordArrays, settings: SamplingSettings) -> Questions:
    length, numbers, shift = _list(words, settings)
    operator = words.randbelow(len(TASKS[task].operators))
    valid = (np.where(_present(length), numbers, numbers[:, :1]) != numbers[:, :1]).any(axis=1)
    return _list_questions(task, numbers, length, shift, operator, {"length": length}, valid)


def _interval(words: RandomWordArrays, settings: SamplingSettings) -> Questions:
    length, numbers, shift = _list(words, settings)
    rows, end = np.arange(len(length)), 2 ** (settings.max_bits or 0)
    # Absent boundaries sort last, and serve as the upper edge of the last interval.
    bounds = np.sort(np.where(_present(length), numbers, end), axis=1)
    edges = np.column_stack([np.zeros_like(length), bounds, np.full_like(length, end)])
    position = words.randint(0, length)
    low, high = edges[rows, position], edges[rows, position + 1]
    reference = words.randint(low, np.maximum(high - 1, low))
    repeats = (np.diff(bounds, axis=1) == 0) & _present(length)[:, 1:]
    valid = ~repeats.any(axis=1) & (low < high)
    units = np.column_stack([reference, np.where(_present(length), bounds, 0)])
    params = {"length": length, "position": position}
    operator = np.zeros_like(length)
    return _list_questions("interval", units, length + 1, shift, operator, params, valid)


def _list(
    words: RandomWordArrays, settings: SamplingSettings
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the length of each list, its integers in rows of MAX_LIST_LENGTH, and its shift."""
    length = words.randint(2, MAX_LIST_LENGTH)
    numbers = np.column_stack([_integer(words, settings) for _ in range(MAX_LIST_LENGTH)])
    return length, np.where(_present(length), numbers, 0), _shift(words, settings)


def _list_questions(
    task: str,
    units: IntArray,
    length: IntArray,
    shift: IntArray,
    operator: IntArray,
    params: dict[str, IntArray],
    valid: BoolArray,
) -> Questions:
    exponent = np.broadcast_to(-shift[:, None], units.shape)
    return Questions(task, DecimalArray(units, exponent), length, operator, params, valid)


def _present(length: IntArray) -> BoolArray:
    flags: BoolArray = np.arange(MAX_LIST_LENGTH) < length[:, None]
    return flags


def _bit_length(values: IntArray) -> IntArray:
    """Return the number of bits of positive integers below 2^53."""
    return np.frexp(values.astype(np.float64))[1].astype(np.int64)


SAMPLERS: dict[str, Callable[[RandomWordArrays, SamplingSettings], Questions]] = {
    "minmax": partial(_lists, "minmax"),
    "interval": _interval,
    "sorting": partial(_lists, "sorting"),
    "addition": partial(_pairs, "addition"),
    "multiplication": partial(_pairs, "multiplication"),
    "division": partial(_pairs, "division"),
}
"""The tasks with such questions, as in `numbench.tasks.short_integers`."""
