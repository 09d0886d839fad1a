"""Mean tokens per sample: ours, measured on a dataset, and the paper's."""

from __future__ import annotations

import csv
from functools import cache
from typing import NamedTuple

from bench.bittoken.token_counts import count_tokens
from bench.bittoken.vocabulary import Vocabulary
from bench.dataset.store import Dataset
from bench.errors import BadInput
from bench.paths import resource
from bench.tasks import TASKS

COLUMNS = {
    "Subword": "subword",
    "Single Digit": "digit",
    "xVal": "xval",
    "FoNE": "fone",
    "BitToken (Ours)": "bittoken",
}
"""The published table's columns, and the encodings that they are."""

_PUBLISHED_NAMES = {"Min/Max": "MinMax"}


class MeanTokens(NamedTuple):
    """Tokens of a sample, means over items: up to and including eoq, and after it."""

    input: float
    output: float

    def __str__(self) -> str:
        return f"{self.input:.1f} + {self.output:.1f}"


Counts = dict[str, dict[str, MeanTokens]]
"""Task's display name → encoding → mean tokens."""


def measured_counts(dataset: Dataset) -> Counts:
    """Ours, for every task of the dataset."""
    counts: Counts = {}
    for task, items in dataset.by_task.items():
        row = counts.setdefault(TASKS[task].display, {})
        for name in COLUMNS.values():
            vocabulary = Vocabulary(name)
            found = [count_tokens(item, vocabulary) for item in items]
            inputs, outputs = (sum(column) / len(found) for column in zip(*found, strict=True))
            row[name] = MeanTokens(inputs, outputs)
    return counts


@cache
def published_counts() -> Counts:
    """The paper's, from the file that came with this package."""
    path = resource("published") / "local_token_count.csv"
    if not path.is_file():
        raise BadInput(f"{path}: the published table is missing; reinstall the package")
    with path.open(encoding="utf-8", newline="") as file:
        return {
            _PUBLISHED_NAMES.get(row["Task"], row["Task"]): {
                name: _read(row[header]) for header, name in COLUMNS.items()
            }
            for row in csv.DictReader(file)
        }


def _read(cell: str) -> MeanTokens:
    """`34.1 + 8.5`."""
    inputs, outputs = cell.split(" + ")
    return MeanTokens(float(inputs), float(outputs))
