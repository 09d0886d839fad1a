"""The item view in a browser: reasoning on demand, an item in all runs, and repeated samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from numbench.reporting import html_page, reasoning_texts, report
from tests.reporting import runs
from tests.reporting.browser import PHONE, BrowserPage, needs_browser

pytestmark = [needs_browser, pytest.mark.slow]

Open = Callable[..., BrowserPage]

HOSTILE = "</script><img src=x onerror='window.hacked = 1'> \u202e end"
_SAMPLES = ('{"answer": 10}', '{"answer": 12}', '{"answer": 10}')


def _write_runs(folder: Path) -> Path:
    """Write a run with three samples per item, two more runs, and one of another dataset."""
    data = runs.dataset(folder, tasks=("addition",))
    three = {
        f"{index}-{sample}": replace(
            runs.said("addition", index, text if index == 0 else '{"answer": 1}', 100 + sample),
            sample=sample,
            reasoning_text=f"Sample {sample} of item {index}. {HOSTILE}",
        )
        for index in range(4)
        for sample, text in enumerate(_SAMPLES)
    }
    runs.run(folder / "runs" / "a", data, three, display="A", tasks=("addition",), samples=3)
    right = {f"{index}": runs.right("addition", index, 7) for index in range(4)}
    runs.run(folder / "runs" / "b", data, right, display="B", tasks=("addition",))
    failed = right | {"0": runs.failed("addition", 0)}
    runs.run(folder / "runs" / "c", data, failed, display="C", tasks=("addition",))
    other = runs.dataset(folder, "other", tasks=("addition", "mean"))
    runs.run(folder / "runs" / "d", other, right, display="D", tasks=("addition",))
    return folder / "runs"


@pytest.fixture(scope="module")
def single_file(tmp_path_factory: pytest.TempPathFactory, placeholder_figures: None) -> Path:
    """A report with its reasoning in the page."""
    folder = tmp_path_factory.mktemp("single")
    return report([_write_runs(folder)], out=folder / "out").out / "report.html"


@pytest.fixture(scope="module")
def with_files(tmp_path_factory: pytest.TempPathFactory, placeholder_figures: None) -> Path:
    """A report with its reasoning in files beside the page, two texts in each."""
    folder = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html_page, "_MAX_PAGE_SIZE", 0)
        patch.setattr(reasoning_texts, "_BLOCK_LENGTH", 2 * len(f"Sample 0 of item 0. {HOSTILE}"))
        return report([_write_runs(folder)], out=folder / "out").out / "report.html"


def _rows(page: BrowserPage, table: str) -> list[list[str]]:
    """Return the texts of the cells of a table of answers, by the id of its heading."""
    rows = page.page.locator(f"table[aria-labelledby={table}] tbody tr")
    return [row.locator("th, td").all_inner_texts() for row in rows.all()]


@pytest.mark.parametrize("page_file", ["single_file", "with_files"])
def test_reasoning_is_read_when_it_is_opened_and_stays_open(
    open_page: Open, request: pytest.FixtureRequest, page_file: str
) -> None:
    path = request.getfixturevalue(page_file)
    page = open_page(path, "#item=addition-1&run=a&sample=2")
    assert page.page.locator("#reasoning pre").count() == 0
    assert not [url for url in page.requests if "/reasoning/" in url]
    page.page.locator("#reasoning summary").focus()
    page.page.keyboard.press("Enter")
    text = page.page.locator("#reasoning pre")
    text.wait_for()
    assert text.inner_text().startswith("Sample 2 of item 1. </script><img src=x")
    assert "U+202E end" in text.inner_text()
    page.page.locator("#detail button", has_text="Next").click()
    text.wait_for()
    assert text.inner_text().startswith("Sample 0 of item 2.")
    # The key closes it; it stays closed for the next response.
    page.page.keyboard.press("r")
    page.page.keyboard.press("j")
    assert not text.is_visible()
    page.page.keyboard.press("r")
    text.wait_for()
    assert text.inner_text().startswith("Sample 1 of item 2.")
    assert page.page.evaluate("window.hacked") is None
    files = {url for url in page.requests if "/reasoning/" in url}
    assert len(files) == (2 if page_file == "with_files" else 0)
    # These are the only files that a page may load.
    page.requests[:] = [url for url in page.requests if url not in files]


def test_missing_files_of_reasoning_are_named(open_page: Open, with_files: Path) -> None:
    alone = with_files.with_name("moved") / "report.html"
    alone.parent.mkdir()
    alone.write_bytes(with_files.read_bytes())
    page = open_page(alone, "#item=addition-1&run=a")
    page.page.locator("#reasoning summary").click()
    page.page.locator("#reasoning [role=alert]").wait_for()
    assert "cannot be read. Keep the folder “reasoning”" in page.text("#reasoning")
    assert "What is addition 1?" in page.text("#detail")
    page.errors.clear()
    page.requests.clear()


def test_an_item_lists_the_answers_of_all_runs_with_links(
    open_page: Open, single_file: Path
) -> None:
    page = open_page(single_file, "#item=addition-0&run=b")
    assert page.text("#answers-run") == "This item in all runs: 3 of 5 correct"
    assert _rows(page, "answers-run") == [
        ["A (minimal)", "2 of 3 correct", "10 (2 times); 12", "6.9 to 100.0", "100 to 102"],
        ["B (minimal)", "correct", "10", "100.0", "7"],
        ["C (minimal)", "error", "none", "–", "–"],
    ]
    assert page.page.locator("#answers-sample").count() == 0
    current = page.page.locator("#detail [aria-current=true]")
    assert current.all_inner_texts() == ["B (minimal)"]
    page.page.locator("#detail a", has_text="C (minimal)").focus()
    page.page.keyboard.press("Enter")
    assert page.page.url.endswith("#item=addition-0&run=c")
    assert page.page.evaluate("document.activeElement.id") == "detail"
    assert page.page.locator("#detail").get_attribute("aria-label") == (
        "Response, Add, C (minimal), error"
    )
    assert page.text("#list [aria-selected=true]").startswith("error")
    page.page.go_back()
    page.wait_until("location.hash === '#item=addition-0&run=b'")
    assert "B (minimal)" in page.text("#detail h3")


def test_all_samples_of_an_item_are_listed_with_their_outcomes(
    open_page: Open, single_file: Path
) -> None:
    page = open_page(single_file, "#item=addition-0&run=a", **PHONE)
    assert page.text("#answers-sample") == "Samples of this run: 2 of 3 correct"
    rows = _rows(page, "answers-sample")
    assert [row[:3] for row in rows] == [
        ["Sample 1", "correct", "10"],
        ["Sample 2", rows[1][1], "12"],
        ["Sample 3", "correct", "10"],
    ]
    assert rows[1][1].startswith("incorrect") and [row[4] for row in rows] == ["100", "101", "102"]
    page.page.locator("#detail a", has_text="Sample 3").tap()
    assert page.page.url.endswith("#item=addition-0&run=a&sample=2")
    assert page.text("#detail h3").endswith("sample 3 of 3")
    assert page.widths() == (360, 360)
    # Nothing to compare with: the only run of its dataset, without samples.
    page = open_page(single_file, "#item=addition-0&run=d")
    assert page.page.locator("#detail .answer-table").count() == 0
