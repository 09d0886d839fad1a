"""Worked examples before a question: items of the validation split with their exact answers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice

from bench import jsonl
from bench.dataset.store import Dataset
from bench.errors import BadInput
from bench.models.base import Message
from bench.records import Item
from bench.tasks import TASKS
from bench.tasks.items import content
from bench.tasks.shards import Exhausted, Shard, items

MOST = 64
"""Examples per question at the most."""

Examples = dict[str, tuple[Item, ...]]


def examples(source: Dataset, tasks: Sequence[str], count: int) -> Examples:
    """`count` validation items for each task, the same for every question of the task.

    They are drawn with the seed and digits of `source`. None of them has the numbers of an item
    of `source`, whatever the split or origin of that dataset. BadInput for a count outside
    0 … 64, or where the digits allow too few items.
    """
    if not 0 <= count <= MOST:
        raise BadInput(f"--few-shot {count}: give 0 to {MOST} examples")
    if count == 0:
        return {}
    asked = {content(item.operands) for group in source.by_task.values() for item in group}
    return {task: _draw(source, task, count, asked) for task in tasks}


def turns(shown: Sequence[Item]) -> tuple[Message, ...]:
    """The examples as a conversation: each question, then its answer in the form asked for."""
    return tuple(
        message
        for item in shown
        for message in (Message("user", item.prompt), Message("assistant", _answer(item)))
    )


def fingerprint(shown: Examples) -> str:
    """SHA-256 of all that the examples say."""
    digest = hashlib.sha256()
    for task in sorted(shown):
        for message in turns(shown[task]):
            digest.update(jsonl.encode([task, message.role, message.content]))
    return digest.hexdigest()


def _draw(source: Dataset, task: str, count: int, asked: set[int]) -> tuple[Item, ...]:
    digits = source.manifest.settings.get("max_digits")
    shard = Shard(
        task,
        seed=source.manifest.seed or 1,
        split="val",
        max_digits=digits if isinstance(digits, int) else 15,
    )
    fresh = (item for item in items(shard) if content(item.operands) not in asked)
    try:
        drawn = tuple(islice(fresh, count))
    except Exhausted as end:
        raise BadInput(
            f"--few-shot {count}: {task} has only {end.found} validation items of at most "
            f"{shard.max_digits} digits"
        ) from end
    return drawn


def _answer(item: Item) -> str:
    kind = TASKS[item.task].answer_kind
    if kind == "letter":
        return f'{{"answer": "{item.answer}"}}'
    if kind == "list":
        return f'{{"answer": [{", ".join(item.answer)}]}}'
    return f'{{"answer": {item.answer}}}'
