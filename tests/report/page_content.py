"""What `report.html` contains: its elements, the cells of its tables, and its responses."""

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from typing import Any

from numbench.reporting.build import build_tables
from numbench.reporting.data import ReportData
from numbench.reporting.page import render_page


class Elements(HTMLParser):
    """Names and attributes of all elements, and the content of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style") and self.cdata_elem:
            self.raw.append((*self.tags[-1], data))


def page_of(data: ReportData) -> str:
    """Return the page of some data, without figures, which take seconds to draw."""
    return render_page(data, build_tables(data), [], {"radar": "not drawn"})


def cells(page: str, table: str) -> list[list[str]]:
    """Return the text of the cells of a table, row by row, without headings."""
    (body,) = re.findall(rf'<table data-table="{table}".*?</thead>(.*?)</table>', page, re.S)
    rows = re.findall(r'<tr class="(?!group).*?</tr>', body, re.S)
    return [
        [
            " ".join(re.sub(r"<[^>]*>", " ", cell).split())
            for cell in re.findall(r"<(?:td|th).*?>(.*?)</(?:td|th)>", row, re.S)
        ]
        for row in rows
    ]


def responses(page: str) -> list[dict[str, Any]]:
    """Return the items and responses of a page, one dictionary per response."""
    raw = Elements(page).raw

    def unpacked(text: str) -> dict[str, Any]:
        known: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
        return known

    (packed,) = [text for _, attrs, text in raw if attrs.get("id") == "packed-items"]
    items, rows = unpacked(packed), []
    for run, (_, _, text) in enumerate(one for one in raw if one[1].get("class") == "packed-run"):
        columns = unpacked(text)
        positions = columns.pop("item")
        for number, index in enumerate(positions):
            own = {
                name: column[number] if isinstance(column, list) else column["same"]
                for name, column in columns.items()
            }
            rows.append({"run": run, **{n: v[index] for n, v in items.items()}, **own})
    return rows
