"""Runs of scripted responders on the same items under several prompts and transformations."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from numbench.dataset.store import Dataset, write_dataset
from numbench.journal import write_run
from numbench.records import Answer, Item, Response, RunInfo, Usage
from numbench.runner.few_shot import _answer_json
from numbench.transforms import open_variant, store_prompts

Responder = Callable[[Item, Item], str]
"""The answer to an item as it is asked, from that item and the item as it is."""


def small_dataset(folder: Path, source: Dataset, size: int, tasks: tuple[str, ...]) -> Dataset:
    """The first items of a dataset."""
    items = {task: source.by_task[task][:size] for task in tasks}
    return write_dataset(
        folder / "small", items, name="small", generator="test", seed=1, split="test", settings={}
    )


def answer_json(answer: Answer, item: Item) -> str:
    """The requested format."""
    from msgspec.structs import replace

    return _answer_json(replace(item, answer=answer))


def write_variant(
    folder: Path,
    data: Dataset,
    responder: Responder,
    *,
    prompts: str | Path = "paper",
    transform: str | None = None,
    tasks: tuple[str, ...] = (),
    samples: int = 1,
    display: str = "GPT 5",
    model: str = "gpt-5",
) -> Path:
    """Write the run of a responder and return its folder."""
    variant = open_variant(prompts, transform)
    asked_tasks = variant.select_tasks(tasks or data.tasks, is_chosen=False)
    folder.mkdir(parents=True)
    info = RunInfo(
        model=model,
        display=display,
        reasoning="minimal",
        dataset=data.ref(folder),
        prompt=variant.prompts.ref(asked_tasks),
        tasks=asked_tasks,
        limit=None,
        settings={"samples": samples} if samples > 1 else {},
        versions={},
        created="2025-01-01T00:00:00Z",
        transform=transform,
    )
    usage = Usage(input=5, visible=10, generated=10, source="reported")
    responses = [
        Response(
            item_id=item.id,
            sample=sample,
            text=responder(variant.ask(item), item),
            finish_reason="stop",
            usage=usage,
        )
        for task in asked_tasks
        for item in data.by_task[task]
        for sample in range(samples)
    ]
    write_run(folder, info, responses)
    store_prompts(folder, variant.prompts)
    return folder


def knows(share: float, key: str) -> Callable[[Item], bool]:
    """Whether a responder gets an item right: a share of the items, drawn by `key` and the id."""
    return lambda item: random.Random(f"{key} {item.id}").random() < share


def wrong(answer: Answer) -> Answer:
    """A wrong answer of the same kind, the same for the same truth."""
    if not isinstance(answer, str):
        return answer[::-1] if answer != answer[::-1] else (*answer, "1")
    if answer.isalpha():
        return "A" if answer != "A" else "B"
    sign = "-" if answer.startswith("-") else ""
    return f"{sign}1{answer.removeprefix('-')}"
