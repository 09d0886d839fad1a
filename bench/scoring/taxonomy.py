"""What became of a response, as one of a fixed list of categories.

The categories are exclusive, and a stacked bar of them over all counted items adds up to 100 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from bench.records import Score


class Category(NamedTuple):
    """name: for machines. display: for people, in charts. definition: one sentence."""

    name: str
    display: str
    definition: str


CATEGORIES: tuple[Category, ...] = (
    Category("right", "Right", "An exact match."),
    Category("operand", "Wrong number chosen",
             "MinMax: another one of the numbers in the question."),
    Category("sign", "Wrong sign", "The truth but for its sign."),
    Category("magnitude", "Wrong power of ten", "The truth times a power of ten other than 1."),
    Category("rounding", "Last digit off by one",
             "One unit of the 15th significant digit too much or too little."),
    Category("precision", "Too few digits",
             "The truth, rounded or cut to at least one and fewer significant digits than it has."),
    Category("carry", "Carry dropped or added",
             "Off by exactly one unit of a decimal place that the truth prints, "
             "the last excepted."),
    Category("swap", "Neighbouring digits swapped",
             "The truth with two neighbouring printed digits exchanged, neither added nor lost."),
    Category("digit", "First digits right",
             "Sign, magnitude and the first digit are right, and a later digit is wrong."),
    Category("other", "Other number", "Any other number, with not even the first digit right."),
    Category("order", "Wrong order", "List: the right numbers in a wrong order."),
    Category("count", "Numbers missing or extra",
             "List: fewer or more numbers than the truth holds."),
    Category("altered", "Numbers altered",
             "List: as many numbers as the truth holds, but not all of them its own."),
    Category("choice", "Wrong letter", "Interval: another letter."),
    Category("notation", "Right value, wrong notation",
             "No answer can be read by the rules, but the only distinct number, letter or list in "
             "the text is the truth."),
    Category("format", "Unreadable", "Text in which no answer can be read by the rules."),
    Category("truncated", "Cut off", "No answer, and the output ended at the token limit."),
    Category("refused", "Refused", "No answer, and the model or its provider refused."),
    Category("empty", "Empty", "No answer, and no text."),
    Category("error", "Failed request", "The request failed; not counted."),
    Category("missing", "Not asked yet", "No response; not counted."),
)  # fmt: skip
"""All categories in the order of charts. An answer is of the first error kind that applies."""


def outcome(score: Score) -> str:
    """The name of the one category of a score under the `exact` protocol.

    ValueError for another protocol, which does not tell how an answer is wrong.
    """
    if score.protocol != "exact":
        raise ValueError(f"the {score.protocol} protocol tells no kinds of errors")
    if score.exact_match:
        return "right"
    return score.error_kind or score.status


def outcomes(scores: Iterable[Score]) -> dict[str, int]:
    """How many of the scores are of which category: all categories, in their order."""
    counts = Counter(map(outcome, scores))
    return {category.name: counts[category.name] for category in CATEGORIES}
