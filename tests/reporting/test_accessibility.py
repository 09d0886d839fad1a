"""No violation of axe-core's rules on report pages and leaderboards, by window and color scheme."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from numbench import plot_style
from numbench.leaderboard import write_leaderboard
from numbench.reporting import rendering, report
from numbench.reporting.figure_registry import FIGURES
from tests.reporting import runs
from tests.reporting.browser import BrowserPage, needs_browser
from tests.reporting.conftest import placeholder_files
from tests.reporting.horizons import write_measurement

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright",
    reason="accessibility tests need axe-playwright-python: pip install -e '.[dev]'",
)
pytestmark = [needs_browser, pytest.mark.slow]

Open = Callable[..., BrowserPage]

_FIGURES = ("radar", "results", "failures", "horizons")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report and a leaderboard of three runs and a horizon measurement."""
    folder = tmp_path_factory.mktemp("accessibility")
    runs.mixed_run(folder)
    data = runs.dataset(folder)
    right = {
        key: replace(response, reasoning_text="First the tens, then the ones. " * 200)
        for key, response in runs.all_right().items()
    }
    runs.run(folder / "runs" / "zebra", data, right, display="Zebra", reasoning="low")
    tasks = ("addition",)
    samples = {
        f"{index}-{sample}": replace(runs.right("addition", index), sample=sample)
        for index in range(4)
        for sample in range(2)
    }
    runs.run(folder / "runs" / "two", data, samples, display="Two", tasks=tasks, samples=2)
    write_measurement(folder / "runs" / "horizon", {"long_addition": 30.0, "copy": 12.0}, each=12)
    with pytest.MonkeyPatch.context() as patch:
        specs = [spec for spec in FIGURES if spec.name in _FIGURES]
        patch.setattr(rendering, "all_figures", lambda: specs)
        patch.setattr(plot_style, "render_figure", placeholder_files)
        report([folder / "runs"], out=folder / "report", published=False)
        write_leaderboard([folder / "runs"], folder / "site", published=False)
    return folder


def _violations(page: Any) -> list[str]:
    """Return the violated rules, each with the elements."""
    result = axe.Axe().run(page).response
    assert "color-contrast" in {rule["id"] for rule in result["passes"]}
    return [
        f"{rule['id']}: {node['html'][:200]}"
        for rule in result["violations"]
        for node in rule["nodes"]
    ]


def _assert_accessible(page: BrowserPage) -> None:
    for width in (1400, 390):
        page.page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.page.emulate_media(color_scheme=scheme)
            assert _violations(page.page) == [], (width, scheme)


def test_a_report_with_an_item_its_reasoning_and_a_note(open_page: Open, folder: Path) -> None:
    page = open_page(folder / "report/report.html", "#item=addition-2&run=zebra")
    assert page.page.locator("figure img").count() >= len(_FIGURES)
    page.page.evaluate(
        "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    )
    page.page.locator("#reasoning pre").wait_for()
    page.page.locator("table[data-table=log_smape] td[tabindex]").first.click()
    page.page.locator("#tooltip").wait_for()
    _assert_accessible(page)


def test_an_enlarged_figure(open_page: Open, folder: Path) -> None:
    page = open_page(folder / "report/report.html")
    page.page.locator("figure button").first.click()
    page.page.locator("#enlarged img").wait_for()
    assert _violations(page.page) == []


@pytest.mark.parametrize("name", ["index", "about", "tasks/addition", "models/zebra-low"])
def test_the_pages_of_a_leaderboard(open_page: Open, folder: Path, name: str) -> None:
    _assert_accessible(open_page(folder / f"site/{name}.html"))
