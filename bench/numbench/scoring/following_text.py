r"""Check whether the text after an answer leaves it the answer.

A text contradicts an answer if, without sentences to the reader (`Let me know if …`), it

- takes the answer back (`answer_context.is_taken_back`),
- has a statement (`statements`) with another value,
- concludes with another number: the last one after `=`, `:`, `is`, `gives`, …, before `is` or alone
  on a line; or ends with a number that is neither the answer nor in the question, nor a count,
- has other numbers, or a list in another order, after a list,
- mentions another letter, after a letter.

A text confirms an answer if it does not contradict it, and repeats it or has no other words than
those of explanations. Unknown words that do not arrive at the answer may mean anything. Text of
more than 100,000 characters contradicts every answer. Linear time.
"""

from __future__ import annotations

import re
from decimal import Decimal

from numbench.scoring.answer_context import (
    explains,
    is_object_attached,
    is_taken_back,
    without_courtesy,
)
from numbench.scoring.notation import NUMBER_LITERAL, SIGNS, AnswerValue, read_number
from numbench.scoring.statements import find_statements
from numbench.tasks.base import AnswerKind

MAX_CHARACTERS = 100_000

_DIGIT = re.compile("[0-9]")
_LETTER = re.compile(r"(?<!\w)(?:[B-F](?!\w)|A(?!\w)(?!\s[a-z]))")
_BEFORE_CONCLUSION = re.compile(
    r"(?:[=:：→⇒>|]|(?P<is_rounded>≈|\bapproximately)|(?:^|\n)[-*+>\s]{0,9}"
    r"|\b(?:is|are|was|be|gives?|makes?|equals?|yields?|gets?|becomes?|use|read)\b)"
    r"[ \t*_$`(\"'\\]{0,9}\Z",
    re.IGNORECASE,
)
_AFTER_SUBJECT = re.compile(r"[ \t*_$`]{0,9}(?:is|was|it is)\b", re.IGNORECASE)
# What follows the number makes it a part of an expression, or a count.
_EXPRESSION = re.compile(
    r"[ \t)$*\\]{0,9}(?:[-+*/×·÷^−]{1,2}[ \t]{0,9}[0-9(]|[=<>≤≥≈]|(?:plus|minus|times|and)\b)",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"[ \t-]{0,9}(?:digits?|significant|decimals?|places?|steps?|numbers?|operands?|values?)\b"
    r"|[.)][ \t]{1,9}[A-Za-z*]",
    re.IGNORECASE,
)
_NUMBER = r"[-+−–]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,9})?"
_NUMBERS = re.compile(rf"{_NUMBER}(?:\s{{0,9}}(?:[,;<>≤≥\n]|<=|>=|\band\b)\s{{0,9}}{_NUMBER})+")
_ANY_NUMBER = re.compile(_NUMBER)
_TOTAL = re.compile(r"\b(?:total|sum|altogether|result|answer)\s{1,9}\Z", re.IGNORECASE)
_STEP_IN_PARENTHESES = re.compile(r"\([^()\n]{1,99}[-+*/×·÷][^()\n=]{1,99}=[^()\n=A-Za-z]{1,99}\)")


def confirms(rest: str, value: AnswerValue, kind: AnswerKind, prompt: str = "") -> bool:
    """Return whether the text after an answer with this value leaves it the answer."""
    if contradicts(rest, value, kind, prompt):
        return False
    rest = without_courtesy(rest)
    return explains(rest) or _repeats(rest, value)


def _repeats(rest: str, value: AnswerValue) -> bool:
    if isinstance(value, str):
        return value in _LETTER.findall(rest)
    if isinstance(value, Decimal):
        return any(read_number(match.group()) == value for match in NUMBER_LITERAL.finditer(rest))
    return any(_list_of(match.group()) == value for match in _NUMBERS.finditer(rest))


def contradicts(rest: str, value: AnswerValue, kind: AnswerKind, prompt: str = "") -> bool:
    """Return whether the text after an answer with this value contradicts it."""
    if not rest or rest.isspace():
        return False
    rest = without_courtesy(rest) if len(rest) <= MAX_CHARACTERS else rest
    if len(rest) > MAX_CHARACTERS or is_taken_back(rest):
        return True
    if kind == "letter":
        return any(letter != value for letter in _LETTER.findall(rest))
    if not _DIGIT.search(rest):
        return False
    for statement in find_statements(rest, kind):
        segment = rest[statement.start : statement.end]
        if statement.value != value and _DIGIT.search(segment):
            return True
    if isinstance(value, Decimal):
        return _ends_otherwise(rest, value, prompt)
    if any(_list_of(match.group()) != value for match in _NUMBERS.finditer(rest)):
        return True
    return any(
        read_number(literal.group()) not in value and not _COUNTED.match(rest, literal.end())
        for literal in _ANY_NUMBER.finditer(rest)
    )


def _ends_otherwise(rest: str, value: Decimal, prompt: str) -> bool:
    """Return whether the last conclusion, or the last number that is not given, differs."""
    rest = _STEP_IN_PARENTHESES.sub("", rest)
    given: set[str] | None = None
    concludes = ends = False
    for literal in NUMBER_LITERAL.finditer(rest):
        if _COUNTED.match(rest, literal.end()):
            continue
        sign = _BEFORE_CONCLUSION.search(rest[max(literal.start() - 40, 0) : literal.start()])
        is_expression = bool(_EXPRESSION.match(rest, literal.end()))
        number = read_number(literal.group())
        differs = number != value and not (sign and sign["is_rounded"] and _rounds(number, value))
        differs |= is_object_attached(rest, literal.start(), literal.end()) and not is_expression
        if (sign or _AFTER_SUBJECT.match(rest, literal.end())) and not is_expression:
            concludes = differs
        elif not differs and _TOTAL.search(rest[max(literal.start() - 20, 0) : literal.start()]):
            concludes = False
        if given is None:
            given = {match.group().lstrip(SIGNS) for match in NUMBER_LITERAL.finditer(prompt)}
        if literal.group().lstrip(SIGNS) not in given:
            ends = differs
    return concludes or ends


def _rounds(number: Decimal | None, value: Decimal) -> bool:
    """Return whether `number` is `value`, rounded to the decimals of `number`."""
    exponent = None if number is None else number.as_tuple().exponent
    if number is None or not isinstance(exponent, int):
        return False
    return abs(value - number) * 2 <= Decimal(1).scaleb(exponent)


def _list_of(text: str) -> tuple[Decimal | None, ...]:
    return tuple(read_number(literal) for literal in _ANY_NUMBER.findall(text))
