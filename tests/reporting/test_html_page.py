"""`report.html` as a file: its content, and the escaping of untrusted text."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import shutil
import subprocess
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from numbench.records import Failure, Response
from numbench.reporting import report
from numbench.reporting.escape import escape_invisible, json_block, truncate_middle
from numbench.reporting.html_items import item_data
from numbench.reporting.html_page import SCRIPTS, WEB, script_text
from numbench.reporting.page_heading import PAPER_URL
from tests.reporting import runs

pytestmark = pytest.mark.usefixtures("without_figures")


class _Elements(HTMLParser):
    """Names and attributes of all elements, and the content of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style") and self.cdata_elem:
            self.raw.append((*self.tags[-1], data))


def page_of(out: Path) -> str:
    return (out / "report.html").read_text()


def columns(packed: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return result


def spread(column: Any, size: int) -> list[Any]:
    return column if isinstance(column, list) else [column["same"]] * size


def responses(page: str) -> list[dict[str, Any]]:
    """The items and responses of a page, one dictionary per response."""
    raw = _Elements(page).raw
    (packed,) = [data for _, attrs, data in raw if attrs.get("id") == "packed-items"]
    items = columns(packed)
    rows = []
    for run, (_, _, data) in enumerate(one for one in raw if one[1].get("class") == "packed-run"):
        result = columns(data)
        places = result.pop("item")
        spread_out = {name: spread(column, len(places)) for name, column in result.items()}
        for number, index in enumerate(places):
            of_item = {name: values[index] for name, values in items.items()}
            own = {name: values[number] for name, values in spread_out.items()}
            rows.append({"run": run, **of_item, **own})
    return rows


def test_the_policy_allows_only_this_style_and_script(tmp_path: Path) -> None:
    report([runs.mixed_run(tmp_path)], out=tmp_path / "out")
    elements = _Elements(page_of(tmp_path / "out"))
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


def test_the_page_loads_nothing_and_links_to_the_paper_only(tmp_path: Path) -> None:
    report([runs.mixed_run(tmp_path)], out=tmp_path / "out")
    elements = _Elements(page_of(tmp_path / "out"))
    for tag, attributes in elements.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
        for name in ("src", "href"):
            target = attributes.get(name) or "#"
            is_link = tag == "a" and target == PAPER_URL
            assert is_link or target.startswith(("#", "data:image/"))


def test_every_response_is_in_the_page_with_its_score(tmp_path: Path) -> None:
    report([runs.mixed_run(tmp_path)], out=tmp_path / "out")
    rows = responses(page_of(tmp_path / "out"))
    assert len(rows) == 36
    by_id = {row["id"]: row for row in rows}
    wrong = by_id["addition-2"]
    assert (wrong["truth"], wrong["parsed"], wrong["text"]) == ("30", "33", '{"answer": 33}')
    assert (wrong["right"], wrong["status"], wrong["kind"]) == (0, "ok", "rough")
    assert (wrong["shift"], wrong["first_difference"], wrong["digits"], wrong["rule"]) == (
        0,
        1,
        1,
        "json",
    )
    assert (wrong["generated"], wrong["reasoning"], wrong["input"]) == (10, None, 5)
    assert (wrong["base10"], wrong["base2"], wrong["task"]) == (2, 4, "addition")
    missing = by_id["addition-3"]
    assert (missing["status"], missing["text"], missing["generated"]) == ("missing", None, None)
    assert (by_id["multiplication-0"]["status"], by_id["multiplication-0"]["failure"]) == (
        "error",
        "no",
    )
    assert by_id["sorting-0"]["truth"] == ["1", "2"] == by_id["sorting-0"]["parsed"]
    assert by_id["division-0"]["generated"] is None


def test_items_of_several_runs_are_written_once(tmp_path: Path) -> None:
    data = runs.dataset(tmp_path)
    for name in ("a", "b"):
        runs.run(tmp_path / "runs" / name, data, runs.all_right(), display=name)
    other = runs.dataset(tmp_path, "other", tasks=("addition",))
    runs.run(tmp_path / "runs" / "c", other, runs.all_right(), display="c", tasks=("addition",))
    report([tmp_path / "runs"], out=tmp_path / "out")
    page = page_of(tmp_path / "out")
    assert [row["run"] for row in responses(page)] == [0] * 36 + [1] * 36 + [2] * 4
    (packed,) = re.findall(r'id="packed-items">([^<]*)<', page)
    # The other dataset's items count as its own, whatever their ids.
    assert len(columns(packed)["id"]) == 40


def test_long_texts_are_truncated_with_a_note(tmp_path: Path) -> None:
    result = runs.all_right()
    result["mean-0"] = runs.said("mean", 0, '{"answer": 0.' + "0" * 1_000_000)
    report([runs.run(tmp_path / "run", runs.dataset(tmp_path), result)], out=tmp_path / "out")
    page = page_of(tmp_path / "out")
    assert len(page) < 200_000
    (row,) = [row for row in responses(page) if row["id"] == "mean-0"]
    assert row["length"] == 1_000_013
    assert "\n… 998,013 more characters …\n" in row["text"] and len(row["text"]) < 2100
    assert "Texts longer than 2,000 characters are truncated" in page


def test_many_long_texts_are_truncated_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from numbench.reporting import html_items
    from numbench.reporting.entries import measure
    from numbench.scoring import score_run

    result = {key: runs.said(*key.split("-"), "x" * 1900) for key in runs.all_right()}  # type: ignore[arg-type]
    folder = runs.run(tmp_path / "run", runs.dataset(tmp_path), result)
    measured = measure([score_run(folder)])
    assert item_data(measured, 10**6).text_limit == 2000
    monkeypatch.setattr(html_items, "_MAX_TOTAL_TEXT_LENGTH", 36 * 600)
    assert item_data(measured, 10**6).text_limit == 500


def test_texts_are_truncated_further_if_their_compressed_data_is_too_large(
    tmp_path: Path,
) -> None:
    from numbench.reporting.entries import measure
    from numbench.scoring import score_run

    digits = random.Random(1)
    result = {
        key: runs.said(*key.split("-"), str(digits.randrange(10**1900)))  # type: ignore[arg-type]
        for key in runs.all_right()
    }
    folder = runs.run(tmp_path / "run", runs.dataset(tmp_path), result)
    measured = measure([score_run(folder)])
    assert item_data(measured, 10**6).text_limit == 2000
    items = item_data(measured, 25_000)
    assert sum(map(len, (items.items, *items.runs))) <= 25_000
    assert 500 < items.text_limit < 1500


def test_reasoning_texts_are_apart_from_the_items(tmp_path: Path) -> None:
    result = runs.all_right()
    result["mean-0"] = Response(
        item_id="mean-0", text='{"answer": 14}', reasoning_text="I used a calculator. " * 20
    )
    report([runs.run(tmp_path / "run", runs.dataset(tmp_path), result)], out=tmp_path / "out")
    page = page_of(tmp_path / "out")
    (row,) = [row for row in responses(page) if row["id"] == "mean-0"]
    assert (row["thought"], row["tool"]) == (420, 1)
    assert not any("calculator" in str(row) for row in responses(page))
    (packed,) = re.findall(r'id="reasoning-[0-9a-f]{16}">([^<]+)<', page)
    texts = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert [text for text in texts if text] == ["I used a calculator. " * 20]
    assert texts.index("I used a calculator. " * 20) == responses(page).index(row)
    assert not (tmp_path / "out" / "reasoning").exists()
    assert "&#39;self&#39;" not in page


def test_reasoning_that_does_not_fit_the_page_is_in_files_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from numbench.reporting import html_page

    result = runs.all_right()
    for key, response in result.items():
        result[key] = replace(response, reasoning_text=f"Thinking of {key}.")
    folder, out = runs.run(tmp_path / "run", runs.dataset(tmp_path), result), tmp_path / "out"
    report([folder], out=out)
    size = len(page_of(out).encode())
    monkeypatch.setattr(html_page, "_MAX_PAGE_SIZE", size - 100)
    report([folder], out=out)
    page = page_of(out)
    (path,) = (out / "reasoning").iterdir()
    assert f'"{path.stem}"' in page and 'id="reasoning-' not in page
    assert "&#39; &#39;self&#39;; base-uri" in page
    (out / "reasoning" / f"{'0' * 16}.js").write_text("of an earlier report")
    (out / "reasoning" / "notes.txt").write_text("mine")
    report([folder], out=out)
    assert {each.name for each in (out / "reasoning").iterdir()} == {path.name, "notes.txt"}
    (out / "reasoning" / "notes.txt").unlink()
    monkeypatch.setattr(html_page, "_MAX_PAGE_SIZE", size + 100)
    report([folder], out=out)
    assert not (out / "reasoning").exists()


def test_the_paper_protocol_shows_the_label_it_compared_with(tmp_path: Path) -> None:
    result = runs.all_right()
    result["mean-0"] = Response(
        item_id="mean-0", text='{"answer": 99}', extra={"study_label": "99"}
    )
    report(
        [runs.run(tmp_path / "run", runs.dataset(tmp_path), result)], "paper", out=tmp_path / "out"
    )
    by_id = {row["id"]: row for row in responses(page_of(tmp_path / "out"))}
    relabelled = by_id["mean-0"]
    assert (relabelled["truth"], relabelled["label"], relabelled["first_difference"]) == (
        "14",
        "99",
        None,
    )
    assert by_id["mean-1"]["label"] is None
    assert by_id["sorting-0"]["parsed"] == ["1", "2"]
    assert {row["first_difference"] for row in by_id.values()} == {None}


def test_runs_with_equal_folder_names_have_different_links(tmp_path: Path) -> None:
    data = runs.dataset(tmp_path)
    for name in ("a", "b"):
        runs.run(tmp_path / name / "run", data, runs.all_right(), display=name)
    report([tmp_path / "a", tmp_path / "b"], out=tmp_path / "out")
    (facts,) = re.findall(r'id="page-data">([^<]*)<', page_of(tmp_path / "out"))
    assert [run["key"] for run in json.loads(facts)["runs"]] == ["run", "run-2"]


def test_cells_sort_by_their_exact_value(tmp_path: Path) -> None:
    report([runs.mixed_run(tmp_path)], out=tmp_path / "out")
    page = page_of(tmp_path / "out")
    assert f'data-task="addition" data-sort="{100 * 2 / 3}"' in page
    assert '<td data-task="division"></td>' in page


def test_published_rows_are_labelled_as_such(tmp_path: Path) -> None:
    report([runs.mixed_run(tmp_path, is_paper=True)], out=tmp_path / "out")
    page = page_of(tmp_path / "out")
    assert page.count('class="published"') == page.count(", published (paper)</small>") == 52


@pytest.mark.parametrize("text", ["</script>", "<!--", "\u2028", "&lt;", "]]>"])
def test_json_in_the_page_cannot_end_its_element(text: str) -> None:
    block = json_block({"a": text})
    assert json.loads(block) == {"a": text}
    assert not set(block) & set("<>&\u2028")


def test_names_are_bounded_and_have_no_invisible_characters() -> None:
    assert escape_invisible("a\x1b[31m\u202e\u2028b\n") == "a\\x1b[31m\\u202e\\u2028b\\n"
    assert escape_invisible("é → 数 😀") == "é → 数 😀"
    assert len(str(escape_invisible("x" * 1_000_000))) < 2100
    assert truncate_middle("abcdefghij", 8) == "abcdef\n… 2 more characters …\nij"


def test_a_failure_message_is_bounded(tmp_path: Path) -> None:
    result = runs.all_right()
    result["mean-0"] = Response(
        item_id="mean-0", error=Failure(kind="item", message="<b>" * 100_000)
    )
    report([runs.run(tmp_path / "run", runs.dataset(tmp_path), result)], out=tmp_path / "out")
    (row,) = [row for row in responses(page_of(tmp_path / "out")) if row["id"] == "mean-0"]
    assert len(row["failure"]) < 2100


def test_the_script_includes_every_file_and_no_unsafe_calls() -> None:
    assert {path.stem for path in (WEB / "script").glob("*.js")} == set(SCRIPTS)
    script = script_text()
    assert "innerHTML" not in script and "insertAdjacentHTML" not in script
    assert "eval(" not in script and "</" not in script and "<!--" not in script


@pytest.mark.skipif(shutil.which("node") is None, reason="node checks the script's syntax")
def test_the_script_is_well_formed(tmp_path: Path) -> None:
    path = tmp_path / "page.js"
    path.write_text(script_text())
    checked = subprocess.run(["node", "--check", path], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_ranks_and_means_of_tasks_are_tables_of_the_page(tmp_path: Path) -> None:
    data = runs.dataset(tmp_path)
    for name in ("a", "b"):
        runs.run(tmp_path / "runs" / name, data, runs.all_right(), display=name)
    report([tmp_path / "runs"], out=tmp_path / "out")
    page = page_of(tmp_path / "out")
    assert 'data-table="summary"' in page and 'data-table="ranks"' in page
    assert len(re.findall(r">(\d+) of \1</td>", page)) == 2
    assert page.count('<td data-sort="1.0">1</td>') >= 20
