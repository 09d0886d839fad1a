"""What the task folder for lm-evaluation-harness calls: its questions and its scores."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.dataset.store import Dataset
from bench.ecosystem.measures import measures, system
from bench.records import Item, Response
from bench.runner.few_shot import MOST, examples, turns
from bench.scoring import score_exact

if TYPE_CHECKING:
    from datasets import DatasetDict

TEST, EXAMPLES = "test", "examples"
"""Splits of the documents; `examples` are the validation items that our own runs show."""


def documents(folder: Path, task: str) -> DatasetDict:
    """The questions of one task of the dataset in `folder`, and worked examples for it."""
    from datasets import Dataset as Table
    from datasets import DatasetDict

    source = _opened(folder)
    return DatasetDict(
        {
            TEST: Table.from_list(_rows(source.by_task[task])),
            EXAMPLES: Table.from_list(_rows(examples(source, [task], MOST)[task])),
        }
    )


def process_results(doc: dict[str, str], results: list[str]) -> dict[str, float]:
    """The measures of a response, by the protocol `exact`."""
    item = msgspec.json.decode(doc["item"], type=Item)
    return measures(item, score_exact(item, Response(item_id=item.id, text=results[0])))


@cache
def _opened(folder: Path) -> Dataset:
    return Dataset(folder)


def _rows(items: Iterable[Item]) -> list[dict[str, str]]:
    return [
        {
            "id": item.id,
            "system": system(item.task),
            "prompt": item.prompt,
            "answer": turns([item])[1].content,
            "item": msgspec.json.encode(item).decode(),
        }
        for item in items
    ]
