"""How many tokens a sample takes (paper, appendix: mean tokens per sample)."""

from __future__ import annotations

from typing import NamedTuple

from bench.bittoken.vocabulary import (
    CHOICES,
    CLOSE,
    COMMA,
    INFIX,
    LIST_TASKS,
    OPEN,
    Vocabulary,
    spelled,
)
from bench.errors import BadInput
from bench.records import Item


class TokenCount(NamedTuple):
    """Tokens up to and including the end of the question; and those after it, eos included."""

    input: int
    output: int


def count_tokens(item: Item, vocabulary: Vocabulary) -> TokenCount:
    """The tokens of an item's sample. BadInput for an operator that the models do not know.

    A sample is bos, question, eoq, answer, eos. Questions: `n + n`, `<|max|>[n, n, n]`,
    `<|intva|>n[n, n]`; answers: a number, a letter or `[n, n]`.
    """
    numbers = sum(number_tokens(text, vocabulary) for text in item.operands)
    if item.operator in INFIX:
        around = len((INFIX[item.operator],))
    elif item.operator in LIST_TASKS:
        listed = len(item.operands) - (item.operator == "interval")
        around = len((LIST_TASKS[item.operator],)) + _brackets(listed)
    else:
        known = ", ".join((*INFIX, *LIST_TASKS))
        raise BadInput(f"item {item.id}: the small models know no {item.operator!r}, only {known}")
    return TokenCount(2 + around + numbers, _answer_tokens(item, vocabulary) + 1)


def number_tokens(text: str, vocabulary: Vocabulary) -> int:
    """The tokens of a decimal literal: one and perhaps a sign, or as many as spell it."""
    if vocabulary.encoding is None:
        return len(spelled(text, vocabulary.group or 1))
    return 1 + (text.startswith("-") and not vocabulary.encoding.signed)


def _answer_tokens(item: Item, vocabulary: Vocabulary) -> int:
    if isinstance(item.answer, tuple):
        numbers = sum(number_tokens(text, vocabulary) for text in item.answer)
        return numbers + _brackets(len(item.answer))
    return 1 if item.answer in CHOICES else number_tokens(item.answer, vocabulary)


def _brackets(listed: int) -> int:
    """Brackets and commas around so many numbers."""
    return len((OPEN, CLOSE)) + len((COMMA,)) * (listed - 1)
