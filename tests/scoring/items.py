"""Items and responses for the scoring tests."""

from __future__ import annotations

from bench.records import Item, Response
from bench.tasks.items import make_item

SUM = make_item("addition", "+", ("1.5", "2.25"), {})
"""1.5 + 2.25 = 3.75"""

SEVENTH = make_item("division", "/", ("1", "7"), {})
"""1 / 7 = 0.142857142857143"""

LETTER = make_item("interval", "interval", ("5", "1", "9"), {})
"""5 lies in B: 1 <= x < 9."""

ORDER = make_item("sorting", "ascending", ("3", "-1", "2.5"), {})
"""-1, 2.5, 3"""

LARGEST = make_item("minmax", "maximum", ("3", "-1", "2.5"), {})
"""3"""


def said(item: Item, text: str) -> Response:
    return Response(item_id=item.id, text=text)


def answered(item: Item, value: str) -> Response:
    """A response in the form that was asked for."""
    return said(item, f'{{"answer": {value}}}')
