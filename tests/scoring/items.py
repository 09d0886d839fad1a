"""Items and responses for the scoring tests."""

from numbench.records import Item, Response
from numbench.tasks.items import make_item

SUM = make_item("addition", "+", ("1.5", "2.25"), {})
"""1.5 + 2.25 = 3.75"""

SEVENTH = make_item("division", "/", ("1", "7"), {})
"""1 / 7 = 0.142857142857143"""

LETTER = make_item("interval", "interval", ("5", "1", "9"), {})
"""5 belongs to B: 1 <= x < 9."""

ORDER = make_item("sorting", "ascending", ("3", "-1", "2.5"), {})
"""-1, 2.5, 3"""

LARGEST = make_item("minmax", "maximum", ("3", "-1", "2.5"), {})
"""3"""


def text_response(item: Item, text: str) -> Response:
    return Response(item_id=item.id, text=text)


def answer_response(item: Item, value: str) -> Response:
    """Return a response in the requested format."""
    return text_response(item, f'{{"answer": {value}}}')
