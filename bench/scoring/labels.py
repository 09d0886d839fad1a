"""Labels that somebody published for a dataset, kept beside its exact answers.

A dataset folder may hold `published_labels.jsonl`, one `{"item_id": …, "answer": …}` a line. The
`paper` protocol scores against them; nothing else reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from bench import jsonl

FILE = "published_labels.jsonl"


class Label(Struct, frozen=True):
    """The answer of one item as it was published, verbatim."""

    item_id: str
    answer: str


def read_labels(dataset: Path) -> dict[str, str]:
    """The published labels of the dataset in a folder, by item id; empty where it has none."""
    path = dataset / FILE
    if not path.is_file():
        return {}
    return {label.item_id: label.answer for label in jsonl.read_lines(path, Label)}


def write_labels(dataset: Path, labels: Iterable[Label]) -> None:
    """Write the published labels of the dataset in a folder, atomically."""
    jsonl.write_atomically(dataset / FILE, b"".join(map(jsonl.encode, labels)))
