"""The studies of the paper's responses run on a tenth of them, and give the committed pages."""

from __future__ import annotations

import csv
from itertools import islice
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


@pytest.fixture(scope="module")
def tenth(paper_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 50 questions of every file."""
    folder = tmp_path_factory.mktemp("tenth")
    for path in paper_results.glob("*.csv"):
        with (
            path.open(encoding="utf-8", newline="") as source,
            (folder / path.name).open("w", encoding="utf-8", newline="") as target,
        ):
            csv.writer(target).writerows(islice(csv.reader(source), 51))
    return folder


@pytest.mark.slow
@STUDIES
def test_the_study_runs_on_a_tenth_of_the_questions(
    study: ModuleType, tenth: Path, tmp_path: Path
) -> None:
    assert study.main([str(tenth), "--out", str(tmp_path)]) == 0
    committed = {path.name for path in (ROOT / study.RESULTS).iterdir()}
    assert {path.name for path in tmp_path.iterdir()} == committed
    if study is rescored:
        scores = read_tables(tmp_path)["scores"]
        known = scores[scores["rescored"].notna()]
        assert (known["low"] <= known["rescored"]).all()
        assert (known["rescored"] <= known["high"]).all()
        # Eleven files are missing: six of one configuration, four and one of others.
        assert len(known) == 39 + 2 * 67
        assert scores[scores["rescored"].isna()]["config"].value_counts().to_dict() == {
            "DeepSeek v3.1 (maximal)": 12,
            "Qwen3 235B 2507 (maximal)": 8,
            "GPT 5 (maximal)": 2,
        }


def test_a_missing_folder_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rescored.main([str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.endswith("none: no such folder\n")
    assert not (tmp_path / "out").exists()
