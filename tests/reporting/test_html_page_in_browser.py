"""`report.html` in a browser: sorting, filters, items, links, keyboard, phone, contrast."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from numbench.dataset.store import Dataset
from numbench.records import Answer, Response
from numbench.reporting import report
from numbench.reporting.digit_alignment import align_digits
from numbench.reporting.entries import measure
from numbench.reporting.html_page import WEB, render
from numbench.reporting.report_data import ReportData
from numbench.reporting.table_model import TableContext
from numbench.resources import resource_folder
from numbench.scoring import score_run
from numbench.scoring.taxonomy import CATEGORIES
from tests.reporting import runs
from tests.reporting.browser import PHONE, BrowserPage, needs_browser

pytestmark = [needs_browser, pytest.mark.slow]

Open = Callable[..., BrowserPage]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, placeholder_figures: None) -> Path:
    """A report of two runs, one mixed and one all right, beside the published rows."""
    folder = tmp_path_factory.mktemp("plain")
    runs.mixed_run(folder, is_paper=True)
    data = runs.dataset(folder, "tiny")
    runs.run(folder / "runs" / "zebra", data, runs.all_right(), display="Zebra", reasoning="low")
    return report([folder / "runs"], out=folder / "out").out / "report.html"


def choose(page: BrowserPage, **filters: str) -> None:
    for name, value in filters.items():
        field = page.page.locator(f"#item-{name}")
        if name in ("from", "to", "search"):
            field.fill(value)
        else:
            field.select_option(value)


def sort_by(page: BrowserPage, table: str, name: str) -> None:
    page.page.locator(f"table[data-table={table}] thead button", has_text=name).click()


def test_tables_sort_by_number_with_empty_cells_last(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    as_written = page.column("tokens", 3)
    assert as_written.count("") == 1
    sort_by(page, "tokens", "Div")
    values = page.column("tokens", 3)
    assert values[-1] == ""
    numbers = [float(value) for value in values[:-1]]
    assert numbers == sorted(numbers, reverse=True) and len(numbers) == 14
    head = page.page.locator("table[data-table=tokens] th", has_text="Div")
    assert head.get_attribute("aria-sort") == "descending"
    sort_by(page, "tokens", "Div")
    assert page.column("tokens", 3) == [f"{n:.0f}" for n in sorted(numbers)] + [""]
    assert head.get_attribute("aria-sort") == "ascending"
    sort_by(page, "tokens", "Div")
    assert page.column("tokens", 3) == as_written
    assert head.get_attribute("aria-sort") is None


def test_published_rows_of_the_summary_stay_below_the_runs(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    for _ in range(2):
        rows = page.page.locator("table[data-table=summary] tbody tr")
        classes = [row.get_attribute("class") for row in rows.all()]
        assert classes == [None] * 2 + ["published"] * 13
        sort_by(page, "summary", "Tokens")
    # Twice: in ascending order. A run without known tokens comes after the other run.
    tokens = page.column("summary", 3)
    assert tokens[:2] == ["10", "–"]
    published = [float(text.replace(",", "")) for text in tokens[2:]]
    assert published == sorted(published)
    assert page.column("summary", 4) == ["–"] * 15
    assert page.column("summary", 5)[2:] == ["–"] * 13
    caption = page.text("#table-summary p")
    assert "Below, in grey and without ranks: published (paper)." in caption


def test_tables_of_up_to_thirty_rows_are_not_cut_and_keep_their_header_in_view(
    open_page: Open, plain: Path
) -> None:
    page = open_page(plain, viewport={"width": 1400, "height": 500})
    box = page.page.locator("#table-log_smape .scroll")
    assert box.evaluate("(box) => box.scrollHeight <= box.clientHeight")
    last = page.page.locator("#table-log_smape tbody tr").last
    last.scroll_into_view_if_needed()
    top = page.page.locator("#table-log_smape thead th").first.bounding_box()["y"]
    assert abs(top) < 2


def test_a_table_that_is_cut_off_fades_out_until_its_end_is_in_view(
    open_page: Open, plain: Path
) -> None:
    page = open_page(plain, **PHONE)
    more = "document.querySelector('#table-log_smape .scroll').classList.contains('more')"
    page.wait_until(more)
    page.page.locator("#table-log_smape .scroll").evaluate("(box) => { box.scrollLeft = 1e6; }")
    page.wait_until(f"!{more}")


def test_tables_and_filters_have_the_same_tasks_in_the_same_order(
    open_page: Open, plain: Path
) -> None:
    page = open_page(plain).page
    headers = page.locator("table[data-table=log_smape] thead th[data-task]").all_inner_texts()
    for menu in ("#filter-task", "#item-task"):
        options = page.locator(f"{menu} option").all_inner_texts()
        assert options == ["all", *headers]
    assert headers[0] == "Add" and "Sorting" in headers


def test_tables_sort_by_name(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    sort_by(page, "log_smape", "Model")
    models = page.column("log_smape", 0)
    assert models == sorted(models, key=str.lower) and models[-1] == "Zebra"


def test_tables_filter_by_model_task_and_source(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    page.page.fill("#filter-model", "gpt 5")
    assert page.column("log_smape", 0) == ["GPT 5"] * 3
    assert page.text("#table-count") == "3 of 15 rows"
    page.page.select_option("#filter-source", "own")
    assert sources(page) == ["minimal, measured"]
    page.page.select_option("#filter-source", "published")
    assert sources(page) == ["maximal, published (paper)", "minimal, published (paper)"]
    page.page.fill("#filter-model", "")
    page.page.select_option("#filter-source", "")
    page.page.select_option("#filter-task", "addition")
    names = page.page.locator("table[data-table=log_smape] thead th:visible").all_inner_texts()
    assert names == ["Model", "Add"]
    assert set(page.column("coverage", 3)) == {"Add"}


def sources(page: BrowserPage) -> list[str]:
    """Return level and source of the visible rows."""
    return [
        str(text)
        for text in page.page.locator(
            "table[data-table=log_smape] tbody tr:visible th small"
        ).all_inner_texts()
    ]


def test_filters_and_the_response_are_in_the_address(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    page.page.fill("#filter-model", "zebra")
    choose(page, task="addition", outcome="not right")
    before = page.status()
    page.page.locator("#list [role=option]").first.click()
    page.wait_until("location.hash.includes('item=')")
    detail = page.text("#detail")
    again = open_page(plain, page.page.evaluate("location.hash"))
    assert (again.status(), again.text("#detail")) == (before, detail)
    assert again.column("log_smape", 0) == ["Zebra"]
    again.page.locator("#item-filters button[type=reset]").click()
    again.wait_until("!location.hash.includes('items.')")
    assert "table.model=zebra" in again.page.evaluate("location.hash")


def test_keys_move_on_after_a_click(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    page.page.locator("#list [role=option]").nth(1).click()
    selected = "document.querySelector('#list [aria-selected=true]').dataset.index"
    assert page.page.evaluate(selected) == "1"
    page.page.keyboard.press("j")
    page.page.keyboard.press("j")
    assert page.page.evaluate(selected) == "3"
    page.page.keyboard.press("k")
    assert page.page.evaluate(selected) == "2"


def test_the_first_screen_shows_the_scores(open_page: Open, plain: Path) -> None:
    for window in ({"viewport": {"width": 1280, "height": 900}}, PHONE):
        page = open_page(plain, **window)
        means = page.page.locator("table[data-table=summary] tbody td:nth-child(2)")
        box = means.first.bounding_box()
        width, height = page.page.evaluate("[innerWidth, innerHeight]")
        assert box["x"] + box["width"] <= width and box["y"] + box["height"] <= height


def test_links_of_the_menu_lead_to_their_section(open_page: Open, plain: Path) -> None:
    """Figures are loaded late; their places are reserved."""
    page = open_page(plain)
    page.page.locator("nav a", has_text="Items").click()
    page.wait_until("[...document.images].every((image) => image.complete || !image.loading)")
    assert (
        abs(page.page.evaluate("document.querySelector('#items').getBoundingClientRect().top")) < 50
    )


def test_items_filter_by_every_property(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    assert page.status() == "72 of 72 responses, 67 correct"
    expected = (
        ({"run": "0"}, 36),
        ({"task": "division"}, 8),
        ({"outcome": "right"}, 67),
        ({"outcome": "not right"}, 5),
        ({"outcome": "wrong"}, 2),
        ({"outcome": "missing"}, 1),
        ({"outcome": "unparseable"}, 1),
        ({"kind": "format"}, 1),
        ({"from": "3"}, 18),
        ({"from": "1", "to": "2"}, 36),
        ({"search": "MEAN 0"}, 2),
        ({"search": "sorting-3"}, 2),
        ({"noted": "tool"}, 0),
        ({"run": "1", "task": "mean", "to": "0"}, 1),
    )
    for filters, count in expected:
        choose(page, **filters)
        assert page.status().startswith(f"{count} of 72 responses"), filters
        page.page.locator("#item-filters button", has_text="Reset filters").click()
        page.wait_until("document.getElementById('items-state').textContent.startsWith('72 of')")


@pytest.mark.parametrize(
    ("truth", "answer", "text"),
    [
        ("0.000501658", "5", "Different order of magnitude."),
        ("0.000501658", "0.005", "Different order of magnitude."),
        ("0.000501658", "0.000511", "First difference: significant digit 2."),
        ("123.5", "124.5", "First difference: significant digit 3."),
        ("123.5", "1235", "Different number of digits before the decimal point."),
        ("12", "-12", "The signs differ."),
    ],
)
def test_the_first_difference_is_described(
    open_page: Open, plain: Path, truth: str, answer: str, text: str
) -> None:
    script = (WEB / "script" / "digits.js").read_text("utf-8")
    shift, column = align_digits(answer, truth)
    call = f"describeDifference({truth!r}, {answer!r}, {shift}, {column}, false)"
    assert open_page(plain).page.evaluate(f"() => {{ {script}; return {call}; }}") == text


def test_an_item_shows_the_response_and_its_first_difference(open_page: Open, plain: Path) -> None:
    page = open_page(plain, "#item=addition-2&run=gpt-5")
    detail = page.text("#detail")
    facts = ("What is addition 2?", '{"answer": 33}', "First difference: significant digit 2.")
    (kind,) = [one for one in CATEGORIES if one.name == "rough"]
    for fact in (
        *facts,
        "incorrect: rough",
        kind.definition,
        "δ₁₀ = 2, δ₂ = 4",
        "10 generated",
        "unknown",
        "protocol:exact",
    ):
        assert fact in detail
    signature = page.page.locator("#detail pre").last.inner_text()
    assert signature in plain.read_text()
    marks = page.page.locator("#detail .digits mark").all_inner_texts()
    assert marks == ["0", "3"]


def test_a_response_without_an_answer_shows_the_reason(open_page: Open, plain: Path) -> None:
    page = open_page(plain, "#item=multiplication-0&run=gpt-5")
    assert "No answer parsed (error)." in page.text("#detail")
    assert "no" in page.text("#detail section:has-text('Request error') pre")


PAIRS: tuple[tuple[Answer, Answer], ...] = (
    ("12.6", "12.5"),
    ("12.51", "12.5"),
    ("12", "12.5"),
    ("125", "12.5"),
    ("1.25", "12.5"),
    ("-12.5", "12.5"),
    ("1.5e300", "12.5"),
    ("0.00000012345678901", "0.00000012345678902"),
)


def test_the_marked_difference_is_that_of_align_digits(
    open_page: Open, tmp_path: Path, plain: Path
) -> None:
    page = open_page(plain)
    source = (Path(runs.__file__).parents[2] / "bench/numbench/reporting/web/script").resolve()
    code = "".join((source / f"{name}.js").read_text() for name in ("dom", "digits"))
    bare = page.context.new_page()
    bare.set_content('<script type="application/json" id="page-data">{"tasks": {}}</script>')
    bare.add_script_tag(content=code)
    for answer, truth in PAIRS:
        shift, at = align_digits(answer, truth)
        lines = bare.evaluate(
            "([truth, answer, shift, at]) => [...comparison(truth, answer, shift, at)"
            ".querySelectorAll('code')].map((one) => [...one.childNodes]"
            ".map((node) => [node.nodeName, node.textContent]))",
            [truth, answer, shift, at],
        )
        assert at is not None
        written = (" " * -shift + truth, " " * shift + answer)
        for line, text in zip(lines[:2], written, strict=True):
            before = line[0][1]
            assert (before if at else "") == text.ljust(at)[:at]
            assert "".join(part for _, part in line).rstrip() == text
        assert lines[2] == [["#text", " " * at + "▲"]]


def test_everything_is_reachable_by_keyboard(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    focused = "document.activeElement"
    page.page.keyboard.press("Tab")
    assert page.page.evaluate(f"{focused}.textContent") == "Skip to the tables"
    # A score: arrows move between cells, Enter opens its note, Escape leads back.
    page.page.locator("table[data-table=log_smape] td[tabindex='0']").focus()
    assert "Add: 69.6, 95 % bounds [23.4, 94.5]" in page.text("#tooltip")
    page.page.keyboard.press("ArrowRight")
    assert "Mult: 100.0" in page.text("#tooltip") and "n = 3 of 4 items" in page.text("#tooltip")
    assert "|n:4|model:gpt-5|" in page.text("#tooltip")
    page.page.keyboard.press("ArrowDown")
    assert "Zebra (low, measured)" in page.text("#tooltip")
    page.page.keyboard.press("Enter")
    assert page.page.evaluate(f"{focused}.textContent") == "Show these items"
    page.page.keyboard.press("Escape")
    assert not page.page.locator("#tooltip").is_visible()
    assert page.page.evaluate(f"{focused}.dataset.task") == "multiplication"
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("Enter")
    assert page.status() == "4 of 72 responses, 4 correct"
    # The items: search, move, read, and back.
    page.page.keyboard.press("/")
    assert page.page.evaluate(f"{focused}.id") == "item-search"
    page.page.keyboard.type("multiplication 3")
    assert page.status().startswith("1 of 72")
    page.page.keyboard.press("Escape")
    assert page.page.evaluate(f"{focused}.id") == "list"
    page.page.keyboard.press("j")
    chosen = page.page.locator("#list [aria-selected=true]")
    assert chosen.get_attribute("id") == page.page.locator("#list").get_attribute(
        "aria-activedescendant"
    )
    page.page.keyboard.press("Enter")
    assert page.page.evaluate(f"{focused}.id") == "detail"
    assert "What is multiplication 3?" in page.text("#detail")
    page.page.keyboard.press("Escape")
    assert page.page.evaluate(f"{focused}.id") == "list"


def test_the_selected_row_of_the_list_remains_visible(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    page.page.locator("#list").focus()
    for key, index in (("End", 72), ("k", 71), ("Home", 1), ("ArrowDown", 2), ("PageDown", 22)):
        page.page.keyboard.press(key)
        row = page.page.locator("#list [aria-selected=true]")
        seen = int(row.get_attribute("aria-posinset"))
        assert seen == index or (key == "PageDown" and seen > 2)
        box, frame = page.page.evaluate(
            "['#list [aria-selected=true]', '#list'].map((selector) =>"
            "document.querySelector(selector).getBoundingClientRect().toJSON())"
        )
        assert frame["top"] <= box["top"] + 1 and box["bottom"] <= frame["bottom"] + 1


def test_links_open_an_item_and_back_returns(open_page: Open, plain: Path) -> None:
    page = open_page(plain, "#item=mean-2&run=zebra")
    assert "What is mean 2?" in page.text("#detail") and "Zebra" in page.text("#detail h3")
    assert page.page.locator("#list [aria-selected=true]").count() == 1
    page.page.locator("#detail button", has_text="Next").click()
    assert page.page.url.endswith("#item=mean-3&run=zebra")
    assert "What is mean 3?" in page.text("#detail")
    page.page.go_back()
    page.wait_until("location.hash === '#item=mean-2&run=zebra'")
    assert "What is mean 2?" in page.text("#detail")
    page.page.go_forward()
    page.wait_until("location.hash === '#item=mean-3&run=zebra'")
    assert "What is mean 3?" in page.text("#detail")


def test_the_link_of_an_item_can_be_copied(open_page: Open, plain: Path) -> None:
    page = open_page(plain, "#item=mean-2&run=zebra")
    page.page.evaluate(
        "Object.defineProperty(navigator, 'clipboard',"
        "{ value: { writeText: async (text) => { window.copied = text; } } })"
    )
    page.page.locator("#detail button", has_text="Copy link").click()
    page.wait_until("window.copied")
    assert page.page.evaluate("window.copied") == f"{page.url}#item=mean-2&run=zebra"


def test_each_sample_of_an_item_has_its_own_entry_and_link(
    open_page: Open, tmp_path: Path, placeholder_figures: None
) -> None:
    data = runs.dataset(tmp_path, tasks=("addition",))
    texts = {"0": '{"answer": 10}', "1": '{"answer": 12}'}
    responses = {
        sample: msgspec.structs.replace(runs.said("addition", 0, text), sample=int(sample))
        for sample, text in texts.items()
    }
    runs.run(tmp_path / "runs" / "two", data, responses, tasks=("addition",), samples=2)
    path = report([tmp_path / "runs"], out=tmp_path / "out").out / "report.html"
    page = open_page(path, "#item=addition-0&run=two&sample=1")
    assert page.text("#detail h3").endswith("sample 2 of 2")
    assert '{"answer": 12}' in page.text("#detail")
    assert page.status().startswith("8 of 8 responses")
    page.page.locator("#detail button", has_text="Previous").click()
    assert page.page.url.endswith("#item=addition-0&run=two")
    assert '{"answer": 10}' in page.text("#detail")
    page.page.locator("#detail button", has_text="Next").click()
    assert page.page.url.endswith("#item=addition-0&run=two&sample=1")


def test_a_link_to_an_unknown_item_shows_a_message(open_page: Open, plain: Path) -> None:
    page = open_page(plain, "#item=nothing&run=gpt-5")
    assert "not in this report" in page.status()


def test_the_page_fits_a_phone(open_page: Open, plain: Path) -> None:
    page = open_page(plain, **PHONE)
    page.page.fill("#item-search", "addition-2")
    page.page.locator("#list [role=option]").first.tap()
    cell = page.page.locator("table[data-table=log_smape] td[tabindex]").first
    cell.scroll_into_view_if_needed()
    cell.tap()
    assert "Show these items" in page.text("#tooltip")
    listed, detail = (page.page.locator(one).bounding_box() for one in ("#list", "#detail"))
    assert detail["y"] >= listed["y"] + listed["height"] and detail["width"] > 300
    assert page.widths() == (360, 360)


def test_a_printed_page_shows_whole_tables_and_no_items(open_page: Open, plain: Path) -> None:
    # The width of A4 in landscape less its margins, at 96 pixels per inch.
    page = open_page(plain, viewport={"width": 1032, "height": 700})
    page.page.emulate_media(media="print")
    assert not page.page.locator("#items").is_visible()
    tables = page.page.locator(".scroll table")
    widths = [box["x"] + box["width"] for table in tables.all() if (box := table.bounding_box())]
    assert len(widths) > 3 and max(widths) <= 1032
    clipped = "nodes => nodes.filter(n => getComputedStyle(n).overflowX !== 'visible').length"
    assert page.page.locator(".scroll, pre").evaluate_all(clipped) == 0


_CONTRASTS = """() => {
  const rgb = (text) => text.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let one = node; one; one = one.parentElement) {
      const colour = rgb(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const result = {};
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    if (!own || !node.checkVisibility() || node.closest('option, noscript')) continue;
    const [one, two] = [light(rgb(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    const name = `${node.tagName}.${node.className}`;
    result[name] = Math.min(result[name] ?? 99, ratio);
  }
  return result;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_enough_contrast(open_page: Open, plain: Path, scheme: str) -> None:
    page = open_page(plain, "#item=addition-2&run=gpt-5", color_scheme=scheme)
    back = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")
    page.page.locator("table[data-table=log_smape] td[tabindex]").first.click()
    result = page.page.evaluate(_CONTRASTS)
    assert {"MARK.", "SPAN.badge bad", "SMALL.", "P.soft", "CODE."} <= set(result)
    assert {name: ratio for name, ratio in result.items() if ratio < 4.5} == {}


def test_every_control_has_an_accessible_name(open_page: Open, plain: Path) -> None:
    page = open_page(plain, "#item=addition-2&run=gpt-5")
    nameless = page.page.evaluate(
        "[...document.querySelectorAll('button, input, select, [role=listbox], [role=grid],"
        "[role=region], img')].filter((one) => !(one.textContent.trim() || one.alt"
        " || one.ariaLabel || one.getAttribute('aria-labelledby') || one.labels?.length))"
        ".map((one) => one.outerHTML.slice(0, 80))"
    )
    assert nameless == []


def test_the_keys_of_the_list_work_while_the_items_are_in_view(
    open_page: Open, plain: Path
) -> None:
    page = open_page(plain)
    page.page.keyboard.press("j")
    assert page.text("#detail") == "Select a response."
    page.page.locator("nav a", has_text="Items").click()
    page.wait_until("document.querySelector('#list').getBoundingClientRect().top < innerHeight")
    page.page.keyboard.press("j")
    selected = page.page.locator("#list [aria-selected=true]")
    assert selected.get_attribute("data-index") == "0"
    page.page.keyboard.press("j")
    assert selected.get_attribute("data-index") == "1"
    page.page.locator("#item-search").press("j")
    assert page.page.input_value("#item-search") == "j"


def test_figures_open_enlarged_and_close(open_page: Open, plain: Path) -> None:
    page = open_page(plain)
    large = page.page.locator("#enlarged img")
    page.page.locator("figure button").first.click()
    large.wait_for(state="visible")
    page.page.keyboard.press("Escape")
    large.wait_for(state="hidden")


def test_an_enlarged_figure_is_larger_than_the_window_of_a_phone(
    open_page: Open, plain: Path
) -> None:
    page = open_page(plain, **PHONE)
    page.page.locator("figure button").first.click()
    large = page.page.locator("#enlarged img")
    large.wait_for(state="visible")
    assert large.bounding_box()["width"] > 2 * PHONE["viewport"]["width"]


def test_scores_are_readable_without_javascript(open_page: Open, plain: Path) -> None:
    page = open_page(plain, java_script_enabled=False)
    for text in ("69.6", "[23.4, 94.5]", "published (paper)", "numbench show RUN"):
        assert text in page.text("main")
    assert "protocol:exact" in page.text("#signatures")
    assert page.page.locator("figure img").first.is_visible()
    assert not page.page.locator("#browser").is_visible()
    assert not page.page.locator("#table-filters").is_visible()


def test_58500_responses_are_listed_with_few_elements(open_page: Open, tmp_path: Path) -> None:
    data = Dataset(resource_folder("datasets") / "v1")
    answers = {
        item.id: Response(item_id=item.id, text='{"answer": 1.5}')
        for items in data.by_task.values()
        for item in items
    }
    (one,) = measure([score_run(runs.run(tmp_path / "run", data, answers))])
    data_of_report = ReportData([one] * 13)
    # Without the note on detectable differences, which needs all comparisons.
    data_of_report.context = TableContext("Measured", ())
    page_text = render(data_of_report, [], [], {}, {}, "0").text
    path = tmp_path / "report.html"
    path.write_text(page_text, "utf-8")
    assert len(page_text) < 4_000_000
    page = open_page(path)
    assert page.status().startswith("58,500 of 58,500 responses")
    page.page.locator("#list").focus()
    page.page.keyboard.press("End")
    assert page.page.locator("#list [aria-posinset='58500']").is_visible()
    assert page.page.locator("#list [role=option]").count() < 60
    choose(page, run="12", task="std")
    assert page.status().startswith("500 of 58,500")
