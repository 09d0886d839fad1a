"""A small study in the format of the paper's files, and the check of committed pages."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest


class Row(NamedTuple):
    """A question, its published label and a model's response."""

    prompt: str
    label: str
    text: str


ADDITION = (
    # The label is wrong, the answer is correct.
    Row("What is 1.5 + 2.25?", "3.7499", '{"answer": 3.75}'),
    # Rounded to 15 digits the answer equals the label; truncated it does not.
    Row("What is 1234.5 + 0.0678901234567?", "1234.56789012346", '{"answer": 1234.5678901234567}'),
    # The study takes the first number, which is not the answer.
    Row("What is 2 - 0.5?", "1.5", '2 - 0.5 = {"answer": 1.5} {}'),
    # Only in the benchmark: there is no response.
    Row("What is 7 + 1?", "8", ""),
)
MINMAX = (
    Row("What is the maximum of the list [5, 3.5]?", "5", '{"answer": 5.0}'),
    Row("What is the minimum of the list [5, 3.5]?", "3.5", '{"answer": 3.5}'),
)


def write_benchmark(folder: Path, task: str, rows: Sequence[Row]) -> None:
    """Write the benchmark file of a task."""
    lines = [{"text_prompt": row.prompt, "answer": row.label} for row in rows]
    _write(folder / f"{task}_decimal_uniform_test_500_shuffle.csv", lines)


def write_responses(
    folder: Path, task: str, rows: Sequence[Row], model: str = "openai__gpt-5", effort: str = "high"
) -> None:
    """Write the response file of a model."""
    lines = [
        {"text_prompt": row.prompt, "answer": row.label, "raw_response": row.text, "tokens": "7"}
        for row in rows
    ]
    name = f"{task}_decimal_uniform_test_500_shuffle_{model}_re_{effort}.csv"
    _write(folder / name, lines)


def small_study(folder: Path) -> Path:
    """Write a study with two tasks and one model."""
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


def assert_is_committed(files: Mapping[str, bytes], folder: Path) -> None:
    """Check that generated files are those in the folder, figures by labels and markers only."""
    for name, data in files.items():
        committed = (folder / name).read_bytes()
        if name.endswith(".svg"):
            # The other bytes depend on the version of matplotlib.
            assert labels(committed) == labels(data), name
            assert positions(committed) == pytest.approx(positions(data), abs=0.1), name
        else:
            assert committed == data, name


def labels(svg: bytes) -> list[str]:
    return re.findall(r"<!-- (.*) -->", svg.decode())


def positions(svg: bytes) -> list[float]:
    """Return the coordinates of all markers."""
    return [float(x) for x in re.findall(r' [xy]="(-?[\d.]+)"', svg.decode())]
