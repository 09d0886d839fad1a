"""The page of a report on horizons alone, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from numbench.reporting import report
from tests.reporting.browser import PHONE, needs_browser
from tests.reporting.horizons import write_measurement

pytestmark = [needs_browser, pytest.mark.slow]

HORIZONS = {"long_addition": 30.0, "long_multiplication": 4.0, "long_max": 300.0, "copy": 12.0}


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory, placeholder_figures: None) -> Path:
    folder = tmp_path_factory.mktemp("horizons")
    for level in ("high", "none"):
        write_measurement(folder / level, HORIZONS, reasoning=level, each=12)
    report([folder], out=folder / "out")
    return folder / "out" / "report.html"


def test_horizons_are_sorted_as_numbers_and_filtered_by_task(
    page_path: Path, open_page: Any
) -> None:
    opened = open_page(page_path)
    header = opened.page.locator("table[data-table=horizons] th", has_text="h50")
    header.locator("button").click()
    sizes = opened.column("horizons", 5)
    numbers = [float(size.removeprefix("≥ ")) for size in sizes]
    assert numbers in (sorted(numbers), sorted(numbers, reverse=True))
    assert sizes.count("≥ 64") == 2
    opened.page.select_option("#filter-task", "copy")
    assert opened.column("horizons", 2) == ["Copy", "Copy"]


def test_the_page_fits_a_phone(page_path: Path, open_page: Any) -> None:
    document, window = open_page(page_path, **PHONE).widths()
    assert document <= window
