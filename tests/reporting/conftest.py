"""Fixtures of the report tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from numbench import plot_style
from numbench.reporting import rendering
from numbench.reporting.figure_registry import FIGURES

if TYPE_CHECKING:
    from tests.reporting.browser import BrowserPage

PLACEHOLDER = b'<svg xmlns="http://www.w3.org/2000/svg" width="40pt" height="20pt"/>'


def placeholder_files(figure: object, formats: Sequence[str]) -> dict[str, bytes]:
    """Return small placeholders for the files of a figure."""
    return dict.fromkeys(formats, PLACEHOLDER)


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without figures, which take seconds to draw."""
    monkeypatch.setattr(rendering, "all_figures", list)


@pytest.fixture
def only_one_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports with a placeholder for the radar plots, and no other figures."""
    specs = [spec for spec in FIGURES if spec.name == "radar"]
    monkeypatch.setattr(rendering, "all_figures", lambda: specs)
    monkeypatch.setattr(plot_style, "render_figure", placeholder_files)


@pytest.fixture(scope="module")
def placeholder_figures() -> Iterator[None]:
    """Reports with two figures, as small placeholders."""
    with pytest.MonkeyPatch.context() as patch:
        specs = [spec for spec in FIGURES if spec.name in ("results", "radar")]
        patch.setattr(rendering, "all_figures", lambda: specs)
        patch.setattr(plot_style, "render_figure", placeholder_files)
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for the tests of a module.

    While it is open, playwright's event loop runs, so tests cannot run their own.
    """
    # Imported here, so that only browser tests are skipped without playwright.
    from tests.reporting.browser import chromium

    with chromium() as started:
        yield started


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., BrowserPage]]:
    """Open pages; after the test, check that none of them logged an error or loaded a resource."""
    from tests.reporting.browser import BrowserPage

    pages: list[BrowserPage] = []

    def open_page(*arguments: Any, **context: Any) -> BrowserPage:
        pages.append(BrowserPage(browser, *arguments, **context))
        return pages[-1]

    yield open_page
    for page in pages:
        page.context.close()
        page.assert_no_errors()
