"""The command: from files to page, figures and reports."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from numbench.cli import main
from numbench.errors import BadInput
from numbench.plot_style import plot_style
from numbench.rescore import RescoreResult, rescore
from numbench.rescore.analysis import StudyAnalysis
from numbench.rescore.page_figures import (
    FORMATS,
    NAMES,
    ceiling_bars,
    correction_bars,
    draw,
    score_dumbbells,
)
from tests.reporting.figure_checks import assert_legible
from tests.rescore.files import ADDITION, small_study, write_benchmark

pytestmark = pytest.mark.slow


def _quiet(message: str) -> None:
    pass


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> RescoreResult:
    """The re-scored small study."""
    folder = tmp_path_factory.mktemp("small")
    return rescore(small_study(folder / "csv"), folder / "out", _quiet)


def test_output_contains_page_figures_scores_and_reports(done: RescoreResult) -> None:
    out = done.out
    assert (done.labels, done.cells) == ((6, 1), (3, 0, 3))
    assert [path.relative_to(out) for path in done.reports] == [
        Path("report/exact/report.html"),
        Path("report/paper/report.html"),
    ]
    assert all(path.is_file() for path in (done.page, *done.reports))
    figures = {path.name for path in (out / "figures").iterdir()}
    assert figures == {f"{name}.{form}" for name in NAMES for form in FORMATS}
    assert (out / "files.csv").read_text().count("\n") == 5
    assert {path.name for path in out.iterdir()} == {
        "README.md", "changes.csv", "figures", "files.csv", "report", "rescored.csv", "runs",
    }  # fmt: skip


def test_figures_of_an_earlier_page_are_removed(done: RescoreResult, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(done.out / "figures", out / "figures")
    write_benchmark(tmp_path / "labels", "Addition", ADDITION)
    later = rescore(tmp_path / "labels", out, _quiet)
    assert (later.reports, later.cells) == ((), (0, 0, 0))
    assert {path.stem for path in (out / "figures").iterdir()} == {"ceiling"}


def test_broken_file_is_reported_and_the_page_is_unchanged(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_benchmark(tmp_path / "csv", "Addition", ADDITION)
    rescore(tmp_path / "csv", out, _quiet)
    before = (out / "README.md").read_bytes()
    name = "Mean_decimal_uniform_test_500_shuffle_openai__gpt-5_re_high.csv"
    (tmp_path / "csv" / name).write_text("text_prompt,answer\nnonsense")
    with pytest.raises(BadInput) as error:
        rescore(tmp_path / "csv", out, _quiet)
    assert name in str(error.value) and "\n" not in str(error.value)
    assert (out / "README.md").read_bytes() == before


def test_folder_without_study_files_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="none of the study's files"):
        rescore(tmp_path, tmp_path / "out", _quiet)
    assert not (tmp_path / "out").exists()


def test_command_prints_a_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tmp_path / "csv", tmp_path / "out"
    write_benchmark(folder, "Addition", ADDITION)
    monkeypatch.setattr(sys, "argv", ["numbench", "rescore", str(folder), "--out", str(out)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert capsys.readouterr().out.splitlines() == [
        "1 of 4 published labels are wrong",
        "the folder contains no responses: only the labels were audited",
        str(out / "README.md"),
        f"next: read {out / 'README.md'}",
    ]


def test_figures_are_reproducible(small: StudyAnalysis) -> None:
    assert draw(small) == draw(small)


@pytest.mark.slow
def test_figures_are_legible(whole: StudyAnalysis) -> None:
    with plot_style():
        for table in ("log_smape", "exact_match"):
            cells = whole.of_table(table)
            assert_legible(score_dumbbells(cells, whole.configs))
            assert_legible(correction_bars(cells, whole.configs))
        assert_legible(ceiling_bars(whole.labels))


def test_figures_of_a_single_score_are_legible(small: StudyAnalysis) -> None:
    cells = small.of_table("exact_match")
    with plot_style():
        assert_legible(score_dumbbells(cells, small.configs))
        assert_legible(correction_bars(cells, small.configs))
        assert_legible(ceiling_bars(small.labels))
