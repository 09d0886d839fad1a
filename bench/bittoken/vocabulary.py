"""The tokens of a sample: what stands around the numbers, and how the numbers are written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import product

from bench.bittoken.encodings import ENCODINGS
from bench.bittoken.encodings.base import NumberEncoding
from bench.errors import BadInput
from bench.tasks.phrasing import LETTERS

PAD, BOS, EOS, EOQ, NUM = "<|pad|>", "<|bos|>", "<|eos|>", "<|eoq|>", "<|num|>"
"""Filling; begin and end of a sample; end of its question; a number."""

LIST_TASKS = {
    "minimum": "<|min|>",
    "maximum": "<|max|>",
    "ascending": "<|asc|>",
    "descending": "<|desc|>",
    "interval": "<|intva|>",
    "mean": "<|mean|>",
    "std": "<|std|>",
}
"""The token that opens a question about a list, by operator."""

INFIX = {operator: f" {operator} " for operator in "+-*/^"}
OPEN, COMMA, CLOSE, MINUS, POINT = "[", ", ", "]", "-", "."
CHOICES = LETTERS[:6]

GROUPS = {"digit": 1, "subword": 3}
"""Spellings of a number as text: the most digits that one token holds."""

ENCODING_NAMES = (*ENCODINGS, *GROUPS)


class Vocabulary:
    """Tokens and their ids for one way to write numbers.

    encoding: a name of `ENCODING_NAMES`. text: the tokens of a text vocabulary, whose ids follow
    those of the tokens above; none in a number-only model.
    """

    def __init__(self, encoding: str, text: Sequence[str] = ()) -> None:
        """BadInput for an unknown encoding."""
        if encoding not in ENCODING_NAMES:
            raise BadInput(
                f"unknown encoding {encoding!r}: give one of {', '.join(ENCODING_NAMES)}"
            )
        self.name = encoding
        self.encoding: NumberEncoding | None = ENCODINGS.get(encoding)
        self.group = GROUPS.get(encoding)
        self.own = (
            PAD, BOS, EOS, EOQ, NUM,
            *LIST_TASKS.values(), *INFIX.values(), OPEN, COMMA, CLOSE, MINUS, POINT, *CHOICES,
            *_digit_groups(self.group or 1),
        )  # fmt: skip
        self.tokens = (*self.own, *text)

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each token of `own`. (A text vocabulary may hold the same strings again.)"""
        return {token: number for number, token in enumerate(self.own)}


def spelled(text: str, group: int) -> list[str]:
    """A plain decimal as tokens of at most `group` digits.

    >>> spelled("-12345.67", 3)
    ['-', '123', '45', '.', '67']
    """
    return re.findall(rf"[0-9]{{1,{group}}}|[-.]", text)


def _digit_groups(longest: int) -> list[str]:
    """All strings of one to `longest` digits, shorter ones first."""
    lengths = range(1, longest + 1)
    return ["".join(digits) for n in lengths for digits in product("0123456789", repeat=n)]
