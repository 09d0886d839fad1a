"""Responses in the format of the paper's files, and the check of committed pages."""

import csv
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

import pytest

from numbench.dataset.store import open_dataset, read_published_labels


def write_responses(
    folder: Path,
    texts: Sequence[str],
    task: str = "addition",
    vendor: str = "openai__gpt-5",
    effort: str = "high",
    cells: Sequence[Mapping[str, str]] = (),
) -> Path:
    """Write a file of responses to the first questions of a task as the paper did; return it.

    cells: further cells of each row, or other ones.
    """
    dataset = open_dataset("paper")
    labels = read_published_labels(dataset.path)
    rows = [
        {"text_prompt": item.prompt, "answer": labels[item.id], "raw_response": text, "tokens": "7"}
        for item, text in zip(dataset.by_task[task], texts, strict=False)
    ]
    rows = [{**row, **own} for row, own in zip_longest(rows, cells, fillvalue={})]
    path = folder / f"{task.title()}_decimal_uniform_test_500_shuffle_{vendor}_re_{effort}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        columns = list(dict.fromkeys(column for row in rows for column in row))
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


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
