"""Tokens of a sample: delimiters, operators, choice letters and numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import product

from bittoken.encodings import DIGITS_PER_TOKEN as DIGITS_PER_TOKEN
from bittoken.encodings import ENCODINGS
from bittoken.encodings.base import NumberEncoding
from bittoken.encodings.released import RELEASED_ENCODINGS
from numbench.errors import BadInput
from numbench.tasks.base import LETTERS

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
OPEN_BRACKET, COMMA, CLOSE_BRACKET, MINUS, POINT = "[", ", ", "]", "-", "."
CHOICE_LETTERS = LETTERS[:6]

ENCODING_NAMES = (*ENCODINGS, *DIGITS_PER_TOKEN)


class Vocabulary:
    """The tokens and their ids for one number encoding.

    encoding: a name in `ENCODING_NAMES`, or in `RELEASED_ENCODINGS`, which cannot be trained. text:
    the tokens of a text vocabulary, whose ids follow those of `base_tokens`; empty for a model of
    numbers only.
    """

    def __init__(self, encoding: str, text: Sequence[str] = ()) -> None:
        """Raises BadInput if the encoding is unknown."""
        if encoding not in (*ENCODING_NAMES, *RELEASED_ENCODINGS):
            raise BadInput(f"unknown encoding {encoding!r}; use one of {', '.join(ENCODING_NAMES)}")
        self.name = encoding
        self.encoding: NumberEncoding | None = ENCODINGS.get(
            encoding, RELEASED_ENCODINGS.get(encoding)
        )
        self.digits_per_token = DIGITS_PER_TOKEN.get(encoding)
        self.base_tokens = (
            PAD, BOS, EOS, EOQ, NUM,
            *LIST_OPERATOR_TOKENS.values(), *INFIX_OPERATOR_TOKENS.values(),
            OPEN_BRACKET, COMMA, CLOSE_BRACKET, MINUS, POINT, *CHOICE_LETTERS,
            *_digit_groups(self.digits_per_token or 1),
        )  # fmt: skip
        self.tokens = (*self.base_tokens, *text)

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each token of `base_tokens`. (A text vocabulary may repeat their strings.)"""
        return {token: token_id for token_id, token in enumerate(self.base_tokens)}


def tokenize_decimal(text: str, digits_per_token: int) -> list[str]:
    """Split a plain decimal into tokens of at most `digits_per_token` digits.

    >>> tokenize_decimal("-12345.67", 3)
    ['-', '123', '45', '.', '67']
    """
    return re.findall(rf"[0-9]{{1,{digits_per_token}}}|[-.]", text)


def _digit_groups(max_length: int) -> list[str]:
    """Return all strings of 1 to `max_length` digits, shorter ones first."""
    lengths = range(1, max_length + 1)
    return ["".join(digits) for n in lengths for digits in product("0123456789", repeat=n)]
