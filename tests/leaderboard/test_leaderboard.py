"""A leaderboard: its links lead somewhere, its numbers are the report's, and it loads nothing."""

import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

import numbench as nb
from numbench import leaderboard as site_module
from numbench.errors import BadInput
from numbench.journal.run_folder import read_info
from numbench.leaderboard import page_names, settings, write_leaderboard
from tests.report.runs import all_right, as_paper, dataset, mixed_run, run, said

PAPER = "https://arxiv.org/abs/2510.06824"
HOSTILE = "<script>alert(1)</script>../../x"


def without_figures(patch: pytest.MonkeyPatch) -> None:
    """Sites without figures, which take seconds to draw."""
    patch.setattr(site_module, "render", lambda *arguments: ([], {}))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leaderboard")
    data = as_paper(dataset(folder))
    responses = all_right() | {"minmax-1": said("minmax", 1, '{"answer": 9}')}
    mixed = run(folder / "mixed", data, responses)
    good = run(folder / "good", data, all_right(), display=HOSTILE, model="other")
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch)
        write_leaderboard([mixed, good], folder / "site")
    return folder / "site"


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in ("href", "src") and value]


def parsed(page: Path) -> _Links:
    parser = _Links()
    parser.feed(page.read_text("utf-8"))
    return parser


def test_every_link_is_relative_and_leads_to_a_file(site: Path, partial_site: Path) -> None:
    assert len(list(site.rglob("*.html"))) == 2 + 2
    assert_links_lead_to_files(site)
    assert_links_lead_to_files(partial_site)


def assert_links_lead_to_files(site: Path) -> None:
    for page in site.rglob("*.html"):
        found = parsed(page)
        assert "script" not in found.tags and "link" not in found.tags
        for link in found.links:
            assert link.startswith(("#", "data:", PAPER)) or (page.parent / link).is_file(), link


def test_scores_and_hashes_are_those_of_the_runs(site: Path) -> None:
    report = json.loads((site / "data/report.json").read_bytes())
    value = report["runs"][0]["tasks"]["minmax"]["score"]["value"]
    assert value == 75.0 or value == 100.0
    scores = [row[2] for row in table(site / "index.html", "log_smape")]
    assert scores == ["100.0", "75.0"]
    assert next(row[1] for row in table(site / "models/gpt-5-minimal.html", "scores")) == "75.0"
    assert "1–2" in [row[4] for row in table(site / "models/gpt-5-minimal.html", "scores")]
    lines = (site / "data/checksums.txt").read_text("utf-8").splitlines()
    digest = hashlib.sha256((site.parent / "good/responses.jsonl").read_bytes()).hexdigest()
    assert any(line.startswith(digest) for line in lines)


def test_pages_of_an_earlier_build_are_removed_and_others_kept(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_figures(monkeypatch)
    out = tmp_path / "site"
    (out / "models").mkdir(parents=True)
    for name in ("index.html", "about.html", "models/earlier.html"):
        (out / name).write_text((site / "about.html").read_text("utf-8"))
    (out / "models/own.html").write_text("<p>by hand</p>")
    write_leaderboard([site.parent / "good"], out, published=False)
    assert not (out / "models/earlier.html").exists()
    assert (out / "models/own.html").exists()
    assert "ublished configurations" not in (out / "index.html").read_text("utf-8")


def test_each_dataset_is_ranked_under_a_heading_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_figures(monkeypatch)
    tasks = {"first": "addition", "second": "mean"}
    folders = [
        run(
            tmp_path / f"{name}-{display}",
            dataset(tmp_path / display, name, tasks=(task,)),
            all_right(),
            display=display,
            tasks=(task,),
        )
        for name, task in tasks.items()
        for display in ("A", "B")
    ]
    out = tmp_path / "site"
    write_leaderboard(folders, out)
    page = (out / "index.html").read_text("utf-8")
    (summary,) = re.findall(r'<table data-table="summary".*?</table>', page, re.S)
    headings = re.findall(r'scope="rowgroup"><span>(.*?)@', summary)
    assert headings == list(tasks)
    # One task has ranks, too, and each dataset has a rank 1.
    assert [row[2] for row in table(out / "index.html", "summary")] == ["1–2"] * 4


@pytest.fixture(scope="module")
def partial_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of two complete runs and three others: with --limit, with failures, and empty."""
    folder = tmp_path_factory.mktemp("partial")
    data = dataset(folder)
    responses = all_right() | {"minmax-1": said("minmax", 1, '{"answer": 9}')}
    folders = [
        run(folder / "first", data, all_right()),
        run(folder / "second", data, responses, reasoning="high"),
        run(folder / "limited", data, all_right(), display="Limited", limit=3),
        mixed_run(folder / "failed"),
        run(folder / "empty", data, {}, display="Empty", few_shot=2),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_module, "_FIGURES", ("pareto_tokens",))
        site = write_leaderboard(folders, folder / "site")
        without_figures(patch)
        write_leaderboard(folders[:2], folder / "complete")
    assert len(site.incomplete) == 3
    return folder / "site"


def table(page: Path, name: str) -> list[list[str]]:
    """Return the text of the cells of a table, row by row."""
    text = page.read_text("utf-8")
    body = re.findall(rf'<table data-table="{name}".*?</thead>(.*?)</table>', text, re.S)[0]
    rows = re.findall(r'<tr class="(?!group).*?</tr>', body, re.S)
    cells = [re.findall(r"<(?:td|th).*?>(.*?)</(?:td|th)>", row, re.S) for row in rows]
    return [[re.sub(r"<small>.*?</small>|<[^>]*>", "", cell) for cell in row] for row in cells]


def test_incomplete_runs_are_below_and_change_no_rank(partial_site: Path) -> None:
    complete = partial_site.parent / "complete"
    shown = table(partial_site / "index.html", "summary")
    ranked = table(complete / "index.html", "summary")
    assert [row[1:4] for row in shown[:2]] == [row[1:4] for row in ranked]
    assert [row[2] for row in shown[2:]] == ["–"] * 3
    assert [row[-2:] for row in shown[2:]] == [["27", "36"], ["34", "36"], ["0", "36"]]
    assert "Limited" not in (partial_site / "data/pareto_tokens.svg").read_text("utf-8")
    page = partial_site / "models/limited-minimal.html"
    assert "27 of 36" in page.read_text("utf-8")
    assert {(row[4], row[5], row[6]) for row in table(page, "scores")} == {("–", "3", "4")}


def test_files_of_others_are_kept(tmp_path: Path) -> None:
    for name in ("index.html", "notes.txt"):
        path = tmp_path / name / name
        path.parent.mkdir()
        path.write_text("<p>by hand</p>")
        with pytest.raises(BadInput, match="numbench did not write"):
            write_leaderboard([tmp_path / "unread"], path.parent)
        assert [each.read_text() for each in path.parent.iterdir()] == ["<p>by hand</p>"]
        # A file cannot be the folder.
        for out in (path, path / "below"):
            with pytest.raises(BadInput, match="is a file"):
                write_leaderboard([tmp_path / "unread"], out)
            with pytest.raises(BadInput, match="is a file"):
                nb.report([tmp_path / "unread"], out=out)
            with pytest.raises(BadInput, match="is a file"):
                nb.export("v1", to="lm-eval", out=out)


def test_a_folder_without_runs_makes_an_empty_site(tmp_path: Path) -> None:
    (tmp_path / "submissions").mkdir()
    site = write_leaderboard(
        [tmp_path / "submissions"], tmp_path / "site", repository="https://example.org/board"
    )
    assert (site.runs, site.pages) == (0, 2)
    page = (tmp_path / "site/index.html").read_text("utf-8")
    assert "No runs yet." in page
    assert 'href="https://example.org/board"' in page
    with pytest.raises(BadInput, match="nowhere"):
        write_leaderboard([tmp_path / "nowhere"], tmp_path / "other")
    with pytest.raises(BadInput, match="--repository"):
        write_leaderboard([tmp_path], tmp_path / "other", repository="javascript:alert(1)")


def test_the_date_and_no_private_address_are_shown(partial_site: Path) -> None:
    assert "Newest run: 2025-01-01." in (partial_site / "index.html").read_text("utf-8")
    info = read_info(partial_site.parent / "first")
    address = "http://10.0.0.7:8000/v1"
    known = {"base_url": address, "earlier_base_urls": [address], "seed": 7}
    shown = settings(msgspec.structs.replace(info, settings=known))
    assert "10.0.0.7" not in str(shown)
    assert (shown["base_url"], shown["seed"]) == ("chosen with --base-url", "7")
    assert '"few_shot":"2"' in (partial_site / "data/report.json").read_text("utf-8")


def test_page_names_are_safe_and_different() -> None:
    names = page_names([HOSTILE, HOSTILE, "../..", "", "Größe (high)"])
    assert len(set(names)) == 5
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)
