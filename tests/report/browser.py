"""A headless browser for pages on disk, which notes everything that a page should not do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="a browser is driven by playwright: pip install -e '.[dev]'"
)

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FOUND = next((path for name in _NAMES if (path := shutil.which(name))), None)
needs_browser = pytest.mark.skipif(
    _FOUND is None, reason="no Chromium in PATH; on Debian: apt-get install chromium"
)

PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}


@contextmanager
def chromium() -> Iterator[Any]:
    """A started browser."""
    with playwright.sync_playwright() as driver:
        # Root, as in a container, has no sandbox; the pages are ours.
        browser = driver.chromium.launch(executable_path=_FOUND, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page of a report with all its items there, and what it did on the way."""

    def __init__(self, browser: Any, path: Path, hash_: str = "", **context: Any) -> None:
        options = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
        self.context = browser.new_context(**{**options, **context})
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.url = path.resolve().as_uri()
        self.page.goto(self.url + hash_)
        if context.get("java_script_enabled", True):
            # The script shows the browser of items in the step in which it fills it.
            self.page.wait_for_selector("#browser", state="visible")

    def until(self, condition: str) -> None:
        """Wait for a condition in JavaScript. (The page's policy forbids playwright's own way.)"""
        for _ in range(500):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"never came true: {condition}")

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())

    def column(self, table: str, column: int) -> list[str]:
        """The first lines of a column's cells, rows from top to bottom, hidden ones left out."""
        cells = self.page.evaluate(
            "([table, column]) => [...document.querySelectorAll("
            "`table[data-table=${table}] tbody tr`)].filter((row) => !row.hidden)"
            ".map((row) => row.cells[column].firstChild?.textContent ?? '')",
            [table, column],
        )
        return [str(cell) for cell in cells]

    def state(self) -> str:
        return self.text("#items-state")

    def widths(self) -> tuple[int, int]:
        """Of the document and of the window; wider content would zoom a phone's page out."""
        found = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        return found[0], found[1]

    def quiet(self) -> None:
        """Nothing was complained of, and nothing but the file itself and its pictures loaded."""
        assert self.complaints == []
        outside = [url for url in self.requests if not url.startswith(("data:", self.url))]
        assert outside == []
