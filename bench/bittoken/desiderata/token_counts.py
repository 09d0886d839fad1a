"""Mean tokens per sample: measured on a dataset, and as published in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from bittoken.data.tokenization import tokenize_items
from bittoken.vocabulary import Vocabulary
from numbench.csv_files import read_csv
from numbench.dataset.store import Dataset
from numbench.records import Item
from numbench.resources import resource_folder
from numbench.tasks import TASKS

PUBLISHED_COLUMNS = {
    "Subword": "subword",
    "Single Digit": "digit",
    "xVal": "xval",
    "FoNE": "fone",
    "BitToken (Ours)": "bittoken",
}
"""The columns of the published table, with the names of their encodings."""

_PUBLISHED_NAMES = {"Min/Max": "MinMax"}
"""Task names of the published table that differ from `Task.display`."""


class MeanTokens(NamedTuple):
    """Mean tokens of a sample: up to and including EOQ, and after it."""

    input: float
    output: float

    def __str__(self) -> str:
        return f"{self.input:.1f} + {self.output:.1f}"


MeanTokensByTask = dict[str, dict[str, MeanTokens]]
"""Display name of the task → name of the encoding → mean tokens."""


def measured_token_counts(dataset: Dataset) -> MeanTokensByTask:
    """Return the mean tokens of each task of a dataset, for the encodings of the published table.

    Raises BadInput if an operator is not supported.
    """
    vocabularies = [Vocabulary(name) for name in PUBLISHED_COLUMNS.values()]
    return {
        TASKS[task].display: {
            vocabulary.name: mean_tokens(task, items, vocabulary) for vocabulary in vocabularies
        }
        for task, items in dataset.by_task.items()
    }


def mean_tokens(task: str, items: Sequence[Item], vocabulary: Vocabulary) -> MeanTokens:
    """Return the mean tokens of the samples of items of one task."""
    columns = {
        "operands": [list(item.operands) for item in items],
        "operator": [item.operator for item in items],
        "answer": [
            list(item.answer) if isinstance(item.answer, tuple) else item.answer for item in items
        ],
    }
    samples = tokenize_items(task, pa.table(columns), vocabulary)
    answers = samples.lengths - samples.prompt_lengths
    return MeanTokens(float(samples.prompt_lengths.mean()), float(answers.mean()))


def published_token_counts() -> MeanTokensByTask:
    """Return the mean tokens published in the paper, from a file bundled with the package."""
    path = resource_folder("published") / "local_token_count.csv"
    return {
        _PUBLISHED_NAMES.get(row["Task"], row["Task"]): {
            name: _parse_cell(row[header]) for header, name in PUBLISHED_COLUMNS.items()
        }
        for _, row in read_csv(path, ("Task", *PUBLISHED_COLUMNS))
    }


def _parse_cell(cell: str) -> MeanTokens:
    """Parse a cell of the form `34.1 + 8.5`."""
    inputs, outputs = cell.split(" + ")
    return MeanTokens(float(inputs), float(outputs))
