"""`report.html` as a file: the answer first, all numbers of the tables, and nothing foreign."""

import base64
import hashlib
import json
import re
import zlib
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from msgspec.structs import replace

from numbench.records import Failure, Response
from numbench.reporting.answer import answers
from numbench.reporting.build import ReportResult, build_tables, report, report_json
from numbench.reporting.data import ReportData
from numbench.reporting.figures import render
from numbench.reporting.names import escape_invisible, json_block, truncate_middle
from numbench.reporting.page import PAPER_URL, render_page
from numbench.reporting.page.items import MAX_REASONING_LENGTH, MAX_TEXT_LENGTH, item_data
from numbench.reporting.read import read_report_data
from numbench.reporting.tables.render import format_bounds, format_value
from numbench.scoring import score_run
from tests.report import large_runs, runs
from tests.report.page_content import Elements, cells, page_of, responses


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> ReportResult:
    folder = tmp_path_factory.mktemp("mixed")
    return report([runs.mixed_run(folder)], out=folder / "out")


@pytest.fixture(scope="module")
def mixed_page(mixed: ReportResult) -> str:
    return (mixed.out / "report.html").read_text("utf-8")


def test_the_page_begins_with_the_sentences_of_the_terminal(synthetic_data: ReportData) -> None:
    page = page_of(synthetic_data)
    known = answers(synthetic_data)
    assert len(known) == len(synthetic_data.datasets) > 1
    positions = [
        page.index(str(escape_invisible(sentence)), page.index("<main>"))
        for answer in known
        for sentence in answer.sentences
    ]
    assert positions == sorted(positions)
    assert positions[-1] < page.index('data-table="summary"') < page.index('id="warnings"')


def test_every_question_and_cell_of_the_tables_is_in_the_page(synthetic_data: ReportData) -> None:
    page = page_of(synthetic_data)
    every = (chain.from_iterable(run.scored.rows.values()) for run in synthetic_data.runs)
    asked = [{row.item.id: row.item.prompt for row in each} for each in every]
    assert all(asked[row["run"]][row["id"]] == row["prompt"] for row in responses(page))
    tables = build_tables(synthetic_data)
    shown = [built for name, built in tables.items() if name != "coverage"]
    assert len(shown) > 8
    for built in shown:
        rows = cells(page, built.table.name)
        expected = [row for group in built.groups.values() for row in group]
        assert len(rows) == len(expected)
        for texts, row in zip(rows, expected, strict=True):
            joined = " ".join(texts)
            for column in built.columns:
                value = row.cells.get(column.field)
                for part in (format_value(column, value), format_bounds(column, value)):
                    part = part.replace("<", "&lt;").replace(">", "&gt;")
                    assert " ".join(part.split()) in joined


def test_the_policy_allows_only_this_style_and_script(mixed_page: str) -> None:
    elements = Elements(mixed_page)
    (policy,) = [a["content"] for _, a in elements.tags if a.get("http-equiv")]
    hashes = {
        tag: f"sha256-{base64.b64encode(hashlib.sha256(data.encode()).digest()).decode()}"
        for tag, attrs, data in elements.raw
        if attrs.get("type") != "application/json"
    }
    assert policy == (
        f"default-src 'none'; img-src data:; style-src '{hashes['style']}'; "
        f"script-src '{hashes['script']}'; base-uri 'none'; form-action 'none'"
    )


def test_the_page_loads_nothing_and_links_to_the_paper_only(mixed_page: str) -> None:
    ids = set(re.findall(r' id="([^"]+)"', mixed_page))
    for tag, attributes in Elements(mixed_page).tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
        for name in ("src", "href"):
            target = attributes.get(name) or "#items"
            assert target.removeprefix("#") in ids or (tag == "a" and target == PAPER_URL)


def test_every_response_is_in_the_page_with_its_score(mixed_page: str) -> None:
    rows = responses(mixed_page)
    assert len(rows) == 36
    by_id = {row["id"]: row for row in rows}
    wrong = by_id["addition-2"]
    assert (wrong["truth"], wrong["parsed"], wrong["text"]) == ("30", "33", '{"answer": 33}')
    assert (wrong["correct"], wrong["status"], wrong["kind"]) == (0, "ok", "rough")
    assert (wrong["shift"], wrong["first_difference"], wrong["digits"]) == (0, 1, 1)
    assert (wrong["generated"], wrong["base10"], wrong["task"]) == (10, 2, "addition")
    assert by_id["addition-3"]["status"] == "missing" and by_id["addition-3"]["text"] is None
    assert by_id["multiplication-0"]["failure"] == "no"
    assert by_id["sorting-0"]["parsed"] == ["1", "2"]


def test_long_texts_are_shortened_in_the_middle(tmp_path: Path) -> None:
    result = runs.all_right()
    result["mean-0"] = replace(
        runs.said("mean", 0, "a" * 9_000 + "end"), reasoning_text="b" * 9_000 + "end"
    )
    result["mean-1"] = Response(item_id="mean-1", error=Failure(kind="item", message="c" * 9_000))
    run = runs.run(tmp_path / "run", runs.dataset(tmp_path), result)
    data = read_report_data([run])
    by_id = {row["id"]: row for row in responses(page_of(data))}
    for field, limit, length in (
        ("text", MAX_TEXT_LENGTH, 9_003), ("reasoning", MAX_REASONING_LENGTH, 9_003)
    ):  # fmt: skip
        text = by_id["mean-0"][field]
        assert f"… {length - limit:,} more characters …" in text and text.endswith("end")
        assert limit < len(text) < limit + 40
    assert len(by_id["mean-1"]["failure"]) < MAX_TEXT_LENGTH + 40


def test_the_label_of_the_paper_protocol_stands_beside_the_exact_answer(tmp_path: Path) -> None:
    data = runs.as_paper(runs.dataset(tmp_path))
    labels = data.path / "published_labels.csv"
    if labels.exists():
        labels.write_text(labels.read_text().replace("addition-0,10", "addition-0,12"))
    run = runs.run(tmp_path / "run", data, runs.all_right())
    data_of_paper = read_report_data([run], "paper")
    by_id = {row["id"]: row for row in responses(page_of(data_of_paper))}
    assert by_id["addition-0"]["truth"] == "10"
    assert by_id["addition-1"]["label"] is None


def test_the_figures_lead_and_omitted_ones_have_a_reason(mixed_page: str) -> None:
    answer = mixed_page.index('<section id="answer"')
    assert answer < mixed_page.index('aria-label="Figure radar"') < mixed_page.index('id="tasks"')
    assert "pareto cost: fewer than two configurations" in mixed_page
    images = re.findall(r'<svg role="img" [^>]*width="(\d+)" height="(\d+)"', mixed_page)
    assert images and all(int(width) < 1000 for width, _ in images)


def test_figures_are_elements_with_ids_of_their_own_and_no_style(mixed_page: str) -> None:
    ids = re.findall(r' id="([^"]+)"', mixed_page)
    assert len(ids) == len(set(ids))
    assert len([name for name in ids if "-marks~" in name]) > 5
    references = re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', mixed_page)
    assert references and set(references) <= set(ids)
    assert " style=" not in mixed_page and "<metadata" not in mixed_page


def test_every_number_of_the_page_is_one_of_the_report(synthetic_data: ReportData) -> None:
    """What is sorted by and drawn as bars is what report.json has."""
    built = build_tables(synthetic_data)
    page, tables = page_of(synthetic_data), report_json(synthetic_data, built, {})["tables"]
    assert isinstance(tables, dict)
    numbers = bars = 0
    for name, rows in tables.items():
        if name == "coverage":
            continue
        (table,) = re.findall(rf'<table data-table="{name}".*?</table>', page, re.S)
        fields = re.findall(r'data-field="([^"]+)"', table)[1:]
        shown = re.findall(r'<tr class="(?:run|reference|published)".*?</tr>', table, re.S)
        assert len(shown) == len(rows)
        for text, row in zip(shown, rows, strict=True):
            for field, cell in zip(fields, re.findall(r"<td.*?</td>", text, re.S), strict=True):
                value = row[field]
                number = next(iter(value.values())) if isinstance(value, dict) else value
                found = re.search(r'data-sort="([^"]+)"', cell)
                assert (found is not None) == isinstance(number, int | float)
                assert not found or float(found[1]) == number
                numbers += found is not None
                if ends := re.search(r'2H100"/><path d="M([\d.]+) 2H([\d.]+)"', cell):
                    low, high = map(float, ends.groups())
                    assert low == pytest.approx(value["low"], abs=0.051)
                    assert high == pytest.approx(max(value["high"], low + 0.8), abs=0.1)
                    bars += 1
    assert numbers > 500 and bars > 50


def test_a_report_of_sizes_alone_has_no_responses(synthetic_data: ReportData) -> None:
    data = ReportData([], synthetic_data.horizons)
    figures, omitted = render(data, (), lambda message: None, ["horizons"])
    page = render_page(data, build_tables(data), figures, omitted)
    assert '<section id="items"' not in page
    assert page.index('aria-label="Figure horizons"') < page.index('data-table="horizons"')


def test_invisible_characters_are_escaped_and_lines_bounded() -> None:
    assert escape_invisible("a\u202eb\x1b[0m\u2028") == "a\\u202eb\\x1b[0m\\u2028"
    assert escape_invisible("café 数") == "café 数"
    assert len(str(escape_invisible("x" * 10_000))) < 2_100
    assert truncate_middle("abcdefgh", 4) == "abc\n… 4 more characters …\nh"
    assert json_block({"a": "</script>\u2028&"}) == ('{"a":"\\u003c/script\\u003e\\u2028\\u0026"}')


def test_a_large_page_has_random_questions_of_each_task_with_all_their_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = large_runs.dataset(tmp_path)
    folders = [large_runs.run(tmp_path / name, data, lambda task, index: True) for name in "ab"]
    scored = [score_run(folder) for folder in folders]
    monkeypatch.setattr("numbench.reporting.page.items.MAX_ANSWERS", 4 * len(data.tasks) + 1)
    known = item_data(scored)
    assert (known.responses, known.total) == (4 * len(data.tasks), 80 * len(data.tasks))
    tasks = json.loads(zlib.decompress(base64.b64decode(known.items)))["task"]
    assert Counter(tasks) == dict.fromkeys(data.tasks, 2)
