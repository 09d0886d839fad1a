"""The audit finds exactly the wrong labels in datasets, CSV files and the published study."""

from pathlib import Path

import pytest

from numbench.core.installation import resource_folder
from numbench.dataset.audit import audit
from numbench.errors import BadInput
from tests.support.case_tables import each_row
from tests.support.command_line import CommandLine

HEADER = "text_prompt,answer\n"


def wrong_of(folder: Path, rows: str) -> list[str]:
    path = folder / "labels.csv"
    path.write_text(HEADER + rows)
    return [error.label.prompt for errors in audit(path).wrong.values() for error in errors]


@each_row(__file__, "judged_labels")
def test_a_label_is_judged_by_its_value(tmp_path: Path, row: str, is_wrong: bool) -> None:
    assert bool(wrong_of(tmp_path, row + "\n")) is is_wrong


def test_the_committed_benchmark_has_no_wrong_label() -> None:
    result = audit("v1")
    assert sum(result.checked.values()) == 4500
    assert not result.wrong
    assert audit(resource_folder("datasets") / "v1") == result


def test_the_published_labels(paper_results: Path) -> None:
    result = audit(paper_results)
    assert set(result.checked.values()) == {500} and len(result.checked) == 9
    assert {task: len(errors) for task, errors in result.wrong.items()} == {
        "addition": 2,
        "multiplication": 5,
        "division": 1,
        "mean": 130,
        "std": 213,
        "exponentiation": 30,
    }
    large = [error for error in result.wrong["exponentiation"] if error.relative_error > 0.1]
    assert len(large) == 7
    assert max(error.relative_error for error in result.wrong["std"]) == pytest.approx(1.634178)


@each_row(__file__, "unaudited_rows")
def test_a_row_that_cannot_be_audited_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        audit(path)


def test_a_folder_without_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no dataset, CSV file"):
        audit(tmp_path)


def test_the_exit_code_tells_whether_all_labels_are_right(tmp_path: Path) -> None:
    numbench = CommandLine(tmp_path, None)
    right, wrong = "What is 1 + 2?,3\n", "What is 1 + 2?,three\n"
    (tmp_path / "right.csv").write_text(HEADER + right)
    (tmp_path / "one.csv").write_text(HEADER + right + wrong)
    (tmp_path / "empty.csv").write_text(HEADER)
    assert "Add" in numbench("audit", "right.csv")
    output = numbench("audit", "one.csv", code=1)
    assert output.splitlines()[-2].split() == ["Add", "2", "1", "–"]
    assert output.splitlines()[-1] == "numbench: 1 of 2 labels is wrong"
    assert "empty.csv: no labels" in numbench("audit", "empty.csv", code=2)
    assert "The exit code is 1 if a label is wrong" in " ".join(numbench("audit", "--help").split())
