"""`report.html` in a browser: filters, responses, phones, print, hostile text, axe-core."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from numbench.dataset.store import write_dataset
from numbench.leaderboard import write_leaderboard
from numbench.records import Failure, Response
from numbench.reporting.build import report
from tests.report import runs
from tests.report.browser import PHONE, BrowserPage, needs_browser
from tests.report.horizons import write_measurement

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright",
    reason="accessibility tests need axe-playwright-python: pip install -e '.[dev]'",
)
pytestmark = [needs_browser, pytest.mark.slow]

Open = Callable[..., BrowserPage]

HOSTILE = (
    "</script><script>window.hacked = 1</script></textarea></style><!-- -->"
    '<img src=x onerror=\'window.hacked = 2\'>"><svg onload="window.hacked = 3">'
    f"{'W' * 300} &lt;b&gt; {{{{ 7 * 7 }}}} ${{hacked}} "
    "\x1b[31mred\x1b[0m \u202egnp.exe\u202c \u2028 \x00 end"
)
ESCAPED = "U+001B[31mredU+001B[0m U+202Egnp.exeU+202C U+2028 U+0000 end"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report and a leaderboard of four runs on two datasets and a measurement of sizes."""
    folder = tmp_path_factory.mktemp("pages")
    runs.mixed_run(folder)
    data = runs.dataset(folder)
    right = {
        key: replace(response, reasoning_text=f"{HOSTILE} First the tens. " * 200)
        for key, response in runs.all_right(20).items()
    }
    runs.run(folder / "runs" / "zebra", data, right, display="Zebra", reasoning="low")
    samples = {
        f"{index}-{sample}": replace(runs.right("addition", index), sample=sample)
        for index in range(4)
        for sample in range(2)
    }
    tasks = ("addition",)
    runs.run(folder / "runs" / "two", data, samples, display="Two", tasks=tasks, samples=2)
    other = runs.dataset(folder, "other", tasks=("addition",))
    one = {"addition-0": runs.right("addition", 0)}
    runs.run(folder / "runs" / "other", other, one, display="Other", tasks=tasks)
    write_measurement(
        folder / "runs" / "sizes", {"long_addition": 30.0, "long_max": 300.0, "copy": 12.0}, each=12
    )
    report([folder / "runs"], out=folder / "report")
    write_leaderboard([folder / "runs"], folder / "site")
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report in which all untrusted text is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    result = runs.all_right()
    result["mean-0"] = replace(runs.said("mean", 0, HOSTILE[:480]), reasoning_text=HOSTILE)
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


STATE = "#items-state"


def test_questions_are_filtered_ordered_and_opened(open_page: Open, folder: Path) -> None:
    page = open_page(folder / "report/report.html")
    page.wait_for_text(STATE, "40 of 40 questions: 76 of 84 answers are correct")
    # The first question is one that every run has wrong, or none has answered.
    assert page.text("#list li:first-child .badge").startswith(("0 of", "not asked"))
    page.page.select_option("#item-filters [data-state=task]", "addition")
    kinds = page.page.locator("[data-state=kind] option").all_inner_texts()
    assert kinds == ["all", "Right order of magnitude (1)"]
    page.page.select_option("[data-state=kind]", "rough")
    page.wait_for_text(STATE, "1 of 40 questions: answers with this kind of error: 1")
    details = page.open_item("addition-2")
    for part in ("First difference: significant digit 2", "log-sMAPE", "Zebra (low)"):
        assert part in details
    assert page.page.locator("#list article mark").all_inner_texts() == ["3"]
    assert "q=addition-2" in page.page.url
    page.page.fill("[data-state=models]", "no such model")
    page.wait_for_text("#filter-state", "No row matches.")
    page.page.locator("#filters .clear").click()
    page.page.select_option("[data-state=task]", "addition")
    page.page.locator("#item-filters .clear").click()
    page.wait_for_text(STATE, "40 of 40 questions")
    assert page.page.locator("#list > li").count() == 20
    page.page.click("#more")
    page.page.locator("#list > li").nth(39).wait_for()
    assert page.page.locator("#more").is_hidden()
    page.page.select_option("[data-state=order]", "tokens")
    assert page.text("#list li:first-child .question") == "What is addition 1?"


def test_one_run_solves_what_another_does_not(open_page: Open, folder: Path) -> None:
    page = open_page(folder / "report/report.html")
    labels = page.page.locator("[data-state=a] option").all_inner_texts()
    zebra, gpt = (next(x for x in labels if x.startswith(name)) for name in ("Zebra", "GPT 5"))
    page.page.select_option("[data-state=a]", label=zebra)
    page.page.select_option("[data-state=a-is]", "correct")
    page.page.select_option("[data-state=b]", label=gpt)
    page.page.select_option("[data-state=b-is]", "incorrect")
    page.wait_for_text(STATE, "2 of 40 questions")
    shown = page.page.locator("#list .question").all_inner_texts()
    assert shown == ["What is minmax 1?", "What is addition 2?"]


def test_a_view_is_its_address(open_page: Open, folder: Path) -> None:
    """The state survives in the address: filters, order, the opened question."""
    first = open_page(folder / "report/report.html")
    first.page.fill("[data-state=models]", "zebra")
    first.page.select_option("[data-state=task]", "addition")
    button = "table[data-table=summary] thead th[data-field=tokens] button"
    first.page.click(button)
    first.page.locator("#list summary").first.click()
    first.page.locator("#list article").first.wait_for()
    address = first.page.url
    page = open_page(folder / "report/report.html", fragment=address[address.index("#") :])
    page.page.locator("#list article").first.wait_for()
    assert page.page.input_value("[data-state=models]") == "zebra"
    for one in (first, page):
        assert one.text(STATE) == "4 of 40 questions: 4 of 4 answers are correct"
        head = one.page.locator("table[data-table=summary] thead th[data-field=tokens]")
        # What costs least is first.
        assert head.get_attribute("aria-sort") == "ascending"
        assert one.column("exact_match", 0)[1:2] == ["Zebra"]


def test_tables_are_sorted_below_their_heading_and_filtered(open_page: Open, folder: Path) -> None:
    page = open_page(folder / "report/report.html")
    before = page.column("log_smape", 0)
    heading = page.page.locator("table[data-table=log_smape] thead th").first
    heading.locator("button").click()
    groups = [text for text in before if "questions" in text]
    after = page.column("log_smape", 0)
    assert [text for text in after if "questions" in text] == groups
    first = after[1 : after.index(groups[1])]
    assert first == sorted(first) and heading.get_attribute("aria-sort") == "ascending"
    # The other tables follow.
    assert page.column("exact_match", 0) == page.column("summary", 0) == after
    page.page.locator("table[data-table=horizons] thead th button").nth(3).click()
    # Sizes beyond the scale are sorted by their bound.
    cells = page.page.locator("table[data-table=horizons] tbody td:nth-child(4)").all_inner_texts()
    sizes = [text.removeprefix("≥ ").split("\n")[0] for text in cells]
    assert sizes == sorted(sizes, key=float, reverse=True) and len(sizes) == 3
    page.page.fill("[data-state=models]", "zebra")
    for table in ("log_smape", "exact_match", "summary"):
        assert page.column(table, 0) == [groups[0], "Zebra"]
    page.page.fill("[data-state=models]", "")
    assert {*page.column("comparisons", 2)} - {""} == {"All"}
    page.page.select_option("[data-state=task]", "addition")
    assert {*page.column("comparisons", 2)} - {""} == {"Add"}
    visible = page.page.locator("table[data-table=log_smape] thead th:visible").all_inner_texts()
    assert visible == ["Model", "All", "Add"]


def test_figures_name_light_and_filter_a_model(open_page: Open, folder: Path) -> None:
    page = open_page(folder / "report/report.html")
    figure = page.page.locator("figure .wide:has([id*='radar'])").first
    figure.focus()
    labels = page.page.evaluate(
        "JSON.parse(document.getElementById('page-data').textContent).members"
    )
    for _ in range(2):
        page.page.keyboard.press("ArrowRight")
    (name, value, *_) = page.text("#tip").split(" · ")
    lit = page.page.locator("table[data-table=summary] tr.lit")
    assert name in labels and lit.count() == 1
    # The number is that of the table.
    table = page.page.locator("table[data-table=log_smape]")
    column = table.locator("thead th").all_inner_texts().index(value.split(" ")[0])
    cell = table.locator("tr.lit td").nth(column - 1).inner_text()
    assert value.split(" ")[1] == cell.split("\n")[0]
    page.page.keyboard.press("Enter")
    assert page.page.input_value("[data-state=models]") == name
    assert len(page.column("summary", 0)) == 2
    page.page.keyboard.press("Enter")
    assert page.page.input_value("[data-state=models]") == ""
    page.page.keyboard.press("Escape")
    assert page.page.locator("#tip").is_hidden() and page.page.locator(".lit").count() == 0
    dot = page.page.locator("figure svg use[data-member]").first
    dot.scroll_into_view_if_needed()
    dot.hover(force=True)
    assert page.page.locator("#tip").is_visible()
    row = page.page.locator("table[data-table=log_smape] tr[data-member]").first
    row.hover()
    assert row.evaluate("(node) => node.classList.contains('lit')")


_WITH_FIGURES = ("report/report.html", "site/index.html")


@pytest.mark.parametrize("name", [*_WITH_FIGURES, "site/about.html", "site/models/zebra-low.html"])
def test_pages_fit_a_phone(open_page: Open, folder: Path, name: str) -> None:
    page = open_page(folder / name, **PHONE)
    assert page.widths() == (390, 390)
    lead = "[...document.querySelectorAll('.narrow svg')].map((one) => one.getBoundingClientRect())"
    edges = page.page.evaluate(f"{lead}.map((box) => box.right)")
    assert all(edge <= 390 for edge in edges) and bool(edges) == (name in _WITH_FIGURES)


def test_without_scripts_tables_and_figures_are_shown(open_page: Open, folder: Path) -> None:
    page = open_page(folder / "report/report.html", java_script_enabled=False)
    assert page.page.locator("table[data-table=summary]").is_visible()
    assert page.page.locator("figure svg").first.is_visible()
    assert page.page.locator("form").first.is_hidden()


def test_everything_but_the_responses_is_printed(open_page: Open, folder: Path) -> None:
    page = open_page(folder / "report/report.html")
    page.page.emulate_media(media="print")
    assert page.page.locator("#items").is_hidden() and page.page.locator("nav").is_hidden()
    page.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.page.locator(".warnings li").first.is_visible()


def test_hostile_text_stays_text_everywhere(open_page: Open, hostile: Path) -> None:
    page = open_page(hostile)
    assert ESCAPED in page.open_item("mean-0")
    for item in ("mean-2", "mean-3"):
        assert "<img src=x onerror='window.hacked = 2'>" in page.open_item(item)
    assert "… 999,513 more characters …" in page.open_item("mean-1")
    assert page.widths() == (1280, 1280)
    assert "\\x1b[31mred\\x1b[0m \\u202egnp.exe" in str(page.page.text_content("#settings"))
    assert page.page.evaluate("window.hacked") is None
    assert page.page.locator("img, textarea, b, [onload], svg:not(figure svg, td svg)").count() == 0
    assert page.page.locator("script:not([type])").count() == 1
    assert page.page.title().startswith("numbench: ") and "{{ 7 * 7 }}" in page.page.title()


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
    page.page.wait_for_function("document.scripts.length > 1")
    assert page.page.evaluate("window.hacked") is None
    stopped = "\n".join(page.errors)
    for what in ("http://127.0.0.1:9/x", "inline event handler", "inline script"):
        assert what in stopped
    page.context.close()


def test_hostile_text_fits_a_phone(open_page: Open, hostile: Path) -> None:
    page = open_page(hostile, **PHONE)
    page.open_item("mean-0")
    assert page.widths() == (390, 390)


def _assert_accessible(page: BrowserPage) -> None:
    """Check each layout and each color scheme once: colors do not depend on the layout."""
    for width, scheme in ((1400, "light"), (390, "dark")):
        page.page.set_viewport_size({"width": width, "height": 900})
        page.page.emulate_media(color_scheme=scheme)
        result = axe.Axe().run(page.page).response
        assert "color-contrast" in {rule["id"] for rule in result["passes"]}
        violations = [
            f"{rule['id']}: {node['html'][:200]}"
            for rule in result["violations"]
            for node in rule["nodes"]
        ]
        assert violations == [], (width, scheme)


def test_a_report_with_everything_open_is_accessible(open_page: Open, folder: Path) -> None:
    page = open_page(folder / "report/report.html")
    page.open_item("addition-2")
    page.page.evaluate(
        "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    )
    page.page.locator("#list article").last.wait_for()
    page.page.locator("table[data-table=summary] tr[data-member]").first.hover()
    _assert_accessible(page)


@pytest.mark.parametrize("name", ["index", "about", "models/zebra-low"])
def test_the_pages_of_a_leaderboard_are_accessible(
    open_page: Open, folder: Path, name: str
) -> None:
    _assert_accessible(open_page(folder / f"site/{name}.html"))
