r"""Find the number that a text concludes with.

A number is a conclusion after `=`, `:`, `is`, `gives`, …, before `is`, or alone on a line, unless
an operator follows. Steps, counts, checks, and roundings of the answer are no other conclusions.
Linear time.
"""

from __future__ import annotations

import re
from decimal import Decimal

from numbench.scoring.answer_context import are_known_numbers, is_object_attached
from numbench.scoring.notation import NUMBER_LITERAL, read_number

_BEFORE_CONCLUSION = re.compile(
    r"(?:[=:：→⇒|]|[=-]>|(?P<is_rounded>≈|\bapproximately|\\approx)|(?:^|\n)[-*+>\s]{0,9}"
    r"|\b(?:is|are|was|be|gives?|makes?|giving|equals?|yields?|yielding|gets?|becomes?|use|read)\b)"
    r"[ \t*_$`(\"'\\]{0,9}\Z",
    re.IGNORECASE,
)
_AFTER_SUBJECT = re.compile(
    r"[ \t*_$`]{0,9}(?:is|was|it is)\b(?! (?:less|greater|smaller|larger|not|negative|positive))",
    re.IGNORECASE,
)
# What follows the number makes it a part of an expression, or a count.
_EXPRESSION = re.compile(
    r"[ \t)$*\\]{0,9}(?:[-+*/×·÷^−]{1,2}[ \t]{0,9}[0-9(]|[=<>≤≥≈]|(?:plus|minus|times|and)\b)",
    re.IGNORECASE,
)
COUNTED = re.compile(
    r"[ \t-]{0,9}(?:digits?|significant|decimals?|places?|steps?|numbers?|operands?|values?"
    r"|elements?|items?)\b"
    r"|(?:st|nd|rd|th)\b",
    re.IGNORECASE,
)
_TOTAL = re.compile(r"\b(?:total|sum|altogether|result|answer)\s{1,9}\Z", re.IGNORECASE)
_COUNT_IN_PARENTHESES = re.compile(r"(?<=\w )\((?:[^()\n=]{0,40}\bn = )?[0-9.]{1,40}\)")
_STEP_IN_PARENTHESES = re.compile(r"\([^()\n]{1,99}[-+*/×·÷][^()\n=]{1,99}=[^()\n=A-Za-z]{1,99}\)")
_ENUMERATION = re.compile(r"(?:^|\n)[ \t]{0,9}[0-9]{1,3}[.)](?=[ \t]{1,9}[A-Za-z*])")
_DECIMAL_COMMA = re.compile(r"(?<![0-9.,])([0-9]{1,20}),([0-9]{1,2})(?![0-9]|[.,][0-9])")
_CHECK = re.compile(r"(?:^|\n)[^\n:=]{0,20}\b(?:check|verif\w*|proof)\b[^\n]*", re.IGNORECASE)
_DIRECT = re.compile(r"(?:=|\bis)\s*\Z")
_OPERAND = re.compile(r"[-+*/×·÷√^(−][ \t$]{0,9}\Z")
_UNENDING = re.compile(r"\s?(?:\.\.\.|…|\\ldots|\\dots|\s*\(?repeating)", re.IGNORECASE)
_MIN_DIGITS = 6


def concludes_otherwise(rest: str, value: Decimal, prompt: str) -> bool:
    """Return whether the last conclusion, or the last number that is not given, differs.

    Left out are calculations with the answer that arrive at a number of the question, or whose line
    starts with a word such as `Check`, and integers of half as many digits as the answer: steps.
    """
    rest = _STEP_IN_PARENTHESES.sub("", _without_checks(rest, value))
    rest = _COUNT_IN_PARENTHESES.sub("", rest)
    rest = _ENUMERATION.sub("\n", _DECIMAL_COMMA.sub(r"\1.\2", rest))
    given = {read_number(match.group()) for match in NUMBER_LITERAL.finditer(prompt)}
    concludes = ends = False
    for literal in NUMBER_LITERAL.finditer(rest):
        if _is_step(literal, value) or COUNTED.match(rest, literal.end()):
            continue
        before = rest[max(literal.start() - 40, 0) : literal.start()]
        sign = _BEFORE_CONCLUSION.search(before)
        is_given = read_number(literal.group()) in given
        if is_given and value not in given and _mentions(before, value):
            continue
        is_expression = bool(_EXPRESSION.match(rest, literal.end()))
        differs = not _agrees(rest, literal, value, bool(sign and sign["is_rounded"]))
        differs |= is_object_attached(rest, literal.start(), literal.end()) and not is_expression
        if (sign or _AFTER_SUBJECT.match(rest, literal.end())) and not is_expression:
            concludes = differs
        elif not differs and _TOTAL.search(before):
            concludes = False
        is_operand = is_expression or _OPERAND.search(before)
        if not is_operand and not is_given:
            ends = differs
    return concludes or ends


def is_after_other_conclusion(clause: str, value: Decimal, prompt: str) -> bool:
    """Return whether the last number of the clause before an answer is another conclusion."""
    if _DIRECT.search(clause) and not are_known_numbers(clause, value, prompt):
        return True
    # The start of a clause is not the start of a line.
    clause, concludes = f",{clause}", False
    for literal in NUMBER_LITERAL.finditer(clause):
        sign = _BEFORE_CONCLUSION.search(clause[max(literal.start() - 40, 0) : literal.start()])
        is_number = (
            sign
            and not _is_step(literal, value)
            and not (
                _EXPRESSION.match(clause, literal.end()) or COUNTED.match(clause, literal.end())
            )
        )
        concludes = bool(is_number) and not _agrees(clause, literal, value, is_rounded=True)
    return concludes


def _is_step(literal: re.Match[str], value: Decimal) -> bool:
    digits = len(value.as_tuple().digits)
    return literal.group().isdigit() and 2 * len(literal.group()) <= digits and digits > 2


def _without_checks(text: str, value: Decimal) -> str:
    """Return the text without lines that start with `Check:` and calculate with the answer."""

    def keep(line: re.Match[str]) -> str:
        return "\n" if _mentions(line[0], value) else line[0]

    return _CHECK.sub(keep, text)


def _mentions(text: str, value: Decimal) -> bool:
    return any(read_number(match.group()) == value for match in NUMBER_LITERAL.finditer(text))


def _agrees(text: str, literal: re.Match[str], value: Decimal, is_rounded: bool) -> bool:
    """Return whether a literal is the value, or the two are roundings of the same number."""
    number = read_number(literal.group())
    if number is None or number == value:
        return number is not None
    digits = len(number.as_tuple().digits)
    if is_rounded and _rounds(number, value):
        return True
    is_long = min(digits, len(value.as_tuple().digits)) >= 15
    if _UNENDING.match(text, literal.end()) and digits >= _MIN_DIGITS:
        return _is_within_last_place(number, value) or _is_within_last_place(value, number)
    return is_long and (
        _is_within_last_place(number, value) or _is_within_last_place(value, number)
    )


def _rounds(number: Decimal, value: Decimal) -> bool:
    """Return whether `number` is `value`, rounded to the decimals of `number`."""
    return abs(value - number) * 2 <= Decimal(1).scaleb(int(number.as_tuple().exponent))


def _is_within_last_place(number: Decimal, value: Decimal) -> bool:
    return abs(value - number) < Decimal(1).scaleb(int(number.as_tuple().exponent))
