"""The layout of a sample: BOS, question, EOQ, answer, EOS (paper, appendix "Setup").

| question | layout |
|---|---|
| two operands | `n + n` |
| list | `<|max|>[n, n, n]` |
| interval | `<|intva|>n[n, n]`: the reference, then the boundaries |

An answer is a number, a letter or a list `[n, n]`.
"""

from __future__ import annotations

from collections.abc import Iterable

from numbench.bittoken.vocabulary import (
    BOS,
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

Slot = str | int
"""A token of the vocabulary, or the index of a number among the operands or answers."""

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


def answer_layout(kind: AnswerKind, number_count: int) -> tuple[Slot, ...]:
    """Return the slots of an answer, up to and including EOS.

    number_count: the length of the list; used only for answers of kind "list".
    """
    if kind == "letter":
        return (ANSWER_LETTER, EOS)
    if kind == "number":
        return (0, EOS)
    return (*_list_layout(range(number_count)), EOS)


def _list_layout(numbers: Iterable[int]) -> tuple[Slot, ...]:
    items = [slot for number in numbers for slot in (COMMA, number)]
    return (OPEN_BRACKET, *items[1:], CLOSE_BRACKET)
