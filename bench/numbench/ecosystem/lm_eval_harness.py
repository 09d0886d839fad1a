"""Export a dataset as tasks for lm-evaluation-harness, and provide their documents and scores.

The exported folder contains YAML files and a module that calls `documents` and
`process_results` here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numbench.core import jsonl
from numbench.dataset.store import Dataset
from numbench.ecosystem.export import (
    METRIC_NAMES,
    copy_dataset,
    metric_values,
    render_template,
    system_prompt,
)
from numbench.records import Item, Response
from numbench.runner.few_shot import MAX_EXAMPLES, example_messages, examples
from numbench.scoring import score_exact

if TYPE_CHECKING:
    from datasets import DatasetDict

TEST_SPLIT, EXAMPLES_SPLIT = "test", "examples"
"""Splits of the documents; `examples` contains the validation items for few-shot prompts."""

MAX_TOKENS = 16384
"""Output limit, including reasoning; shorter contexts need `--gen_kwargs max_gen_toks=…`."""


def export_lm_eval(source: Dataset, out: Path) -> str:
    """Write the task folder including the dataset; return the group name of all its tasks."""
    group = "numbench_" + re.sub(r"[^A-Za-z0-9]+", "_", source.name)
    copy_dataset(source, out / "data")
    values = {
        "group": group,
        "metrics": METRIC_NAMES,
        "version": source.label,
        "test_split": TEST_SPLIT,
        "examples_split": EXAMPLES_SPLIT,
        "max_tokens": MAX_TOKENS,
        "tasks": source.tasks,
    }
    texts = {
        f"{group}_{task}.yaml": render_template("lm_eval_task.yaml.j2", task=task, **values)
        for task in source.tasks
    }
    texts[f"{group}.py"] = render_template("lm_eval_module.py.j2")
    texts[f"{group}.yaml"] = render_template("lm_eval_group.yaml.j2", **values)
    for name, text in texts.items():
        jsonl.write_atomically(out / name, text.encode())
    return group


def documents(folder: Path, task: str) -> DatasetDict:
    """Return the items of one task of the dataset in `folder`, and worked examples."""
    from datasets import Dataset as Table
    from datasets import DatasetDict

    source = _open_cached(folder)
    return DatasetDict(
        {
            TEST_SPLIT: Table.from_list(_rows(source.by_task[task])),
            EXAMPLES_SPLIT: Table.from_list(_rows(examples(source, [task], MAX_EXAMPLES)[task])),
        }
    )


def process_results(doc: dict[str, str], results: list[str]) -> dict[str, float]:
    """Return the metric values of a response under the `exact` protocol."""
    item = msgspec.json.decode(doc["item"], type=Item)
    return metric_values(item, score_exact(item, Response(item_id=item.id, text=results[0])))


@cache
def _open_cached(folder: Path) -> Dataset:
    return Dataset(folder)


def _rows(items: Iterable[Item]) -> list[dict[str, str]]:
    return [
        {
            "id": item.id,
            "system": system_prompt(item.task),
            "prompt": item.prompt,
            "answer": example_messages([item])[1].content,
            "item": msgspec.json.encode(item).decode(),
        }
        for item in items
    ]
