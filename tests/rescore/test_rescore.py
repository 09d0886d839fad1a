"""The whole command: files in, page, figures and reports out."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from bench.cli import main
from bench.errors import BadInput
from bench.report.figures import style
from bench.rescore import Rescored, rescore
from bench.rescore.drawings import FORMATS, NAMES, ceiling, draw, scores, steps
from bench.rescore.study import Study
from tests.report.drawn import assert_legible
from tests.rescore.files import ADDITION, small_study, write_benchmark


def _quiet(message: str) -> None:
    pass


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Rescored:
    """The small study, re-scored."""
    folder = tmp_path_factory.mktemp("small")
    return rescore(small_study(folder / "csv"), folder / "out", _quiet)


def test_the_page_lies_beside_its_figures_numbers_and_reports(done: Rescored) -> None:
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
        "README.md", "figures", "files.csv", "report", "rescored.csv", "runs",
    }  # fmt: skip


def test_labels_alone_leave_no_figure_of_an_earlier_page(done: Rescored, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(done.out / "figures", out / "figures")
    write_benchmark(tmp_path / "labels", "Addition", ADDITION)
    later = rescore(tmp_path / "labels", out, _quiet)
    assert (later.reports, later.cells) == ((), (0, 0, 0))
    assert {path.stem for path in (out / "figures").iterdir()} == {"ceiling"}


def test_a_broken_file_is_one_line_and_leaves_the_page_as_it_was(tmp_path: Path) -> None:
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


def test_a_folder_without_such_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="none of the study's files"):
        rescore(tmp_path, tmp_path / "out", _quiet)
    assert not (tmp_path / "out").exists()


def test_the_command_says_what_it_found(
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
        "no responses among these files: the labels are audited, no score is taken again",
        str(out / "README.md"),
    ]


def test_figures_have_the_same_bytes_again(small: Study) -> None:
    assert draw(small) == draw(small)


def test_figures_can_be_read(whole: Study) -> None:
    with style():
        for table in ("log_smape", "exact_match"):
            found = whole.of_table(table)
            assert_legible(scores(found, whole.configs))
            assert_legible(steps(found, whole.configs))
        assert_legible(ceiling(whole.labels))


def test_figures_of_one_score_can_be_read(small: Study) -> None:
    found = small.of_table("exact_match")
    with style():
        assert_legible(scores(found, small.configs))
        assert_legible(steps(found, small.configs))
        assert_legible(ceiling(small.labels))
