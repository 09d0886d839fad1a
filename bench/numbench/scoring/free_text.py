"""Find the correct value in a text from which the parser reads no answer.

Such a response stays wrong. The check separates formatting errors from arithmetic errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import cycle

from numbench.records import Item
from numbench.scoring.metrics import comparison_key, quotient
from numbench.scoring.notation import EXPONENT_PATTERN, SIGN_PATTERN, read_number, with_options
from numbench.tasks import TASKS

_DIGITS = r"(?:[0-9]|[.,](?=[0-9]))++"
# Excludes literals that are attached to letters or are part of a longer quotient.
_STANDALONE_NUMBER = re.compile(
    rf"(?<![\w.,/\-−–]) {SIGN_PATTERN}? {_DIGITS}"
    rf" (?: {EXPONENT_PATTERN} | \s?/\s?{_DIGITS} )? (?![\w/])",
    re.VERBOSE,
)
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*+)\}\{([^{}]*+)\}")
_LETTER = re.compile(r"(?<!\w)[A-F](?!\w)")
_DIGIT = re.compile(r"[0-9]")


MAX_CHARACTERS = 100_000
"""A longer text is not searched."""


def contains_correct_answer(text: str, item: Item) -> bool:
    """Return whether the one distinct number, letter or list in an unparseable text is correct.

    text: the response without its thinking. Number: every literal in the text can be read as the
    truth; a quotient counts as its value, and a comma may be a decimal or a thousands separator.
    List: all literals, in their order, are the truth, once or repeated. Letter: no other option
    stands alone. False for more than 100,000 characters. Never raises; runs in linear
    time.
    """
    if len(text) > MAX_CHARACTERS:
        return False
    if TASKS[item.task].answer_kind == "letter":
        return set(with_options(_LETTER, item.prompt).findall(text)) == {item.answer}
    text = _FRACTION.sub(r"\1/\2", text)
    literals = [match.group() for match in _STANDALONE_NUMBER.finditer(text)]
    if not literals or _DIGIT.search(_STANDALONE_NUMBER.sub("", text)):
        return False
    key = comparison_key(item)
    if isinstance(item.answer, str):
        truth = key(Decimal(item.answer))
        return all(truth in map(key, _possible_values(literal)) for literal in set(literals))
    truths = [key(Decimal(number)) for number in item.answer]
    separated = [part for literal in literals for part in literal.split(",")]
    return _repeats(separated, truths, key) or _repeats(literals, truths, key)


def _possible_values(literal: str) -> Iterator[Decimal]:
    """Yield the values that a literal may denote."""
    numerator_text, slash, denominator_text = literal.partition("/")
    if slash:
        numerator = read_number(numerator_text.strip())
        denominator = read_number(denominator_text.strip())
        if numerator is not None and denominator:
            yield quotient(numerator, denominator)
        return
    with_decimal_comma = literal.replace(".", "").replace(",", ".")
    for text in dict.fromkeys((literal, literal.replace(",", ""), with_decimal_comma)):
        value = read_number(text)
        if value is not None:
            yield value


def _repeats(literals: list[str], truths: list[Decimal], key: Callable[[Decimal], Decimal]) -> bool:
    """Return whether the literals are the true numbers in order, once or several times."""
    if len(literals) % len(truths):
        return False
    values = map(read_number, literals)
    pairs = zip(values, cycle(truths), strict=False)
    return all(value is not None and key(value) == truth for value, truth in pairs)
