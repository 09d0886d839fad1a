"""The layout of a sample: BOS, question, EOQ, answer, EOS (paper, appendix "Setup").

| question | layout "brackets" | layout "plain" |
|---|---|---|
| two operands | `n + n` | `n + n` |
| list | `<|max|>[n, n, n]` | `<|max|>n, n, n` |
| interval: the reference, then the boundaries | `<|intva|>n[n, n]` | `<|intva|>n: A n B n C` |

An answer is a number, a letter or a list, `[n, n]` or `n, n`. Networks trained by numbench have
"brackets"; the study's have "plain" (the column `prompt` of its files).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Literal

from bittoken.vocabulary import (
    BOS,
    CHOICE_LETTERS,
    CLOSE_BRACKET,
    COMMA,
    EOQ,
    EOS,
    INFIX_OPERATOR_TOKENS,
    LIST_OPERATOR_TOKENS,
    OPEN_BRACKET,
)
from numbench.errors import BadInput
from numbench.tasks.base import AnswerKind

Layout = Literal["brackets", "plain"]

Slot = str | int
"""A piece of text, or the index of a number among the operands or answers.

With "brackets", each piece of text is a token of the vocabulary.
"""

ANSWER_LETTER = "<letter>"
"""Placeholder for the choice letter of an answer; not a token of the vocabulary."""


def question_layout(
    operator: str, operand_count: int, layout: Layout = "brackets"
) -> tuple[Slot, ...]:
    """Return the slots of a question, from BOS to EOQ.

    Raises BadInput if the operator is unknown or does not take this number of operands.

    >>> question_layout("maximum", 2)
    ('<|bos|>', '<|max|>', '[', 0, ', ', 1, ']', '<|eoq|>')
    >>> question_layout("interval", 2, "plain")
    ('<|bos|>', '<|intva|>', 0, ': ', 'A', ' ', 1, ' ', 'B', '<|eoq|>')
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
    if layout == "plain" and operator == "interval":
        return (BOS, LIST_OPERATOR_TOKENS[operator], *_plain_interval(operand_count), EOQ)
    listed = _list_layout(range(before_list, operand_count))
    if layout == "plain":
        listed = listed[1:-1]
    return (BOS, LIST_OPERATOR_TOKENS[operator], *range(before_list), *listed, EOQ)


def answer_layout(kind: AnswerKind, number_count: int) -> tuple[Slot, ...]:
    """Return the slots of an answer, up to and including EOS.

    number_count: the length of the list; used only for answers of kind "list".
    """
    if kind == "letter":
        return (ANSWER_LETTER, EOS)
    if kind == "number":
        return (0, EOS)
    return (*_list_layout(range(number_count)), EOS)


def _plain_interval(operand_count: int) -> tuple[Slot, ...]:
    if operand_count > len(CHOICE_LETTERS):
        raise BadInput(
            f"a question with {operand_count} intervals is not supported by checkpoints of the "
            f"study; at most {len(CHOICE_LETTERS)}"
        )
    choices: list[tuple[Slot, ...]] = [(CHOICE_LETTERS[0],)]
    choices += [(" ", n, " ", CHOICE_LETTERS[n]) for n in range(1, operand_count)]
    return (0, ": ", *itertools.chain.from_iterable(choices))


def _list_layout(numbers: Iterable[int]) -> tuple[Slot, ...]:
    items = [slot for number in numbers for slot in (COMMA, number)]
    return (OPEN_BRACKET, *items[1:], CLOSE_BRACKET)
