"""The audit finds exactly the wrong labels, in datasets, CSV files, and the published study."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.dataset.audit import audit
from bench.errors import BadInput
from bench.paths import resource

HEADER = "text_prompt,answer\n"


def wrong_of(folder: Path, rows: str) -> list[str]:
    path = folder / "labels.csv"
    path.write_text(HEADER + rows)
    return [fault.label.prompt for faults in audit(path).wrong.values() for fault in faults]


@pytest.mark.parametrize(
    ("row", "is_wrong"),
    [
        ("What is 1 + 2?,3", False),
        ("What is 1 + 2?,3.0", False),
        ("What is 1 + 2?,3e0", False),
        ("What is 1 + 2?,3.00000000000001", True),
        ("What is 1 + 2?,three", True),
        ("What is 1 + 2?,nan", True),
        ("What is 1 + 2?,", True),
        ('"Sort the list [2, 1] in ascending order.","1, 2"', False),
        ('"Sort the list [2, 1] in ascending order.","[1, 2]"', False),
        ('"Sort the list [2, 1] in ascending order.","2, 1"', True),
        ('"What interval does x=5 belong to? A: x < 5, B: 5 <= x < 6, C: 6 <= x",B', False),
        ('"What interval does x=5 belong to? A: x < 5, B: 5 <= x < 6, C: 6 <= x",A', True),
        ('"What is the std of the list [1, 2, 3, 4]?",1.11803398874989', False),
        ('"What is the std of the list [1, 2, 3, 4]?",1.29099444873581', True),
    ],
)
def test_a_label_is_judged_by_its_value(tmp_path: Path, row: str, is_wrong: bool) -> None:
    assert bool(wrong_of(tmp_path, row + "\n")) is is_wrong


def test_the_committed_benchmark_has_no_wrong_label() -> None:
    found = audit(resource("datasets") / "v1")
    assert sum(found.checked.values()) == 4500
    assert not found.wrong


def test_the_published_labels(paper_results: Path) -> None:
    found = audit(paper_results)
    assert set(found.checked.values()) == {500} and len(found.checked) == 9
    assert {task: len(faults) for task, faults in found.wrong.items()} == {
        "addition": 2,
        "multiplication": 5,
        "division": 1,
        "mean": 130,
        "std": 213,
        "exponentiation": 30,
    }
    misprinted = [fault for fault in found.wrong["exponentiation"] if fault.relative_error > 0.1]
    assert len(misprinted) == 7
    assert max(fault.relative_error for fault in found.wrong["std"]) == pytest.approx(1.634178)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "line 2: the columns text_prompt and answer are needed"),
        (HEADER + "What is love?,42\n", "line 2, field text_prompt: not a question"),
        (HEADER + "What is 1 / 0?,1\n", "line 2: division by zero"),
        (HEADER + "What is 1 + 2?,3\nWhat is -2 ^ 0.5?,1\n", "line 3: fractional power"),
    ],
)
def test_what_cannot_be_audited_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        audit(path)


def test_a_folder_without_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no dataset, CSV file"):
        audit(tmp_path)
