"""A small study: files in the form of the study's, with one item for each repair."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """A question, its published label, and what a model says."""

    prompt: str
    label: str
    text: str


ADDITION = (
    # The label is wrong, the answer is right.
    Row("What is 1.5 + 2.25?", "3.7499", '{"answer": 3.75}'),
    # Rounded to 15 digits the answer is the label; cut off it is not.
    Row("What is 1234.5 + 0.0678901234567?", "1234.56789012346", '{"answer": 1234.5678901234567}'),
    # The study reads the first number, which is not the answer.
    Row("What is 2 - 0.5?", "1.5", '2 - 0.5 = {"answer": 1.5} {}'),
    # Only in the benchmark: the model was not asked.
    Row("What is 7 + 1?", "8", ""),
)
MINMAX = (
    Row("What is the maximum of the list [5, 3.5]?", "5", '{"answer": 5.0}'),
    Row("What is the minimum of the list [5, 3.5]?", "3.5", '{"answer": 3.5}'),
)


def write_benchmark(folder: Path, task: str, rows: Sequence[Row]) -> None:
    """The file of questions."""
    lines = [{"text_prompt": row.prompt, "answer": row.label} for row in rows]
    _write(folder / f"{task}_decimal_uniform_test_500_shuffle.csv", lines)


def write_responses(
    folder: Path, task: str, rows: Sequence[Row], model: str = "openai__gpt-5", effort: str = "high"
) -> None:
    """The file of one model's responses."""
    lines = [
        {"text_prompt": row.prompt, "answer": row.label, "raw_response": row.text, "tokens": "7"}
        for row in rows
    ]
    name = f"{task}_decimal_uniform_test_500_shuffle_{model}_re_{effort}.csv"
    _write(folder / name, lines)


def small_study(folder: Path) -> Path:
    """Two tasks, one model."""
    write_benchmark(folder, "Addition", ADDITION)
    write_benchmark(folder, "MinMax", MINMAX)
    write_responses(folder, "Addition", ADDITION[:3])
    write_responses(folder, "MinMax", MINMAX)
    return folder


def _write(path: Path, lines: Sequence[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
