"""The studies of the paper's responses give the committed pages."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import studies.forensics.__main__ as forensics
import studies.rescored.__main__ as rescored
from studies.csv_tables import read_tables
from tests.studies.files import assert_is_committed

ROOT = Path(__file__).parents[2]
STUDIES = pytest.mark.parametrize("study", [rescored, forensics], ids=["rescored", "forensics"])


@STUDIES
def test_the_committed_page_follows_from_the_committed_tables(study: ModuleType) -> None:
    folder = ROOT / study.RESULTS
    pages = study.render(read_tables(folder))
    assert_is_committed(pages, folder)
    assert {path.suffix for path in folder.iterdir()} == {".csv", ".md", ".svg"}


@pytest.mark.slow
@STUDIES
def test_the_committed_tables_follow_from_the_responses(
    study: ModuleType, paper_results: Path
) -> None:
    assert_is_committed(study.build(paper_results), ROOT / study.RESULTS)


def test_a_missing_folder_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rescored.main([str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.endswith("none: no such folder\n")
    assert not (tmp_path / "out").exists()
