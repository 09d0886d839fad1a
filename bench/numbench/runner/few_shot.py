"""Worked examples before a question: items of the validation split with their exact answers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice

from numbench.core import jsonl
from numbench.dataset.settings import sampling_settings
from numbench.dataset.store import Dataset
from numbench.errors import BadInput
from numbench.models.base import Message
from numbench.records import Item
from numbench.tasks import TASKS
from numbench.tasks.items import content_hash
from numbench.tasks.prompts import PromptSet
from numbench.tasks.shards import Shard, generate_items

MAX_EXAMPLES = 64
"""Maximum number of examples per question."""

Examples = dict[str, tuple[Item, ...]]
"""The examples of each task."""


def examples(source: Dataset, tasks: Sequence[str], count: int) -> Examples:
    """Return `count` validation items for each task, the same for every question of the task.

    They are drawn with the seed and digits of `source`. None of them has the operands of an item
    of `source`, whatever its split or origin. Raises BadInput if `count` is not in 0 … 64, or if
    there are too few validation items with so few digits.
    """
    if not 0 <= count <= MAX_EXAMPLES:
        raise BadInput(f"--few-shot {count}: give 0 to {MAX_EXAMPLES} examples")
    if count == 0:
        return {}
    excluded = {content_hash(item.operands) for items in source.by_task.values() for item in items}
    return {task: _draw(source, task, count, excluded) for task in tasks}


def example_messages(items: Sequence[Item]) -> tuple[Message, ...]:
    """Return the examples as a conversation: each question, then its answer as requested."""
    return tuple(
        message
        for item in items
        for message in (Message("user", item.prompt), Message("assistant", _answer_json(item)))
    )


def messages_before(prompts: PromptSet, task: str, items: Sequence[Item]) -> tuple[Message, ...]:
    """Return the messages before a question: the system prompt, if there is one, and examples."""
    system = prompts.system_prompt(task)
    return *([Message("system", system)] if system else []), *example_messages(items)


def examples_sha256(items_by_task: Examples) -> dict[str, str]:
    """Return the SHA-256 of the messages of each task's examples."""
    return {
        task: hashlib.sha256(jsonl.encode(example_messages(items))).hexdigest()
        for task, items in items_by_task.items()
    }


def _draw(source: Dataset, task: str, count: int, excluded: set[int]) -> tuple[Item, ...]:
    numbers = sampling_settings(source.manifest)
    shard = Shard(task, source.manifest.seed or 1, "val", **numbers._asdict())
    candidates = (
        item for item in generate_items(shard) if content_hash(item.operands) not in excluded
    )
    chosen = tuple(islice(candidates, count))
    if len(chosen) < count:
        raise BadInput(
            f"--few-shot {count}: {task} has only {len(chosen)} validation questions with the "
            "operands of this dataset"
        )
    return chosen


def _answer_json(item: Item) -> str:
    """Return the answer of an item in the form that the prompts ask for."""
    kind = TASKS[item.task].answer_kind
    if kind in ("letter", "fraction"):
        return f'{{"answer": "{item.answer}"}}'
    if kind == "list":
        return f'{{"answer": [{", ".join(item.answer)}]}}'
    return f'{{"answer": {item.answer}}}'
