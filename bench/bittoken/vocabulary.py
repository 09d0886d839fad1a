"""The tokens of a network and their ids: delimiters, operators, letters, numbers and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from bittoken.encodings import DIGITS_PER_TOKEN, ENCODINGS, find_encoding
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
"""The encodings that a network can be trained with."""


class Vocabulary:
    """The tokens of a network, in the order of their ids, for one number encoding.

    name: the name of the encoding. encoding: None if numbers are written as text, with
    `digits_per_token` digits in a token. is_study: whether the network was trained by the paper's
    own code, which writes questions in another way (see `tokens`). ids: the ids of the tokens that
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
        self.base_tokens = (
            tuple(study_tokens) if study_tokens is not None else _base_tokens(self.digits_per_token)
        )
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


def _base_tokens(digits_per_token: int | None) -> tuple[str, ...]:
    return (
        PAD, BOS, EOS, EOQ, NUM,
        *LIST_OPERATOR_TOKENS.values(), *INFIX_OPERATOR_TOKENS.values(),
        OPEN_BRACKET, COMMA, CLOSE_BRACKET, MINUS, POINT, *CHOICE_LETTERS,
        *_digit_groups(digits_per_token or 1),
    )  # fmt: skip


def _digit_groups(max_length: int) -> list[str]:
    """Return all strings of 1 to `max_length` digits, shorter ones first."""
    lengths = range(1, max_length + 1)
    return ["".join(digits) for n in lengths for digits in product("0123456789", repeat=n)]
