"""The categories of responses: correct, wrong in one of several ways, or without an answer.

The categories are mutually exclusive; their shares of all counted items add up to 100%.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from numbench.core.installation import PACKAGE
from numbench.records import Completion, Score, Status

UNANSWERED_STATUSES: frozenset[Status] = frozenset({"missing", "error"})
"""Statuses of items without any output of the model; the `exact` means leave them out."""


class Category(NamedTuple):
    """name: identifier in files. display: label in charts. definition: one sentence."""

    name: str
    display: str
    definition: str


CATEGORIES = tuple(
    Category(name, **texts)
    for name, texts in tomllib.loads(
        (PACKAGE / "scoring" / "categories.toml").read_text(encoding="utf-8")
    ).items()
)
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
