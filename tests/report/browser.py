"""A headless browser for report pages, which records errors and requests."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="browser tests need playwright: pip install -e '.[dev]'"
)

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_EXECUTABLE = next((path for name in _NAMES if (path := shutil.which(name))), None)
NO_BROWSER = "no Chromium or Google Chrome in PATH; install one (Debian: apt-get install chromium)"
needs_browser = pytest.mark.skipif(_EXECUTABLE is None, reason=NO_BROWSER)

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser. Without one, the test that needs it is skipped."""
    if _EXECUTABLE is None:
        pytest.skip(NO_BROWSER)
    with playwright.sync_playwright() as driver:
        # There is no sandbox for root, as in a container; the pages are trusted.
        browser = driver.chromium.launch(executable_path=_EXECUTABLE, args=["--no-sandbox"])
        yield browser
        browser.close()


class BrowserPage:
    """A report page with its items loaded, and the errors and requests so far."""

    def __init__(self, browser: Any, path: Path, fragment: str = "", **context: Any) -> None:
        options = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
        self.context = browser.new_context(**{**options, **context})
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.url = path.resolve().as_uri()
        self.page.goto(self.url + fragment)
        if context.get("java_script_enabled", True):
            # The script shows this form when the items are loaded; not every page has items.
            self.page.wait_for_selector("#item-filters, main:not(:has(#items))", state="visible")

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())

    def column(self, table: str, column: int) -> list[str]:
        """Return the first line of each visible cell of a column."""
        cells = self.page.evaluate(
            "([table, column]) => [...document.querySelectorAll("
            "`table[data-table=${table}] tbody tr`)].filter((row) => !row.hidden)"
            ".map((row) => row.cells[column]?.firstChild?.textContent ?? '')",
            [table, column],
        )
        return [str(cell) for cell in cells]

    def open_item(self, item_id: str) -> str:
        """Open the first response to an item, and return its details."""
        self.page.fill("[data-state=text]", item_id)
        self.page.locator("#list > li > details:not([open]) > summary").first.click()
        article = self.page.locator("#list article").first
        article.wait_for()
        article.evaluate(
            "(node) => node.querySelectorAll('details').forEach((d) => { d.open = true; })"
        )
        return str(article.inner_text())

    def wait_for_text(self, selector: str, text: str) -> None:
        """Wait until an element has a text."""
        self.page.locator(selector).filter(has_text=text).first.wait_for()

    def widths(self) -> tuple[int, int]:
        """Return the widths of the document and of the window."""
        widths = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        return widths[0], widths[1]

    def assert_no_errors(self) -> None:
        """Check that there was no error, and no request except for the file and its images."""
        assert self.errors == []
        external = [url for url in self.requests if not url.startswith(("data:", self.url))]
        assert external == []
