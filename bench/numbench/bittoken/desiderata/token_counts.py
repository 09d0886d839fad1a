"""Mean tokens per sample: measured on a dataset, and as published in the paper."""

from __future__ import annotations

import csv
from functools import cache
from typing import NamedTuple

from numbench.bittoken.sample_layout import Slot, answer_layout, question_layout
from numbench.bittoken.vocabulary import CHOICE_LETTERS, Vocabulary, tokenize_decimal
from numbench.dataset.store import Dataset
from numbench.errors import BadInput
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
    """Return the mean tokens of each task of a dataset."""
    counts: MeanTokensByTask = {}
    for task, items in dataset.by_task.items():
        row = counts.setdefault(TASKS[task].display, {})
        for name in PUBLISHED_COLUMNS.values():
            vocabulary = Vocabulary(name)
            samples = [count_tokens(item, vocabulary) for item in items]
            inputs, outputs = (sum(column) / len(samples) for column in zip(*samples, strict=True))
            row[name] = MeanTokens(inputs, outputs)
    return counts


@cache
def published_token_counts() -> MeanTokensByTask:
    """Return the mean tokens published in the paper, from a file bundled with the package."""
    path = resource_folder("published") / "local_token_count.csv"
    if not path.is_file():
        raise BadInput(f"{path}: the published table is missing; reinstall the package")
    with path.open(encoding="utf-8", newline="") as file:
        return {
            _PUBLISHED_NAMES.get(row["Task"], row["Task"]): {
                name: _parse_cell(row[header]) for header, name in PUBLISHED_COLUMNS.items()
            }
            for row in csv.DictReader(file)
        }


def _parse_cell(cell: str) -> MeanTokens:
    """Parse a cell of the form `34.1 + 8.5`."""
    inputs, outputs = cell.split(" + ")
    return MeanTokens(float(inputs), float(outputs))


class TokenCount(NamedTuple):
    """Tokens of a sample: up to and including EOQ, and after it."""

    input: int
    output: int


def count_tokens(item: Item, vocabulary: Vocabulary) -> TokenCount:
    """Return the number of tokens of an item's sample.

    Raises BadInput if the operator is not supported.
    """
    try:
        question = question_layout(item.operator, len(item.operands))
    except BadInput as error:
        raise BadInput(f"item {item.id}: {error}") from None
    if isinstance(item.answer, tuple):
        numbers, answer = item.answer, answer_layout("list", len(item.answer))
    elif item.answer in CHOICE_LETTERS:
        numbers, answer = (), answer_layout("letter", 0)
    else:
        numbers, answer = (item.answer,), answer_layout("number", 1)
    return TokenCount(
        _count(question, item.operands, vocabulary), _count(answer, numbers, vocabulary)
    )


def _count(layout: tuple[Slot, ...], numbers: tuple[str, ...], vocabulary: Vocabulary) -> int:
    number_tokens = sum(count_number_tokens(text, vocabulary) for text in numbers)
    return number_tokens + sum(isinstance(slot, str) for slot in layout)


def count_number_tokens(text: str, vocabulary: Vocabulary) -> int:
    """Return the number of tokens of a plain decimal, including its sign."""
    if vocabulary.encoding is None:
        return len(tokenize_decimal(text, vocabulary.digits_per_token or 1))
    if vocabulary.encoding.signed:
        return 1
    return 2 if float(text) < 0 else 1
