"""From items to samples: bos, question, end of question, answer, eos (appendix, "Setup")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from bench.bittoken.data.packing import Samples
from bench.bittoken.data.ragged import Ints, Ragged, joined, row_sums
from bench.bittoken.data.spelling import number_tokens
from bench.bittoken.vocabulary import (
    BOS,
    CHOICES,
    CLOSE,
    COMMA,
    EOQ,
    EOS,
    INFIX,
    LIST_TASKS,
    OPEN,
    Vocabulary,
)
from bench.tasks import TASKS

Place = Callable[[int], int]


def samples_of(task: str, items: pa.Table, vocabulary: Vocabulary) -> Samples:
    """The samples of items of one task, in their order.

    items: the columns `operands`, `operator` and `answer` of a dataset's Parquet file.
    """
    operands, operator, answer = (
        items[name].combine_chunks() for name in ("operands", "operator", "answer")
    )
    count = np.diff(np.asarray(operands.offsets)).astype(np.int64)
    texts, answers = [operands.flatten()], TASKS[task].answer_kind
    if answers != "letter":
        texts.append(answer.flatten() if answers == "list" else answer)
    tokens, codes = number_tokens(pa.concat_arrays(texts), vocabulary)
    pieces, asked = _pieces(task, operator, answer, count, vocabulary)
    constants = np.arange(len(vocabulary.own))
    rows = joined(Ragged.of(constants, np.ones_like(constants)), tokens)
    flat = rows.take(pieces.values)
    lengths = row_sums(flat.lengths, pieces.lengths)
    question = np.where(_before(pieces.lengths, asked), flat.lengths, 0)
    return Samples(
        flat.values,
        _spread(codes, flat, pieces.values - len(constants)),
        lengths,
        row_sums(question, pieces.lengths),
    )


def _pieces(
    task: str, operator: pa.Array, answer: pa.Array, count: Ints, vocabulary: Vocabulary
) -> tuple[Ragged, Ints]:
    """Each sample as pieces, and how many of them are its question.

    A piece is the id of a token, or the number of tokens + the place of a number among all
    operands and then all answers.
    """
    names = operator.dictionary_encode()
    kinds = np.asarray(names.indices).astype(np.int64)
    first = len(vocabulary.own) + np.cumsum(count) - count
    answer_first = len(vocabulary.own) + int(count.sum()) + _answer_starts(task, count)
    letters = np.zeros(len(count), np.int64)
    if TASKS[task].answer_kind == "letter":
        ids = np.array([vocabulary.ids[letter] for letter in CHOICES])
        letters = ids[np.asarray(pa.compute.index_in(answer, pa.array(list(CHOICES))))]
    parts, rows, asked = [], [], np.empty(len(count), np.int64)
    shapes = kinds * 64 + count
    for shape in np.unique(shapes):
        group = np.flatnonzero(shapes == shape)
        question, reply = _shape(
            names.dictionary[shape // 64].as_py(), shape % 64, task, vocabulary
        )
        matrix = np.empty((len(group), len(question) + len(reply)), np.int64)
        for column, piece in enumerate((*question, *reply)):
            if piece is LETTER:
                matrix[:, column] = letters[group]
            elif piece < 0:
                base = first if column < len(question) else answer_first
                matrix[:, column] = base[group] - 1 - piece
            else:
                matrix[:, column] = piece
        parts.append(Ragged.of(matrix.ravel(), np.full(len(group), matrix.shape[1])))
        rows.append(group)
        asked[group] = len(question)
    whole = parts[0]
    for part in parts[1:]:
        whole = joined(whole, part)
    return whole.take(np.argsort(np.concatenate(rows), kind="stable")), asked


LETTER = 1 << 40
"""Stands for the letter of the answer."""


def _shape(
    operator: str, count: int, task: str, vocabulary: Vocabulary
) -> tuple[list[int], list[int]]:
    """Question and answer of one shape: ids, LETTER, or −1−i for number i."""
    ids = vocabulary.ids
    if operator in INFIX:
        question = [ids[BOS], -1, ids[INFIX[operator]], -2, ids[EOQ]]
    else:
        alone = [-1] if operator == "interval" else []
        question = [ids[BOS], ids[LIST_TASKS[operator]], *alone]
        question += [*_listed(range(len(alone), count), vocabulary), ids[EOQ]]
    kind = TASKS[task].answer_kind
    reply = {"number": [-1], "letter": [LETTER], "list": _listed(range(count), vocabulary)}[kind]
    return question, [*reply, ids[EOS]]


def _listed(numbers: range, vocabulary: Vocabulary) -> list[int]:
    ids = vocabulary.ids
    inside = [piece for i in numbers for piece in (ids[COMMA], -1 - i)][1:]
    return [ids[OPEN], *inside, ids[CLOSE]]


def _answer_starts(task: str, count: Ints) -> Ints:
    """Where each row's answer begins among the numbers of all answers."""
    if TASKS[task].answer_kind == "list":
        return np.cumsum(count) - count
    return np.arange(len(count))


def _before(lengths: Ints, asked: Ints) -> np.ndarray:
    """True for the first `asked[i]` of the `lengths[i]` entries of row i."""
    places = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return places < np.repeat(asked, lengths)


def _spread(codes: np.ndarray, flat: Ragged, numbers: Ints) -> np.ndarray:
    """A row of codes per token: that of the number at its last token, zeros elsewhere."""
    spread = np.zeros((len(flat.values), codes.shape[1]), codes.dtype)
    if codes.shape[1]:
        owners = np.flatnonzero(numbers >= 0)
        ends = (flat.starts + flat.lengths - 1)[owners]
        spread[ends] = codes[numbers[owners]]
    return spread
