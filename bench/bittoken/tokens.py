"""Questions as tokens and numbers, and answers from them.

A sample is BOS, question, EOQ, answer, EOS (paper, appendix "Setup"):

| question | networks of this package | networks of the paper's own code |
|---|---|---|
| two operands | `n + n` | `n + n` |
| list | `<|max|>[n, n, n]` | `<|max|>n, n, n` |
| interval: the reference, then the boundaries | `<|intva|>n[n, n]` | `<|intva|>n: A n B n C` |

An answer is a number, a letter or a list, `[n, n]` or `n, n`. A number is one token, preceded by
`-` if it is negative and the encoding is unsigned; the encodings "digit" and "subword" write it as
text, in tokens for `-`, groups of digits and the decimal point.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bittoken.encodings.base import FloatArray, IntArray
from bittoken.vocabulary import (
    BOS,
    CHOICE_LETTERS,
    CLOSE_BRACKET,
    COMMA,
    EOQ,
    EOS,
    INFIX_OPERATOR_TOKENS,
    LIST_OPERATOR_TOKENS,
    MINUS,
    NUM,
    OPEN_BRACKET,
    POINT,
    Vocabulary,
)
from numbench.decimal_numbers import format_decimal, from_decimal, parse_decimal
from numbench.errors import BadInput
from numbench.tasks import TASKS
from numbench.tasks.base import AnswerKind
from numbench.tasks.prompts import Question

SIGNIFICANT_DIGITS = 15
"""Significant digits in the text of a number token."""

_DECIMAL = r"-?[0-9]+(?:\.[0-9]+)?"
_NUMBER = re.compile(_DECIMAL)
_LIST = re.compile(rf"\[{_DECIMAL}(?:, ?{_DECIMAL})*\]")
_STUDY_LIST = re.compile(rf"{_DECIMAL}(?:, ?{_DECIMAL})+")
_REPLACEMENT_CHARACTER = "\ufffd"
_QUESTION_CHARACTERS = re.compile(r"[-+*/^:,. A-F0-9]+")
_HOLE = -1
"""A place in a row that has no token."""


Slot = str | int
"""A token, or the index of a number among the operands, or the answers, of a row."""

ANSWER_LETTER = "<letter>"
"""Placeholder for the choice letter of an answer; not a token of the vocabulary."""


def question_layout(operator: str, operand_count: int) -> tuple[Slot, ...]:
    """Return the slots of a question, from BOS to EOQ.

    Raises BadInput if the operator is unknown or does not take this number of operands.

    >>> question_layout("maximum", 2)
    ('<|bos|>', '<|max|>', '[', 0, ', ', 1, ']', '<|eoq|>')
    """
    if operator in INFIX_OPERATOR_TOKENS and operand_count == 2:
        return (BOS, 0, INFIX_OPERATOR_TOKENS[operator], 1, EOQ)
    before_list = 1 if operator == "interval" else 0
    if operator not in LIST_OPERATOR_TOKENS or operand_count <= before_list:
        supported = ", ".join((*INFIX_OPERATOR_TOKENS, *LIST_OPERATOR_TOKENS))
        raise BadInput(
            f"operator {operator!r} with {operand_count} operands is not supported by BitToken "
            f"models; supported: {supported}"
        )
    listed = _list_layout(range(before_list, operand_count))
    return (BOS, LIST_OPERATOR_TOKENS[operator], *range(before_list), *listed, EOQ)


def answer_layout(kind: AnswerKind, operand_count: int) -> tuple[Slot, ...]:
    """Return the slots of an answer, up to EOS. A list is as long as the one of its question."""
    if kind == "letter":
        return (ANSWER_LETTER, EOS)
    return (*((0,) if kind == "number" else _list_layout(range(operand_count))), EOS)


def _list_layout(numbers: Iterable[int]) -> tuple[Slot, ...]:
    items = [slot for number in numbers for slot in (COMMA, number)]
    return (OPEN_BRACKET, *items[1:], CLOSE_BRACKET)


class Samples(NamedTuple):
    """Rows of tokens, padded on the right.

    tokens: ids, (B, T). values: float64 (B, T), the number of each number token (its absolute
    value if the encoding is unsigned), 0 elsewhere. codes: the codes of the values, (B, T,
    columns), zeros elsewhere; no columns if numbers are written as text. is_target: bool (B, T),
    the tokens that have a loss, those of the answer. lengths: tokens of each row, (B,).
    """

    tokens: IntArray
    values: FloatArray
    codes: NDArray[Any]
    is_target: NDArray[np.bool_]
    lengths: IntArray

    def take(self, rows: Any) -> Samples:
        """Return some rows, by index or mask, without columns that would only be padding."""
        lengths = self.lengths[rows]
        width = int(lengths.max(initial=0))
        return Samples(
            self.tokens[rows, :width],
            self.values[rows, :width],
            self.codes[rows, :width],
            self.is_target[rows, :width],
            lengths,
        )


def encode_batch(task: str, items: pa.Table, vocabulary: Vocabulary) -> Samples:
    """Return the samples of items of one task, in the same order.

    items: the columns `operands`, `operator` and `answer` of a dataset's Parquet file.
    """
    operands, operators, answers = (
        items[name].combine_chunks() for name in ("operands", "operator", "answer")
    )
    return _encode(operands, operators.to_pylist(), vocabulary, TASKS[task].answer_kind, answers)


def encode_questions(questions: Sequence[Question], vocabulary: Vocabulary) -> Samples:
    """Return the rows of questions, from BOS to EOQ.

    Raises BadInput if an operator is not supported or an operand is not a decimal number.
    """
    operands = [[_plain_decimal(text) for text in question.operands] for question in questions]
    operators = [question.operator for question in questions]
    if vocabulary.is_study:
        return _encode_as_the_study(operands, operators, vocabulary)
    return _encode(pa.array(operands, pa.list_(pa.string())), operators, vocabulary)


class _Cells(NamedTuple):
    """Tokens of a part of each row, with holes: ids, or `_HOLE`, and values, both (rows, cells)."""

    tokens: IntArray
    values: FloatArray


def _encode(
    operands: pa.ListArray,
    operators: Sequence[str],
    vocabulary: Vocabulary,
    kind: AnswerKind | None = None,
    answers: pa.Array = None,
) -> Samples:
    """Return the rows of questions and, if `kind` is given, of their answers."""
    counts = np.diff(np.asarray(operands.offsets)).astype(np.int64)
    first_operand = np.cumsum(counts) - counts
    texts, letters = [operands.flatten()], None
    if kind == "letter":
        choices = pa.array(list(CHOICE_LETTERS))
        ids = np.array([vocabulary.ids[letter] for letter in CHOICE_LETTERS])
        letters = ids[np.asarray(pc.index_in(answers, choices))]
    elif kind is not None:
        texts.append(answers.flatten() if kind == "list" else answers)
    first_answer = counts.sum() + (first_operand if kind == "list" else np.arange(len(counts)))
    numbers = _number_cells(pa.concat_arrays(texts), vocabulary)
    # Rows with the same operator and number of operands have the same layout.
    shapes: dict[tuple[str, int], list[int]] = {}
    for row, shape in enumerate(zip(operators, counts.tolist(), strict=True)):
        shapes.setdefault(shape, []).append(row)
    groups = []
    for (operator, count), members in shapes.items():
        rows = np.array(members)
        layout = question_layout(operator, count)
        cells = [_fill(layout, first_operand[rows], numbers, vocabulary)]
        if kind is not None:
            reply = answer_layout(kind, count)
            chosen = None if letters is None else letters[rows]
            cells.append(_fill(reply, first_answer[rows], numbers, vocabulary, chosen))
        groups.append((rows, cells))
    return _pack(groups, vocabulary)


def _fill(
    layout: Sequence[Slot],
    first_number: IntArray,
    numbers: _Cells,
    vocabulary: Vocabulary,
    letters: IntArray | None = None,
) -> _Cells:
    """Return rows with the same layout. first_number: the row in `numbers` of each one's first."""
    tokens, values = [], []
    for slot in layout:
        if isinstance(slot, int):
            tokens.append(numbers.tokens[first_number + slot])
            values.append(numbers.values[first_number + slot])
            continue
        ids = np.full(len(first_number), vocabulary.ids.get(slot, 0), np.int64)
        tokens.append((ids if slot != ANSWER_LETTER or letters is None else letters)[:, None])
        values.append(np.zeros((len(first_number), 1)))
    return _Cells(np.concatenate(tokens, axis=1), np.concatenate(values, axis=1))


def _pack(groups: Sequence[tuple[IntArray, list[_Cells]]], vocabulary: Vocabulary) -> Samples:
    """Return the samples of groups of rows: question and perhaps answer, without their holes."""
    n = sum(len(rows) for rows, _ in groups)
    widths = [sum(part.tokens.shape[1] for part in parts) for _, parts in groups]
    shape = (n, max(widths, default=0))
    cells, values = np.full(shape, _HOLE), np.zeros(shape)
    is_answer = np.zeros(shape, bool)
    for (rows, parts), width in zip(groups, widths, strict=True):
        cells[rows, :width] = np.concatenate([part.tokens for part in parts], axis=1)
        values[rows, :width] = np.concatenate([part.values for part in parts], axis=1)
        is_answer[rows, parts[0].tokens.shape[1] : width] = True
    is_token = cells != _HOLE
    lengths = is_token.sum(1)
    row, column = np.nonzero(is_token)
    place = (row, (is_token.cumsum(1) - 1)[row, column])
    shape = (n, int(lengths.max(initial=0)))
    tokens = np.full(shape, vocabulary.pad_id)
    numbers, is_target = np.zeros(shape), np.zeros(shape, bool)
    tokens[place], numbers[place] = cells[row, column], values[row, column]
    is_target[place] = is_answer[row, column]
    return Samples(tokens, numbers, number_codes(tokens, numbers, vocabulary), is_target, lengths)


def number_codes(tokens: IntArray, values: FloatArray, vocabulary: Vocabulary) -> NDArray[Any]:
    """Return the codes of the numbers of tokens, (…, columns); zeros for all other tokens."""
    encoding = vocabulary.encoding
    if encoding is None:
        return np.zeros((*tokens.shape, 0), np.int8)
    codes = np.zeros((*tokens.shape, encoding.columns), encoding.dtype)
    is_number = tokens == vocabulary.number_id
    codes[is_number] = encoding.encode(values[is_number])
    return codes


def _number_cells(texts: pa.StringArray, vocabulary: Vocabulary) -> _Cells:
    """Return the tokens of plain decimals."""
    encoding = vocabulary.encoding
    if encoding is None:
        return _digit_cells(texts, vocabulary)
    values = np.asarray(pc.cast(texts, pa.float64()))[:, None]
    tokens = np.full((len(values), 1), vocabulary.number_id)
    if encoding.signed:
        return _Cells(tokens, values)
    sign = np.where(values < 0, vocabulary.ids[MINUS], _HOLE)
    return _Cells(np.hstack([sign, tokens]), np.hstack([np.zeros_like(values), np.abs(values)]))


def _digit_cells(texts: pa.StringArray, vocabulary: Vocabulary) -> _Cells:
    """Return decimals as text: a cell per character; the first one of a group has its token."""
    group = vocabulary.digits_per_token or 1
    width = pc.max(pc.binary_length(texts)).as_py() or 0
    shape = (len(texts), width + group)
    padded = pc.ascii_rpad(texts, shape[1]).buffers()[2]
    characters = np.frombuffer(padded, np.uint8, shape[0] * shape[1]).reshape(shape)
    digit = characters.astype(np.int64) - ord("0")
    is_digit = (digit >= 0) & (digit <= 9)
    # The tokens of shorter groups come first.
    first_token = vocabulary.ids["0"] + np.array([0, 0, 10, 110])
    tokens, in_run = np.full((len(texts), width), _HOLE), np.zeros(len(texts), np.int64)
    for column in range(width):
        in_run = np.where(is_digit[:, column], in_run + 1, 0)
        value, length = digit[:, column], np.ones(len(texts), np.int64)
        for offset in range(1, group):
            is_longer = (length == offset) & is_digit[:, column + offset]
            value = np.where(is_longer, 10 * value + digit[:, column + offset], value)
            length += is_longer
        starts = in_run % group == 1 % group
        starts &= is_digit[:, column]
        tokens[starts, column] = (first_token[length] + value)[starts]
    for mark in (MINUS, POINT):
        tokens[characters[:, :width] == ord(mark)] = vocabulary.ids[mark]
    return _Cells(tokens, np.zeros(tokens.shape))


def _plain_decimal(text: str) -> str:
    try:
        exact = parse_decimal(text)
    except ValueError as error:
        raise BadInput(str(error)) from None
    return text if _NUMBER.fullmatch(text) else format_decimal(exact)


def _encode_as_the_study(
    operands: Sequence[Sequence[str]], operators: Sequence[str], vocabulary: Vocabulary
) -> Samples:
    """Return the rows of questions as the paper's own code splits them: by the longest match."""
    groups = []
    for row, (numbers, operator) in enumerate(zip(operands, operators, strict=True)):
        text, values = study_text(operator, numbers, vocabulary)
        tokens = np.array(split_text(text, vocabulary))
        cells = np.zeros(len(tokens))
        if values:
            cells[tokens == vocabulary.number_id] = values
        groups.append((np.array([row]), [_Cells(tokens[None], cells[None])]))
    return _pack(groups, vocabulary)


def study_text(
    operator: str, operands: Sequence[str], vocabulary: Vocabulary
) -> tuple[str, list[float]]:
    """Return a question in the form of the paper's own code, and the values of its NUM tokens."""
    texts, values = list(operands), list[float]()
    if vocabulary.encoding is not None:
        values = [float(text) for text in operands]
        if not vocabulary.encoding.signed:
            values = [abs(value) for value in values]
            texts = [(MINUS if text.startswith("-") else "") + NUM for text in operands]
        else:
            texts = [NUM] * len(operands)
    layout = question_layout(operator, len(operands))
    if operator == "interval":
        if len(operands) > len(CHOICE_LETTERS):
            raise BadInput(
                f"a question with {len(operands)} intervals is not supported by checkpoints of the "
                f"paper's code; at most {len(CHOICE_LETTERS)}"
            )
        choices = zip(texts[1:], CHOICE_LETTERS[1:], strict=False)
        boundaries = "".join(f" {text} {letter}" for text, letter in choices)
        body = f"{LIST_OPERATOR_TOKENS[operator]}{texts[0]}: {CHOICE_LETTERS[0]}{boundaries}"
        return f"{BOS}{body}{EOQ}", values
    pieces = [texts[slot] if isinstance(slot, int) else slot for slot in layout]
    return "".join(piece for piece in pieces if piece not in (OPEN_BRACKET, CLOSE_BRACKET)), values


def split_text(text: str, vocabulary: Vocabulary) -> list[int]:
    """Return the ids of a text: special tokens, and between them the longest match first.

    Raises BadInput if a part of the text has no token.
    """
    ids = []
    for piece in _token_pattern(vocabulary).findall(text):
        if piece not in vocabulary.ids:
            raise BadInput(f"the tokenizer has no token for {piece!r}")
        ids.append(vocabulary.ids[piece])
    return ids


@lru_cache(maxsize=8)
def _token_pattern(vocabulary: Vocabulary) -> re.Pattern[str]:
    """Return the pattern of a special token, of any other token, or of a single character."""
    plain = [token for token in vocabulary.ids if _QUESTION_CHARACTERS.fullmatch(token)]
    tokens = map(re.escape, sorted(plain, key=len, reverse=True))
    return re.compile("|".join([r"<\|\w+\|>", *tokens, "."]), re.DOTALL)


def answer_json(tokens: Sequence[int], values: Sequence[float], vocabulary: Vocabulary) -> str:
    """Return a generated answer as the JSON object `{"answer": …}` that is scored, or "".

    values: those of the number tokens, in order. Each is written as a plain decimal of at most 15
    significant digits. The answer is `null`, with the text as a second field, if the text is not a
    single number, letter or list of numbers, or if the answer was cut off before its EOS token.
    """
    text = answer_text(tokens, values, vocabulary).strip()
    ended = tokens[-1:] == [vocabulary.eos_id]
    pattern = _STUDY_LIST if vocabulary.is_study else _LIST
    if not text:
        return ""
    if ended and _NUMBER.fullmatch(text):
        return f'{{"answer": {_json_number(text)}}}'
    if ended and text in tuple(CHOICE_LETTERS):
        return f'{{"answer": "{text}"}}'
    if ended and pattern.fullmatch(text):
        numbers = ", ".join(_json_number(number) for number in _NUMBER.findall(text))
        return f'{{"answer": [{numbers}]}}'
    return f'{{"answer": null, "said": {json.dumps(text)}}}'


def answer_text(tokens: Sequence[int], values: Sequence[float], vocabulary: Vocabulary) -> str:
    """Return the text of tokens, without the EOS token."""
    numbers = iter(values)
    text, previous_is_number = "", False
    for token in tokens:
        if token == vocabulary.eos_id:
            continue
        is_number = token == vocabulary.number_id
        if is_number:
            part = _format_number(next(numbers))
        else:
            is_known = token < len(vocabulary) and vocabulary.tokens[token]
            part = vocabulary.tokens[token] if is_known else _REPLACEMENT_CHARACTER
        if text and part and _would_join(text[-1], part[0]) and (is_number or previous_is_number):
            text += _REPLACEMENT_CHARACTER  # otherwise two numbers would parse as one
        text += part
        previous_is_number = is_number
    return text


def _would_join(left: str, right: str) -> bool:
    return left in "0123456789." and right in "0123456789."


def _format_number(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    return format_decimal(from_decimal(Decimal(f"{value:.{SIGNIFICANT_DIGITS}g}")))


def _json_number(text: str) -> str:
    """Return a decimal of any length as a JSON number, without leading zeros."""
    sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text)
    whole, point, fraction = digits.partition(".")
    return f"{sign}{whole.lstrip('0') or '0'}{point}{fraction}"
