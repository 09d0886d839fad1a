"""Hostile model output in `report.html`, in a browser: it is only displayed as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from numbench.dataset.store import write_dataset
from numbench.records import Failure, Response
from numbench.reporting import report
from tests.reporting import runs
from tests.reporting.browser import PHONE, BrowserPage, needs_browser

pytestmark = needs_browser

HOSTILE = (
    "</script><script>window.hacked = 1</script></textarea></style><!-- -->"
    '<img src=x onerror=\'window.hacked = 2\'>"><svg onload="window.hacked = 3">'
    f"{'W' * 300} &lt;b&gt; {{{{ 7 * 7 }}}} ${{hacked}} "
    "\x1b[31mred\x1b[0m \u202egnp.exe\u202c \u2028 \x00 end"
)
ESCAPED = "U+001B[31mredU+001B[0m U+202Egnp.exeU+202C U+2028 U+0000 end"

Open = Callable[..., BrowserPage]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, placeholder_figures: None) -> Path:
    """Write a report in which all untrusted text is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    result = runs.all_right()
    result["mean-0"] = runs.said("mean", 0, HOSTILE)
    result["mean-1"] = runs.said("mean", 1, '{"answer": 0.' + "0" * 1_000_000)
    result["mean-2"] = Response(
        item_id="mean-2", error=Failure(kind="item", message=HOSTILE), served_model=HOSTILE
    )
    items = {task: [runs.item(task, index) for index in range(4)] for task in runs.ANSWERS}
    items["mean"][3] = replace(items["mean"][3], prompt=HOSTILE)
    data = write_dataset(
        folder / "<b>", items, name=HOSTILE, generator="", seed=1, split="test", settings={}
    )
    run = runs.run(folder / "<img src=x>", data, result, display=HOSTILE, reasoning=HOSTILE)
    return report([run], out=folder / "out").out / "report.html"


def test_hostile_text_stays_text_everywhere(open_page: Open, hostile: Path) -> None:
    page = open_page(hostile)
    for item in ("mean-0", "mean-1", "mean-2", "mean-3"):
        page.page.fill("#item-search", item)
        page.page.locator("#list [role=option]").first.click()
        assert "<img src=x onerror='window.hacked = 2'>" in page.text("#detail h3")
        assert ESCAPED in page.text("#detail")
    cell = page.page.locator("table[data-table=tokens] td[tabindex]").first
    cell.click()
    # The dialog of a cell quotes the model, its level and the signature.
    assert "{{ 7 * 7 }} ${hacked}" in page.text("#tooltip")
    assert "\\x1b[31mred\\x1b[0m \\u202egnp.exe" in page.text("#signatures")
    assert page.page.evaluate("window.hacked") is None
    assert page.page.locator("img:not([src^='data:image/']), svg, textarea, b").count() == 0
    assert page.page.locator("script:not([type])").count() == 1
    assert page.page.title().startswith("numbench: ") and "{{ 7 * 7 }}" in page.page.title()


def test_raw_hostile_text_is_shown_in_full_and_in_order(open_page: Open, hostile: Path) -> None:
    page = open_page(hostile, "#item=mean-0")
    shown = page.page.locator("#detail section:has-text('Raw response') pre").inner_text()
    assert shown.replace("\n", "").replace(" ", "").endswith(ESCAPED.replace(" ", ""))
    assert shown.startswith(HOSTILE[:120])


def test_a_megabyte_of_zeros_is_truncated_and_does_not_widen_the_page(
    open_page: Open, hostile: Path
) -> None:
    page = open_page(hostile, "#item=mean-1")
    assert "… 998,013 more characters …" in page.text("#detail")
    assert "Raw response, 1,000,013 characters" in page.text("#detail")
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_policy_blocks_injected_scripts_and_images(browser: Any, hostile: Path) -> None:
    page = BrowserPage(browser, hostile)
    page.page.evaluate(
        "document.body.insertAdjacentHTML('beforeend',"
        "'<img src=x onerror=\"window.hacked = 1\"><img src=http://127.0.0.1:9/x>')"
    )
    page.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'),"
        "{ textContent: 'window.hacked = 2' }))"
    )
    page.page.evaluate("new Promise((done) => setTimeout(done))")
    assert page.page.evaluate("window.hacked") is None
    stopped = "\n".join(page.errors)
    for what in ("http://127.0.0.1:9/x", "inline event handler", "inline script"):
        assert what in stopped
    page.context.close()


def test_hostile_text_fits_a_phone(open_page: Open, hostile: Path) -> None:
    page = open_page(hostile, "#item=mean-0", **PHONE)
    page.page.locator("table[data-table=log_smape] td[tabindex]").first.tap()
    assert "Show these items" in page.text("#tooltip")
    assert page.widths() == (360, 360)
