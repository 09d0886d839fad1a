"""The table of conventions, its warning, and its fields in `report.json`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from numbench.dataset.store import write_dataset
from numbench.records import Response
from numbench.reporting import ReportResult, report
from numbench.scoring import score_run
from numbench.tasks.items import make_item
from tests.reporting import runs

pytestmark = pytest.mark.usefixtures("without_figures")

LISTS = [("1", "2", "4"), ("1", "2", "5"), ("1", "2", "7"), ("1", "2", "8")]


def _run(folder: Path, answers: list[str]) -> Path:
    items = [make_item("std", "std", operands, {}) for operands in LISTS]
    data = write_dataset(
        folder / "tiny", {"std": items}, name="tiny", generator="", seed=1, split="", settings={}
    )
    responses = {
        item.id: Response(item_id=item.id, text=f'{{"answer": {answer}}}')
        for item, answer in zip(items, answers, strict=False)
    }
    return runs.run(folder / "run", data, responses, tasks=("std",))


def _report(folder: Path, answers: list[str]) -> tuple[ReportResult, list[dict[str, str]]]:
    result = report([_run(folder, answers)], published=False, out=folder / "out")
    with open(folder / "out" / "tables" / "conventions.csv", newline="") as file:
        return result, list(csv.DictReader(file))


def test_an_answer_by_either_convention_is_accepted(tmp_path: Path) -> None:
    """One population deviation, one sample deviation, one wrong answer, one missing item."""
    result, (row,) = _report(tmp_path, ["1.24721912892465", "2.08166599946613", "0"])
    assert (row["Task"], row["Other convention"]) == ("Std", "sample deviation")
    assert (row["n"], row["followed"]) == ("3", "1")
    assert row["exact match"].startswith("33.3 [")
    assert row["exact match, either convention"].startswith("66.7 [")
    assert row["log-sMAPE, either convention"].startswith("66.7 [")
    (warning,) = [line for line in result.warnings if "convention" in line]
    assert warning.startswith(
        "GPT 5 (minimal): Std depends on a convention: log-sMAPE 35.5, and 66"
    )
    assert "66.7 if the sample deviation is accepted too (1 of 3 answers" in warning
    page = (tmp_path / "out" / "report.html").read_text()
    assert 'data-table="conventions"' in page and "either convention" in page
    summary = json.loads((tmp_path / "out" / "report.json").read_text())
    field = summary["runs"][0]["tasks"]["std"]["either_convention"]
    assert field["followed"] == 1
    assert field["exact_match"]["value"] == pytest.approx(200 / 3)


def test_without_such_answers_both_scores_are_equal_and_nothing_is_warned(tmp_path: Path) -> None:
    result, (row,) = _report(tmp_path, ["1.24721912892465"])
    assert row["log-sMAPE"].startswith("100.0 [")
    assert row["log-sMAPE, either convention"] == row["log-sMAPE"]
    assert not [line for line in result.warnings if "convention" in line]


def test_the_headline_score_is_the_task_s_own(tmp_path: Path) -> None:
    result, _ = _report(tmp_path, ["1.52752523165195"])
    assert result.entries[0].tables["exact_match"]["std"].value == 0


@pytest.mark.parametrize("protocol", ["exact", "paper"])
def test_the_table_exists_only_where_it_applies(tmp_path: Path, protocol: str) -> None:
    data = runs.dataset(tmp_path, tasks=("addition",))
    folder = runs.run(tmp_path / "add", data, {}, tasks=("addition",))
    report([folder], published=False, out=tmp_path / "out")
    assert not (tmp_path / "out" / "tables" / "conventions.csv").exists()
    folder = _run(tmp_path / "std", ["1.52752523165195"])
    report([folder], "exact" if protocol == "exact" else "paper", out=tmp_path / "second")
    assert (tmp_path / "second" / "tables" / "conventions.csv").exists() == (protocol == "exact")
    assert score_run(folder).rows["std"][0].score.error_kind == "sample_std"
