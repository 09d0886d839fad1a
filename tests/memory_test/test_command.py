"""`numbench memory-test`."""

from pathlib import Path

import pytest

from tests.support.command_line import CommandLine

ARGUMENTS = ("memory-test", "--model", "baseline/float32", "--tasks", "addition")


@pytest.mark.slow
def test_a_memory_test_is_planned_registered_and_reported(tmp_path: Path) -> None:
    numbench = CommandLine(tmp_path, None)
    command = (*ARGUMENTS, "--limit", "8", "--margin", "20")
    plan = numbench(*command, "--dry-run")
    assert "Total: 16 requests" in plan and "margin 20 points" in plan
    assert max(map(len, plan.splitlines())) <= 80
    assert not list(tmp_path.iterdir())
    text = numbench(*command)
    folder = Path("results/baseline-float32_none_v1_memory-test")
    assert "seed hash " in text and f"next: numbench report {folder}" in text
    assert {path.name for path in (tmp_path / folder).iterdir() if path.is_dir()} == {
        "fresh", "fresh-items", "frozen",
    }  # fmt: skip
    again = numbench(*command)
    assert "answered now" not in again and "seed revealed" in again


def test_a_dataset_without_fresh_questions_is_refused(tmp_path: Path) -> None:
    numbench = CommandLine(tmp_path, None)
    assert "fresh questions" in numbench(*ARGUMENTS, "--dataset", "paper", code=2)
    assert not (tmp_path / "results").exists()
