"""Vectorised conversion of items to samples: BOS, question, EOQ, answer, EOS."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bittoken.data.packing import RaggedArray, Samples, concatenate_rows, row_sums
from bittoken.encodings.base import Codes, IntArray
from bittoken.sample_layout import ANSWER_LETTER, Slot, answer_layout, question_layout
from bittoken.vocabulary import CHOICE_LETTERS, MINUS, NUM, POINT, Vocabulary
from numbench.tasks import TASKS

_MAX_OPERANDS = 64


def tokenize_items(task: str, items: pa.Table, vocabulary: Vocabulary) -> Samples:
    """Return the samples of items of one task, in the same order.

    items: the columns `operands`, `operator` and `answer` of a dataset's Parquet file.
    """
    operands, operator, answer = (
        items[name].combine_chunks() for name in ("operands", "operator", "answer")
    )
    operand_counts = np.diff(np.asarray(operands.offsets)).astype(np.int64)
    texts, answer_kind = [operands.flatten()], TASKS[task].answer_kind
    if answer_kind != "letter":
        texts.append(answer.flatten() if answer_kind == "list" else answer)
    number_tokens, number_codes = tokenize_numbers(pa.concat_arrays(texts), vocabulary)
    pieces, prompt_pieces = _pieces(task, operator, answer, operand_counts, vocabulary)
    constants = np.arange(len(vocabulary.base_tokens))
    piece_tokens = concatenate_rows(
        RaggedArray.from_lengths(constants, np.ones_like(constants)), number_tokens
    )
    tokens = piece_tokens.take(pieces.values)
    prompt_lengths = np.where(_prompt_mask(pieces.lengths, prompt_pieces), tokens.lengths, 0)
    return Samples(
        tokens.values,
        _codes_per_token(number_codes, tokens, pieces.values - len(constants)),
        row_sums(tokens.lengths, pieces.lengths),
        row_sums(prompt_lengths, pieces.lengths),
    )


def _pieces(
    task: str,
    operator: pa.Array,
    answer: pa.Array,
    operand_counts: IntArray,
    vocabulary: Vocabulary,
) -> tuple[RaggedArray, IntArray]:
    """Return the pieces of each sample, and how many of them belong to its question.

    A piece is an index, with V the number of base tokens and N the number of all operands:

    - 0 … V − 1: a token;
    - V … V + N − 1: an operand, counted over all items;
    - V + N …: a number of an answer, counted over all items.
    """
    operators = operator.dictionary_encode()
    operator_index = np.asarray(operators.indices).astype(np.int64)
    constants, operands = len(vocabulary.base_tokens), int(operand_counts.sum())
    first_operand = constants + np.cumsum(operand_counts) - operand_counts
    first_answer = constants + operands + _answer_starts(task, operand_counts)
    letters = _letter_ids(task, answer, vocabulary)
    parts, rows, prompt_pieces = [], [], np.empty(len(operand_counts), np.int64)
    # Samples with the same operator and number of operands have the same layout.
    shapes = operator_index * _MAX_OPERANDS + operand_counts
    for shape in np.unique(shapes):
        group = np.flatnonzero(shapes == shape)
        index, count = divmod(int(shape), _MAX_OPERANDS)
        question = question_layout(operators.dictionary[index].as_py(), count)
        reply = answer_layout(TASKS[task].answer_kind, count)
        matrix = np.concatenate(
            [
                _layout_pieces(question, first_operand[group], letters[group], vocabulary),
                _layout_pieces(reply, first_answer[group], letters[group], vocabulary),
            ],
            axis=1,
        )
        parts.append(RaggedArray.from_lengths(matrix.ravel(), np.full(len(group), matrix.shape[1])))
        rows.append(group)
        prompt_pieces[group] = len(question)
    samples = parts[0]
    for part in parts[1:]:
        samples = concatenate_rows(samples, part)
    return samples.take(np.argsort(np.concatenate(rows), kind="stable")), prompt_pieces


def _layout_pieces(
    layout: Sequence[Slot], first_number: IntArray, letters: IntArray, vocabulary: Vocabulary
) -> IntArray:
    """Return the pieces of samples with the same layout, shape (samples, slots)."""
    matrix = np.empty((len(first_number), len(layout)), np.int64)
    for column, slot in enumerate(layout):
        if isinstance(slot, int):
            matrix[:, column] = first_number + slot
        elif slot == ANSWER_LETTER:
            matrix[:, column] = letters
        else:
            matrix[:, column] = vocabulary.ids[slot]
    return matrix


def _letter_ids(task: str, answer: pa.Array, vocabulary: Vocabulary) -> IntArray:
    """Return the token id of each answer, zeros if the answers are not letters."""
    if TASKS[task].answer_kind != "letter":
        return np.zeros(len(answer), np.int64)
    ids = np.array([vocabulary.ids[letter] for letter in CHOICE_LETTERS])
    letter_ids: IntArray = ids[np.asarray(pc.index_in(answer, pa.array(list(CHOICE_LETTERS))))]
    return letter_ids


def _answer_starts(task: str, operand_counts: IntArray) -> IntArray:
    """Return the index of the first number of each answer among those of all answers."""
    if TASKS[task].answer_kind == "list":
        return np.cumsum(operand_counts) - operand_counts
    return np.arange(len(operand_counts))


def _prompt_mask(lengths: IntArray, prompt_pieces: IntArray) -> NDArray[np.bool_]:
    """Return True for the first `prompt_pieces[i]` of the `lengths[i]` entries of row i."""
    positions = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    mask: NDArray[np.bool_] = positions < np.repeat(prompt_pieces, lengths)
    return mask


def _codes_per_token(codes: Codes, tokens: RaggedArray, numbers: IntArray) -> Codes:
    """Return one row of codes per token.

    codes: those of all numbers. tokens: the tokens of each piece. numbers: the index of the number
    of each piece, negative if it is not a number. The code of a number belongs to its last token
    (a sign may precede it); all other rows are zeros.
    """
    per_token = np.zeros((len(tokens.values), codes.shape[1]), codes.dtype)
    if codes.shape[1]:
        number_pieces = np.flatnonzero(numbers >= 0)
        last_tokens = (tokens.starts + tokens.lengths - 1)[number_pieces]
        per_token[last_tokens] = codes[numbers[number_pieces]]
    return per_token


def tokenize_numbers(
    texts: pa.StringArray, vocabulary: Vocabulary
) -> tuple[RaggedArray, NDArray[np.generic]]:
    """Return the tokens of plain decimals and the codes of their values, (numbers, columns)."""
    if vocabulary.encoding is None:
        return _tokenize_digits(texts, vocabulary), np.zeros((len(texts), 0), np.int8)
    values = np.asarray(pc.cast(texts, pa.float64()))
    codes = vocabulary.encoding.encode(values)
    number = vocabulary.ids[NUM]
    if vocabulary.encoding.signed:
        ones = np.ones(len(values), np.int64)
        return RaggedArray.from_lengths(np.full(len(values), number), ones), codes
    signed_and_unsigned = RaggedArray(
        np.array([vocabulary.ids[MINUS], number]), np.array([0, 1]), np.array([2, 1])
    )
    return signed_and_unsigned.take(np.where(values < 0, 0, 1)), codes


def _tokenize_digits(texts: pa.StringArray, vocabulary: Vocabulary) -> RaggedArray:
    """Return the tokens of decimals written as text: signs, points and groups of digits."""
    assert vocabulary.digits_per_token is not None
    text_lengths = np.asarray(pc.binary_length(texts)).astype(np.int64)
    characters = np.frombuffer(_utf8_buffer(texts), np.uint8).astype(np.int64)
    is_digit = (characters >= ord("0")) & (characters <= ord("9"))
    text_starts = np.cumsum(text_lengths) - text_lengths
    starts_run = ~is_digit
    starts_run[1:] |= ~is_digit[:-1]
    starts_run[text_starts] = True
    # A run is a sign, a point or consecutive digits; groups are counted from its start.
    run_starts = np.flatnonzero(starts_run)
    run_lengths = np.diff(np.r_[run_starts, len(characters)])
    position_in_run = np.arange(len(characters)) - np.repeat(run_starts, run_lengths)
    starts_group = position_in_run % vocabulary.digits_per_token == 0
    group_starts = np.flatnonzero(starts_group)
    group_lengths = np.diff(np.r_[group_starts, len(characters)])
    tokens = _group_ids(characters, group_starts, group_lengths, vocabulary)
    return RaggedArray.from_lengths(
        tokens, np.add.reduceat(starts_group.astype(np.int64), text_starts)
    )


def _group_ids(
    characters: IntArray, starts: IntArray, lengths: IntArray, vocabulary: Vocabulary
) -> IntArray:
    """Return the token id of each group of digits, sign or point in `characters`."""
    digits = np.r_[characters, np.zeros(3, np.int64)] - ord("0")
    values = digits[starts]
    for offset in range(1, vocabulary.digits_per_token or 1):
        values = np.where(lengths > offset, values * 10 + digits[starts + offset], values)
    # Groups are ordered by length, then by value.
    shorter_groups = np.array([0, 0, 10, 110])
    tokens: IntArray = vocabulary.ids["0"] + shorter_groups[lengths] + values
    for mark in (MINUS, POINT):
        tokens[characters[starts] == ord(mark)] = vocabulary.ids[mark]
    return tokens


def _utf8_buffer(texts: pa.StringArray) -> memoryview:
    _, offsets, data = texts.buffers()
    bounds = memoryview(offsets).cast("i")
    return memoryview(data)[bounds[texts.offset] : bounds[texts.offset + len(texts)]]
