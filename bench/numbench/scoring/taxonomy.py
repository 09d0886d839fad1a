"""The categories of responses: correct, wrong in one of several ways, or without an answer.

The categories are mutually exclusive; their shares of all counted items add up to 100 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from numbench.records import Completion, Score, Status

UNANSWERED_STATUSES: frozenset[Status] = frozenset({"missing", "error"})
"""Statuses of items without any output of the model; the `exact` means leave them out."""


class Category(NamedTuple):
    """name: identifier in files. display: label in charts. definition: one sentence."""

    name: str
    display: str
    definition: str


CATEGORIES: tuple[Category, ...] = (
    Category("right", "Correct", "An exact match."),
    Category("operand", "Wrong number chosen",
             "MinMax: another one of the numbers in the question."),
    Category("sample_std", "Sample deviation",
             "Std: within 0.1 % of the sample deviation (divisor n - 1), "
             "and closer to it than to the truth."),
    Category("sign", "Wrong sign", "Within 1 % of the truth except for the sign."),
    Category("magnitude", "Wrong power of ten",
             "Within 1 % of the truth times a power of ten other than 1."),
    Category("rounding", "Last digit off by one",
             "One unit of the 15th significant digit too large or too small."),
    Category("precision", "Too few digits",
             "The truth rounded or truncated to fewer significant digits than it has, "
             "at least one."),
    Category("carry", "Carry dropped or added",
             "Off by one unit of a decimal position, and the digits after it are correct: at least "
             "two, or three if the answer has fewer digits than the truth."),
    Category("swap", "Neighbouring digits swapped",
             "The truth with two neighbouring printed digits exchanged, none added or lost, "
             "and at least two others."),
    Category("digit", "Within 1 %", "Any other number within 1 % of the truth."),
    Category("rough", "Right order of magnitude",
             "Any other number of the right sign, less than ten times too large or too small."),
    Category("other", "Other number",
             "Any other number; not even the order of magnitude is correct."),
    Category("order", "Wrong order", "List: the correct numbers in a wrong order."),
    Category("count", "Numbers missing or extra",
             "List: fewer or more numbers than the truth has, or one of its numbers in the place "
             "of another."),
    Category("altered", "Numbers altered",
             "List: as many numbers as the truth has, at least one of them not in it."),
    Category("choice", "Wrong letter", "Interval: another letter."),
    Category("notation", "Correct value, other format",
             "No answer by the protocol exact, and the correct one by the protocol lenient."),
    Category("format", "Unreadable", "Any other text in which no answer is found."),
    Category("truncated", "Truncated",
             "No answer, and the output ended at the token limit, or inside its JSON object."),
    Category("refused", "Refused", "No answer, and the model or its provider refused."),
    Category("empty", "Empty", "No answer, and no text."),
    Category("error", "Failed request", "The request failed; not counted."),
    Category("missing", "No response", "No response yet; not counted."),
)  # fmt: skip
"""All categories in chart order. A wrong answer belongs to the first kind that applies."""


def categorize(score: Score) -> str:
    """Return the name of the category of a score under the `exact` or `lenient` protocol.

    Raises ValueError for the `paper` protocol, which does not classify errors.
    """
    if score.protocol == "paper":
        raise ValueError(
            f"the {score.protocol} protocol does not classify errors; use protocol exact"
        )
    if score.exact_match:
        return "right"
    return score.error_kind or score.status


def count_categories(scores: Iterable[Score]) -> dict[str, int]:
    """Count the scores per category; every category is a key, in chart order."""
    counts = Counter(map(categorize, scores))
    return {category.name: counts[category.name] for category in CATEGORIES}


def unparsed_status(response: Completion) -> Status:
    """Return the status of a response without a parsed answer: the first cause that applies."""
    if response.error is not None:
        return "error"
    if response.finish_reason == "refusal":
        return "refused"
    if response.finish_reason == "length":
        return "truncated"
    return "unparseable" if response.text.strip() else "empty"
