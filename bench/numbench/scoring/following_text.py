r"""Check whether the text after an answer leaves it the answer.

A text contradicts an answer if, without sentences to the reader (`Let me know if …`), it

- takes the answer back (`answer_context.is_taken_back`),
- has a statement (`statements`) with another value,
- concludes with another number (`conclusions`),
- has other numbers, or a list in another order, after a list,
- mentions another letter that it does not exclude (`not A`), or excludes the answer.

A text confirms an answer if it does not contradict it, and repeats it or has no other words than
those of explanations. Unknown words that do not arrive at the answer may mean anything. Text of
more than 100,000 characters contradicts every answer. Linear time.
"""

from __future__ import annotations

import re
from decimal import Decimal

from numbench.scoring.answer_context import (
    explains,
    is_taken_back,
    without_courtesy,
)
from numbench.scoring.conclusions import COUNTED, concludes_otherwise
from numbench.scoring.notation import NUMBER_LITERAL, AnswerValue, read_number, with_options
from numbench.scoring.statements import find_statements
from numbench.tasks.base import AnswerKind

MAX_CHARACTERS = 100_000

# `A is incorrect`, `not in A`, `Not C`: an excluded option.
_EXCLUDED = re.compile(
    r"\b(?:not|nor|rules? out|eliminates?|excludes?)\b(?: in| interval| option| belong to)*"
    r"[ *(]{0,4}(?P<options>[A-F](?:(?:,| and| or|, or)? [A-F])*)(?!\w)"
    r"|(?<!\w)(?P<option>[A-F])\b[):*]*(?: is|:)? (?:incorrect|wrong|false|not|no)\b",
    re.IGNORECASE,
)
_ENUMERATION = re.compile(r"(?:^|(?<=\n))[ \t]{0,9}[0-9]{1,3}[.)][ \t]{1,9}")
_DIGIT = re.compile("[0-9]")
_LETTER = re.compile(r"(?<!\w)(?:[B-F](?!\w)|A(?!\w)(?!\s[a-z]))")
_NUMBER = r"[-+−–]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,9})?"
_NUMBERS = re.compile(rf"{_NUMBER}(?:\s{{0,9}}(?:[,;<>≤≥\n]|<=|>=|\band\b)\s{{0,9}}{_NUMBER})+")
_ANY_NUMBER = re.compile(_NUMBER)


def confirms(rest: str, value: AnswerValue, kind: AnswerKind, prompt: str = "") -> bool:
    """Return whether the text after an answer with this value leaves it the answer."""
    if contradicts(rest, value, kind, prompt):
        return False
    rest = without_courtesy(rest)
    return explains(rest) or _repeats(rest, value, prompt)


def _repeats(rest: str, value: AnswerValue, prompt: str) -> bool:
    if isinstance(value, str):
        return value in with_options(_LETTER, prompt).findall(rest)
    if isinstance(value, Decimal):
        return any(read_number(match.group()) == value for match in NUMBER_LITERAL.finditer(rest))
    return any(_list_of(match.group()) == value for match in _NUMBERS.finditer(rest))


def contradicts(rest: str, value: AnswerValue, kind: AnswerKind, prompt: str = "") -> bool:
    """Return whether the text after an answer with this value contradicts it."""
    if not rest or rest.isspace():
        return False
    rest = without_courtesy(rest) if len(rest) <= MAX_CHARACTERS else rest
    if kind == "letter" and len(rest) <= MAX_CHARACTERS:
        excluded = with_options(_EXCLUDED, prompt)
        if any(value in (match["options"] or match["option"]) for match in excluded.finditer(rest)):
            return True
        rest = excluded.sub("", rest)
    if len(rest) > MAX_CHARACTERS or is_taken_back(rest):
        return True
    if kind == "letter":
        return any(letter != value for letter in with_options(_LETTER, prompt).findall(rest))
    if not _DIGIT.search(rest):
        return False
    for statement in find_statements(rest, kind):
        segment = rest[statement.start : statement.end]
        if statement.value not in (None, value) and _DIGIT.search(segment):
            return True
    if isinstance(value, Decimal):
        return concludes_otherwise(rest, value, prompt)
    rest = _ENUMERATION.sub("", rest)
    given = _list_of(prompt.rpartition("\n")[2])
    if any(_list_of(match.group()) not in (value, given) for match in _NUMBERS.finditer(rest)):
        return True
    return any(
        read_number(literal.group()) not in value and not COUNTED.match(rest, literal.end())
        for literal in _ANY_NUMBER.finditer(rest)
    )


def _list_of(text: str) -> tuple[Decimal | None, ...]:
    return tuple(read_number(literal) for literal in _ANY_NUMBER.findall(text))
