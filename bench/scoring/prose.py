"""The truth in a text that holds no answer: the right value in a notation nobody asked for.

Such a response stays wrong. It is only named, so that who computes well and writes badly is told
from who computes badly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import cycle

from bench.records import Item
from bench.scoring.compared import compared_as
from bench.scoring.metrics import quotient
from bench.scoring.notation import EXPONENT, SIGN, read_number
from bench.tasks import TASKS

_DIGITS = r"(?:[0-9]|[.,](?=[0-9]))++"
# A literal that stands alone: what is glued to letters, or part of a longer quotient, is not one.
_TOKEN = re.compile(
    rf"(?<![\w.,/\-−–]) {SIGN}? {_DIGITS} (?: {EXPONENT} | \s?/\s?{_DIGITS} )? (?![\w/])",
    re.VERBOSE,
)
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*+)\}\{([^{}]*+)\}")
_LETTER = re.compile(r"(?<!\w)[A-F](?!\w)")
_DIGIT = re.compile(r"[0-9]")


def holds_truth(text: str, item: Item) -> bool:
    """Whether the one distinct number, letter or list in an unparseable text is the truth.

    Number: every literal in the text can be read as the truth; a quotient is its value, and a
    comma may be a decimal or a thousands separator. List: all literals, in their order, are the
    truth, once or repeated. Letter: no other letter from A to F stands alone. Never raises;
    linear in the length of the text.
    """
    if TASKS[item.task].answer_kind == "letter":
        return set(_LETTER.findall(text)) == {item.answer}
    text = _FRACTION.sub(r"\1/\2", text)
    tokens = [match.group() for match in _TOKEN.finditer(text)]
    if not tokens or _DIGIT.search(_TOKEN.sub("", text)):
        return False
    compared = compared_as(item)
    if isinstance(item.answer, str):
        truth = compared(Decimal(item.answer))
        return all(truth in map(compared, _readings(token)) for token in tokens)
    wanted = [compared(Decimal(number)) for number in item.answer]
    separated = [part for token in tokens for part in token.split(",")]
    return _repeats(separated, wanted, compared) or _repeats(tokens, wanted, compared)


def _readings(token: str) -> Iterator[Decimal]:
    """The values that a literal may have."""
    above, slash, below = token.partition("/")
    if slash:
        numerator, denominator = read_number(above.strip()), read_number(below.strip())
        if numerator is not None and denominator:
            yield quotient(numerator, denominator)
        return
    without_points = token.replace(".", "").replace(",", ".")
    for text in dict.fromkeys((token, token.replace(",", ""), without_points)):
        value = read_number(text)
        if value is not None:
            yield value


def _repeats(
    literals: list[str], wanted: list[Decimal], compared: Callable[[Decimal], Decimal]
) -> bool:
    """Whether the literals are the wanted numbers, once or several times over."""
    if len(literals) % len(wanted):
        return False
    values = map(read_number, literals)
    pairs = zip(values, cycle(wanted), strict=False)
    return all(value is not None and compared(value) == truth for value, truth in pairs)
