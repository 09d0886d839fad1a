r"""How texts name the answer to a question: `sum`, `mean`, `1.5 + 2.25`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from numbench.records import Item
from numbench.scoring.notation import NUMBER_LITERAL, read_number

_LIST_NAMES = (
    r"(?:sorted|ordered|{0}) (?:list|order|numbers|values)|(?:correct )?order|sorted"
    r"|(?:list|numbers|values)(?= (?:sorted )?in {0} order)"
)
_NAMES = {
    "+": "sum|total",
    "-": "difference",
    "*": "product",
    "/": "quotient|ratio",
    "mean": r"(?:arithmetic )?(?:mean|average)",
    "std": r"(?:population |sample )?(?:standard deviation|std(?:\.? dev\.?)?)",
    "minimum": "minimum|min|smallest|lowest|least",
    "maximum": "maximum|max|largest|greatest|highest|biggest",
    "interval": "interval|option|choice|letter|range",
    "ascending": _LIST_NAMES.format("ascending"),
    "descending": _LIST_NAMES.format("descending"),
}
# A word that names the result of another operation, by the operations it is used for.
_RESULTS = (
    (re.compile(r"\b(?:sum|total)\b", re.IGNORECASE), ("+", "*", "mean", "std")),
    (re.compile(r"\bdifference\b", re.IGNORECASE), ("-", "std")),
    (re.compile(r"\bproduct\b", re.IGNORECASE), ("*",)),
    (re.compile(r"\b(?:quotient|ratio)\b", re.IGNORECASE), ("/", "mean")),
    (re.compile(r"\b(?:mean|average)\b", re.IGNORECASE), ("mean", "std")),
    (re.compile(r"\b(?:std|deviation)\b", re.IGNORECASE), ("std",)),
    (re.compile(r"\b(?:minimum|min)\b", re.IGNORECASE), ("minimum",)),
    (re.compile(r"\b(?:maximum|max)\b", re.IGNORECASE), ("maximum",)),
    (re.compile(r"\bascending\b", re.IGNORECASE), ("ascending",)),
    (re.compile(r"\bdescending\b", re.IGNORECASE), ("descending",)),
)
_ADJECTIVES = r"(?:final|correct|exact|right|resulting) "
_OPERATORS = {
    "+": re.compile(r"\+|plus\b"),
    "-": re.compile(r"[-−–]|minus\b"),
    "*": re.compile(r"[*×·⋅x]|\\times\b|\\cdot\b|times\b|multiplied by\b"),
    "/": re.compile(r"[/÷:]|\\div\b|divided by\b"),
    "^": re.compile(r"\^|\*\*|to the power of\b"),
}
_SKIPPED = re.compile(r"[\s()\[\]{}$]*")
_SEPARATOR = re.compile(r"[\s()\[\]{}$]*(?:,|;|and\b)?")


def answer_names(operator: str) -> str:
    """Return a pattern of the names of the answer to questions with this operator."""
    names = _NAMES.get(operator)
    number = rf"|(?:{names})(?: (?:value|number|element))?" if names else ""
    return rf"(?:{_ADJECTIVES})?(?:answer|result|value|solution{number})"


def names_result(text: str, operator: str) -> bool:
    """Return whether a text names the result of the question's operation."""
    return any(operator == operators[0] and name.search(text) for name, operators in _RESULTS)


def names_step(key: str) -> bool:
    """Return whether a key names the result of an operation."""
    return any(name.search(key) for name, _ in _RESULTS)


def names_other_result(text: str, operator: str) -> bool:
    """Return whether a text names the result of another operation, such as a sum for a maximum."""
    if names_result(text, operator):
        return False
    return operator in _NAMES and any(
        operator not in operators and name.search(text) for name, operators in _RESULTS
    )


def is_expression(text: str, item: Item) -> bool:
    """Return whether `text` is the expression that the question asks for: `1.5 + 2.25`.

    A mean is the sum of the numbers, divided by their count.
    """
    count = len(item.operands)
    numbers = list(map(read_number, item.operands))
    if item.operator == "mean":
        return _matches(text, [*numbers, Decimal(count)], ["+"] * (count - 1) + ["/"])
    return item.operator in _OPERATORS and _matches(text, numbers, [item.operator] * (count - 1))


def are_operands(text: str, item: Item) -> bool:
    """Return whether `text` consists of the numbers of the question, in their order."""
    return _matches(text, list(map(read_number, item.operands)), [])


def _matches(text: str, numbers: Sequence[Decimal | None], operators: list[str]) -> bool:
    """Return whether `text` has these numbers, with the operators, or with separators, between."""
    position = 0
    for index, number in enumerate(numbers):
        if index:
            pattern = _OPERATORS[operators[index - 1]] if operators else _SEPARATOR
            between = pattern.match(text, _skip(text, position))
            if between is None:
                return False
            position = between.end()
        literal = NUMBER_LITERAL.match(text, _skip(text, position))
        if literal is None or read_number(literal.group()) != number:
            return False
        position = literal.end()
    return _skip(text, position) == len(text)


def _skip(text: str, position: int) -> int:
    skipped = _SKIPPED.match(text, position)
    return skipped.end() if skipped else position
