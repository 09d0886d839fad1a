"""Fixtures of the tests that look at a report in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from bench.report import figures

if TYPE_CHECKING:
    from tests.report.browser import Opened

PICTURE = b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"/>'


@pytest.fixture(scope="module")
def undrawn() -> Iterator[None]:
    """The drawings themselves are tested elsewhere, and take seconds."""
    with pytest.MonkeyPatch.context() as patch:
        files = dict.fromkeys(figures.FORMATS, PICTURE)
        patch.setattr(figures, "rendered", lambda figure: files)
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser, gone with its module: while it is there, playwright's event loop runs, and no
    test may run one of its own.
    """
    # Imported here, because where there is no playwright only these tests are to be skipped.
    from tests.report.browser import chromium

    with chromium() as started:
        yield started


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Opened]]:
    """Opens a page; when the test is over, each page must have been quiet."""
    from tests.report.browser import Opened

    pages: list[Opened] = []

    def open_page(*arguments: Any, **context: Any) -> Opened:
        pages.append(Opened(browser, *arguments, **context))
        return pages[-1]

    yield open_page
    for page in pages:
        page.context.close()
        page.quiet()
