"""Fixtures of the report tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from numbench.reporting.data import ReportData
from numbench.reporting.read import read_report_data
from tests.report.synthetic import write_runs

if TYPE_CHECKING:
    from tests.report.browser import BrowserPage


@pytest.fixture(scope="session")
def synthetic_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the synthetic runs."""
    return write_runs(tmp_path_factory.mktemp("synthetic"))


@pytest.fixture(scope="session")
def synthetic_data(synthetic_runs: Path) -> ReportData:
    """The data of a report on the synthetic runs."""
    return read_report_data([synthetic_runs])


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for the tests of a module.

    While it is open, playwright's event loop runs, so tests cannot run their own.
    """
    # Imported here, so that only browser tests are skipped without playwright.
    from tests.report.browser import chromium

    with chromium() as started:
        yield started


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., BrowserPage]]:
    """Open pages; after the test, check that none of them logged an error or loaded a resource."""
    from tests.report.browser import BrowserPage

    pages: list[BrowserPage] = []

    def open_page(*arguments: Any, **context: Any) -> BrowserPage:
        pages.append(BrowserPage(browser, *arguments, **context))
        return pages[-1]

    yield open_page
    for page in pages:
        page.context.close()
        page.assert_no_errors()
