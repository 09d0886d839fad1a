"""Questions as tokens and numbers, and answers from them.

A sample is BOS, question, EOQ, answer, EOS (paper, appendix "Setup"):

| question | networks of this package | networks of the paper's own code |
|---|---|---|
| two operands | `n + n` | `n + n` |
| list | `<|max|>[n, n, n]` | `<|max|>n, n, n` |
| interval: the reference, then the boundaries | `<|intva|>n[n, n]` | `<|intva|>n: A n B n C` |

An answer is a number, a letter or a list, `[n, n]` or `n, n`. A number is one token, preceded by
`-` if it is negative and the encoding is unsigned; the encodings "digit" and "subword" write it as
text, in tokens for `-`, groups of digits and the decimal point. Texts are split into tokens by the
longest match, from left to right.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from bittoken.encodings import DIGITS_PER_TOKEN, find_encoding
from bittoken.encodings.base import IntArray
from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS, format_decimal, parse_decimal
from numbench.core.jsonl import read_json
from numbench.errors import BadInput
from numbench.tasks import TASKS
from numbench.tasks.base import LETTERS
from numbench.tasks.prompts import Question

_MAX_PADDING = 0.05
"""The padding of a micro-batch, at most, as a share of the tokens of its step."""

_DECIMAL = r"-?[0-9]+(?:\.[0-9]+)?"
_NUMBER = re.compile(_DECIMAL)
_LIST = re.compile(rf"\[{_DECIMAL}(?:, ?{_DECIMAL})*\]")
_STUDY_LIST = re.compile(rf"{_DECIMAL}(?:, ?{_DECIMAL})+")
_REPLACEMENT_CHARACTER = "\ufffd"
_QUESTION_CHARACTERS = re.compile(r"[-+*/^:,.\[\] A-F0-9]+")

PAD, BOS, EOS, EOQ, NUM = "<|pad|>", "<|bos|>", "<|eos|>", "<|eoq|>", "<|num|>"
"""Padding; beginning and end of a sample; end of its question; a number."""

LIST_OPERATOR_TOKENS = {
    "minimum": "<|min|>",
    "maximum": "<|max|>",
    "ascending": "<|asc|>",
    "descending": "<|desc|>",
    "interval": "<|intva|>",
    "mean": "<|mean|>",
    "std": "<|std|>",
}
"""The first token of a question about a list, by operator."""

INFIX_OPERATOR_TOKENS = {operator: f" {operator} " for operator in "+-*/^"}
OPERATOR_TOKENS = {**LIST_OPERATOR_TOKENS, **INFIX_OPERATOR_TOKENS}
OPEN_BRACKET, COMMA, CLOSE_BRACKET, MINUS, POINT = "[", ", ", "]", "-", "."
CHOICE_LETTERS = LETTERS[:6]


class Vocabulary:
    """The tokens of a network, in the order of their ids, for one number encoding.

    name: the name of the encoding. encoding: None if numbers are written as text, with
    `digits_per_token` digits in a token. is_study: whether the network was trained by the paper's
    own code, which writes questions in another way. ids: the ids of the tokens that
    questions and answers consist of.
    """

    def __init__(
        self,
        encoding: str,
        text_tokens: Sequence[str] = (),
        study_tokens: Sequence[str] | None = None,
    ) -> None:
        """Raise BadInput if the encoding is unknown.

        text_tokens: the tokens of a text vocabulary, whose ids follow the others; none for a
        network that reads numbers only. study_tokens: all tokens of a network of the paper's own
        code, in the order of their ids; "" for an unused id.
        """
        self.name = encoding
        self.encoding = find_encoding(encoding)
        self.digits_per_token = DIGITS_PER_TOKEN.get(encoding)
        self.is_study = study_tokens is not None
        base = _base_tokens(self.digits_per_token) if study_tokens is None else study_tokens
        self.base_tokens = tuple(base)
        self.tokens = (*self.base_tokens, *text_tokens)
        # A text vocabulary may contain the same strings.
        self.ids: Mapping[str, int] = {
            token: token_id for token_id, token in enumerate(self.base_tokens) if token
        }

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def number_id(self) -> int | None:
        """The id of the number token; None if numbers are written as text."""
        return None if self.encoding is None else self.ids[NUM]

    @property
    def pad_id(self) -> int:
        """The id that fills the rows of a batch."""
        return self.ids.get(PAD, 0)

    @property
    def eos_id(self) -> int:
        """The id of the end-of-sample token."""
        return self.ids[EOS]

    def split(self, text: str) -> list[int]:
        """Return the ids of a text: special tokens, and between them the longest match first.

        Raises BadInput if a part of the text has no token.
        """
        try:
            return [self.ids[piece] for piece in self._pattern.findall(text)]
        except KeyError as error:
            raise BadInput(f"the tokenizer has no token for {error}") from None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """The pattern of a special token, of any other token, or of a single character."""
        plain = [token for token in self.ids if _QUESTION_CHARACTERS.fullmatch(token)]
        tokens = map(re.escape, sorted(plain, key=len, reverse=True))
        return re.compile("|".join([r"<\|\w+\|>", *tokens, "."]), re.DOTALL)


class TokenizerModel(Struct, frozen=True):
    """The ids of the tokens."""

    vocab: dict[str, int]


class TokenizerFile(Struct, frozen=True):
    """The part of a Hugging Face `tokenizer.json` that defines token ids."""

    model: TokenizerModel


def read_text_tokens(path: Path) -> list[str]:
    """Return the tokens of a text vocabulary, a `tokenizer.json`, in the order of their ids."""
    vocabulary = read_json(path, TokenizerFile).model.vocab
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _base_tokens(digits_per_token: int | None) -> tuple[str, ...]:
    longest = digits_per_token or 1
    return (
        PAD, BOS, EOS, EOQ, NUM,
        *LIST_OPERATOR_TOKENS.values(), *INFIX_OPERATOR_TOKENS.values(),
        OPEN_BRACKET, COMMA, CLOSE_BRACKET, MINUS, POINT, *CHOICE_LETTERS,
        *(f"{n:0{length}}" for length in range(1, longest + 1) for n in range(10**length)),
    )  # fmt: skip


class Sample(NamedTuple):
    """A question, with or without its answer; or a window of text.

    tokens: ids. values: those of the number tokens, in order (absolute values if the encoding is
    unsigned). first_target: the position of the first token that has a loss.
    """

    tokens: Sequence[int]
    values: Sequence[float]
    first_target: int


class Samples(NamedTuple):
    """Samples as rows that are padded on the right.

    tokens: ids, (B, T). codes: the codes of the number tokens, (B, T, columns), zeros elsewhere; no
    columns if numbers are written as text. is_target: bool (B, T), the tokens that have a loss,
    those of the answer. lengths: tokens of each row, (B,).
    """

    tokens: IntArray
    codes: NDArray[Any]
    is_target: NDArray[np.bool_]
    lengths: IntArray


def pack(samples: Sequence[Sample], vocabulary: Vocabulary) -> Samples:
    """Return samples as the rows of a batch."""
    lengths = np.array([len(sample.tokens) for sample in samples], np.int64)
    column = np.arange(lengths.max(initial=0))
    is_token = column < lengths[:, None]
    tokens = np.full(is_token.shape, vocabulary.pad_id)
    tokens[is_token] = list(chain.from_iterable(sample.tokens for sample in samples))
    first_target = np.array([sample.first_target for sample in samples], np.int64)
    is_target = is_token & (column >= first_target[:, None])
    encoding = vocabulary.encoding
    if encoding is None:
        return Samples(tokens, np.zeros((*tokens.shape, 0), np.int8), is_target, lengths)
    codes = np.zeros((*tokens.shape, encoding.columns), encoding.dtype)
    values = list(chain.from_iterable(sample.values for sample in samples))
    codes[tokens == vocabulary.number_id] = encoding.encode(np.array(values, np.float64))
    return Samples(tokens, codes, is_target, lengths)


def encode_items(task: str, items: pa.Table, vocabulary: Vocabulary) -> list[Sample]:
    """Return the samples of items of one task, in the same order.

    items: the columns `operands`, `operator` and `answer` of a dataset's Parquet file.
    """
    kind, samples = TASKS[task].answer_kind, []
    columns = (items[name].to_pylist() for name in ("operator", "operands", "answer"))
    for operator, operands, answer in zip(*columns, strict=True):
        question = _encode_question(operator, operands, vocabulary)
        values: Sequence[float] = []
        if kind == "number":
            (answer,), values = write_numbers([answer], vocabulary)
        elif kind == "list":
            listed, values = write_numbers(answer, vocabulary)
            answer = f"[{COMMA.join(listed)}]"
        tokens = [*question.tokens, *vocabulary.split(answer + EOS)]
        samples.append(Sample(tokens, [*question.values, *values], question.first_target))
    return samples


def encode_questions(questions: Sequence[Question], vocabulary: Vocabulary) -> Samples:
    """Return the rows of questions, from BOS to EOQ.

    Raises BadInput if an operator is not supported or an operand is not a decimal number.
    """
    return pack([encode_question(question, vocabulary) for question in questions], vocabulary)


def encode_question(question: Question, vocabulary: Vocabulary) -> Sample:
    """Return a question, from BOS to EOQ. Raises BadInput as `encode_questions` does."""
    operands = [_plain_decimal(operand) for operand in question.operands]
    return _encode_question(question.operator, operands, vocabulary)


def write_numbers(
    numbers: Sequence[str], vocabulary: Vocabulary
) -> tuple[Sequence[str], list[float]]:
    """Return decimals as they are written in a sample, and the values of their number tokens."""
    if vocabulary.encoding is None:
        return numbers, []
    values = [float(number) for number in numbers]
    if vocabulary.encoding.signed:
        return [NUM] * len(values), values
    return [MINUS + NUM if value < 0 else NUM for value in values], [abs(v) for v in values]


def _encode_question(operator: str, operands: Sequence[str], vocabulary: Vocabulary) -> Sample:
    """Return a question, from BOS to EOQ.

    Raises BadInput if the operator is unknown or does not take this number of operands.
    """
    numbers, values = write_numbers(operands, vocabulary)
    start, listed = LIST_OPERATOR_TOKENS.get(operator, ""), COMMA.join(numbers)
    if operator in INFIX_OPERATOR_TOKENS and len(numbers) == 2:
        body = f"{numbers[0]}{INFIX_OPERATOR_TOKENS[operator]}{numbers[1]}"
    elif not start or len(numbers) <= (operator == "interval"):
        supported = ", ".join((*INFIX_OPERATOR_TOKENS, *LIST_OPERATOR_TOKENS))
        raise BadInput(
            f"operator {operator!r} with {len(numbers)} operands is not supported by BitToken "
            f"models; supported: {supported}"
        )
    elif operator != "interval":
        body = start + (listed if vocabulary.is_study else f"[{listed}]")
    elif not vocabulary.is_study:
        body = f"{start}{numbers[0]}[{COMMA.join(numbers[1:])}]"
    elif len(numbers) > len(CHOICE_LETTERS):
        raise BadInput(
            f"a question with {len(numbers)} intervals is not supported by checkpoints of the "
            f"paper's code; at most {len(CHOICE_LETTERS)}"
        )
    else:
        choices = zip(numbers[1:], CHOICE_LETTERS[1:], strict=False)
        boundaries = "".join(f" {number} {letter}" for number, letter in choices)
        body = f"{start}{numbers[0]}: {CHOICE_LETTERS[0]}{boundaries}"
    tokens = vocabulary.split(f"{BOS}{body}{EOQ}")
    return Sample(tokens, values, len(tokens))


def _plain_decimal(text: str) -> str:
    try:
        exact = parse_decimal(text)
    except ValueError as error:
        raise BadInput(str(error)) from None
    return text if _NUMBER.fullmatch(text) else format_decimal(exact)


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
    return format_decimal(Decimal(f"{value:.{SIGNIFICANT_DIGITS}g}"))


def _json_number(text: str) -> str:
    """Return a decimal of any length as a JSON number, without leading zeros."""
    sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text)
    whole, point, fraction = digits.partition(".")
    return f"{sign}{whole.lstrip('0') or '0'}{point}{fraction}"


def group_by_length(lengths: Sequence[int], limit: int = 0) -> list[IntArray]:
    """Return the indices of samples with these lengths, in groups of similar length.

    limit: the maximum number of tokens of a group, including padding; 0: no limit.
    """
    order = np.argsort(lengths, kind="stable")[::-1]
    descending = np.array(lengths)[order]
    padding, groups, start = _MAX_PADDING * descending.sum(), list[IntArray](), 0
    while start < len(order):
        longest = int(descending[start])
        # Rows of the longest group, in which padding costs less than another group.
        missing = (longest - descending[start:]).cumsum()
        end = start + int(np.searchsorted(missing, padding, side="right"))
        size = max(limit // longest, 1) if limit else end - start
        groups += [order[first : min(first + size, end)] for first in range(start, end, size)]
        start = end
    return groups
