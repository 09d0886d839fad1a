"""Figures and tables of other packages, registered as entry points."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from numbench.errors import BadInput
from numbench.reporting import rendering, report
from numbench.reporting.figure_registry import FIGURES, all_figures
from numbench.reporting.registration import check_names
from numbench.reporting.table_registry import TABLES, all_tables
from tests.reporting import plugins, runs


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run, with no built-in figures except those that other packages add."""
    monkeypatch.setattr(rendering, "all_figures", lambda: all_figures()[len(FIGURES) :])
    return runs.mixed_run(tmp_path)


def test_the_registries_without_plugins_are_the_built_in_ones() -> None:
    assert all_figures() == list(FIGURES)
    assert all_tables() == list(TABLES)


def test_names_of_figures_and_tables_are_unique() -> None:
    for specs in (FIGURES, TABLES):
        names = [spec.name for spec in specs]
        assert len(set(names)) == len(names)


def test_an_installed_figure_is_written_and_shown(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins.install(tmp_path, monkeypatch, figures=["COUNTS"])
    report([run], out=tmp_path / "out")
    assert (tmp_path / "out" / "figures" / "task-counts.svg").stat().st_size
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<figure") == 1
    assert "<figcaption>Number of tasks per run &lt;b&gt;.</figcaption>" in page


def test_an_installed_table_is_written_and_shown(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins.install(tmp_path, monkeypatch, tables=["COUNTS_TABLE"])
    report([run], out=tmp_path / "out")
    tables = tmp_path / "out" / "tables"
    with (tables / "task-counts.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["Model", "Tasks <i>", "Other"], ["GPT 5", "9", "n/a"]]
    markdown = (tables / "task-counts.md").read_text()
    assert markdown.startswith("# Task counts\n\nNumber of tasks &lt;b&gt;.\n")
    # Every table has the notes on protocol and dataset.
    assert "Protocol exact" in markdown and "Dataset tiny@" in markdown
    assert r"\label{tab:task-counts}" in (tables / "task-counts.tex").read_text()
    page = (tmp_path / "out" / "report.html").read_text()
    assert '<a href="#table-task-counts">Task counts</a>' in page
    assert '<td data-sort="9.0">9</td>' in page and "<td>n/a</td>" in page


def test_a_figure_that_raises_is_omitted_with_the_message(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins.install(tmp_path, monkeypatch, figures=["COUNTS", "FAILING", "SKIPPED"])
    report([run], out=tmp_path / "out")
    summary = json.loads((tmp_path / "out" / "report.json").read_text())
    assert summary["figures_left_out"] == {
        "failing": "RuntimeError: first line second <b>line</b>",
        "skipped": "nothing to draw",
    }
    page = (tmp_path / "out" / "report.html").read_text()
    assert "failing: RuntimeError: first line second &lt;b&gt;line&lt;/b&gt;" in page
    assert (tmp_path / "out" / "figures" / "task-counts.svg").exists()


def test_a_figure_with_the_file_name_of_another_is_omitted(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins.install(tmp_path, monkeypatch, figures=["STOLEN_NAME"])
    report([run], out=tmp_path / "out")
    summary = json.loads((tmp_path / "out" / "report.json").read_text())
    assert "'radar' is not available" in summary["figures_left_out"]["stolen"]


def test_a_table_that_raises_is_omitted_with_a_warning(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins.install(tmp_path, monkeypatch, tables=["SHORT_ROW_TABLE"])
    result = report([run], out=tmp_path / "out")
    warning = "Table short-row omitted: ValueError: a row has 1 cells, the header 2"
    assert result.warnings[-1] == warning
    assert warning in (tmp_path / "out" / "report.html").read_text()
    assert not list((tmp_path / "out" / "tables").glob("short-row*"))


def test_an_error_in_a_built_in_figure_is_not_hidden(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "all_figures", lambda: [plugins.FAILING])
    monkeypatch.setattr(rendering, "FIGURES", (plugins.FAILING,))
    with pytest.raises(RuntimeError):
        report([run], out=tmp_path / "out")


def test_figures_of_an_uninstalled_package_stay_and_stale_ones_are_removed(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins.install(tmp_path, monkeypatch, figures=["SKIPPED"])
    figures = tmp_path / "out" / "figures"
    figures.mkdir(parents=True)
    for name in ("skipped.png", "task-counts.svg"):
        (figures / name).write_bytes(b"old")
    report([run], out=tmp_path / "out")
    assert [path.name for path in figures.iterdir()] == ["task-counts.svg"]


@pytest.mark.parametrize("group", ["figures", "tables"])
def test_an_entry_point_that_is_no_spec_is_an_error(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    plugins.install(tmp_path, monkeypatch, **{group: ["NOT_A_SPEC"]})
    with pytest.raises(BadInput, match=r"not_a_spec.*is a str"):
        report([run], out=tmp_path / "out")


@pytest.mark.parametrize("name", ["overall", "a/b", "../x", "", "Upper", "x" * 61, None])
def test_a_name_that_is_taken_or_no_file_name_is_an_error(name: str) -> None:
    with pytest.raises(BadInput, match=r"numbench\.tables"):
        check_names("numbench.tables", [spec.name for spec in TABLES], [name])
    with pytest.raises(BadInput, match="already used"):
        check_names("numbench.tables", [], ["twice", "twice"])
