"""The title, description and dates of a report page."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from numbench.reporting import report
from numbench.reporting.build import read_report_data
from numbench.reporting.page_heading import PAPER_URL, PageHeading, page_heading
from tests.reporting import horizons, runs


def created(folder: Path, time: str) -> Path:
    """Change the creation time of a run."""
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(info | {"created": time}))
    return folder


def heading_of(*folders: Path) -> PageHeading:
    return page_heading(read_report_data(folders, "exact", True, lambda _: None))


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[Path, Path]:
    """Return a run with some wrong answers, and one without, in this order."""
    data = runs.dataset(tmp_path)
    worse = {**runs.all_right(), "addition-0": runs.said("addition", 0, "7")}
    return (
        runs.run(tmp_path / "worse", data, worse, display="A"),
        runs.run(tmp_path / "better", data, runs.all_right(), display="B", reasoning="high"),
    )


def test_the_title_names_the_best_run_the_number_of_others_and_the_last_day(
    two_runs: tuple[Path, Path],
) -> None:
    worse, better = two_runs
    created(worse, "2026-11-20T10:00:00Z")
    created(better, "2026-11-24T01:30:00+02:00")
    heading = heading_of(worse, better)
    assert heading.title == "numbench: B (high) and 1 more, 2026-11-23"
    assert heading.dates == "2026-11-20 to 2026-11-23"
    assert heading_of(better).title == "numbench: B (high), 2026-11-23"
    assert heading_of(better).dates == "2026-11-23"


@pytest.mark.usefixtures("without_figures")
def test_the_description_has_the_scores_of_the_summary(two_runs: tuple[Path, Path]) -> None:
    summary = report(two_runs, out=two_runs[0].parent / "out").out / "tables" / "summary.md"
    means = re.findall(r"(\d+\.\d \\?\[\d+\.\d, \d+\.\d\\?\])", summary.read_text())
    best, other = (mean.replace("\\", "") for mean in means[:2])
    assert heading_of(*two_runs).description == (
        "How well language models compute with numbers. Mean of tasks in percent, with 95 % "
        f"bounds: B (high) {best}, A (minimal) {other}."
    )


@pytest.mark.parametrize("time", ["", "yesterday"])
def test_an_unknown_date_is_left_out(two_runs: tuple[Path, Path], time: str) -> None:
    heading = heading_of(created(two_runs[1], time))
    assert (heading.title, heading.dates) == ("numbench: B (high)", "")


def test_horizons_are_named_too(tmp_path: Path) -> None:
    folder = horizons.write_measurement(tmp_path / "measured", {"copy": 8.0})
    heading = heading_of(folder)
    assert heading.title.startswith("numbench: ") and heading.dates
    assert heading.description.startswith("How well language models compute with numbers: ")


def test_the_link_is_that_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Paper"] == PAPER_URL


@pytest.mark.usefixtures("without_figures")
def test_the_page_has_title_description_and_link(two_runs: tuple[Path, Path]) -> None:
    page = (report(two_runs, out=two_runs[0].parent / "out").out / "report.html").read_text()
    heading = heading_of(*two_runs)
    assert f"<title>{heading.title}</title>" in page
    assert f"<h1>{heading.title}</h1>" in page
    assert f'<meta name="description" content="{heading.description}">' in page
    assert f'<a href="{PAPER_URL}">' in page
