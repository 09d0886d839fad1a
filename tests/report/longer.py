"""Runs with enough items for differences to show: 40 of each task."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from bench.dataset.store import Dataset, write_dataset
from bench.journal import write_run
from bench.records import Answer, Difficulty, Failure, Item, PromptRef, Response, RunInfo
from bench.tasks import TASKS

ITEMS = 40
ALL = tuple(TASKS)

Says = Callable[[str, int], bool | str | None]
"""What comes back for an item: right, wrong, a text, or None for no response."""


def dataset(folder: Path, tasks: Iterable[str] = ALL, name: str = "longer") -> Dataset:
    items = {task: [_item(task, place) for place in range(ITEMS)] for task in tasks}
    return write_dataset(
        folder / name, items, name=name, generator="test", seed=1, split="test", settings={}
    )


def run(
    folder: Path,
    data: Dataset,
    says: Says,
    *,
    tasks: Iterable[str] = ALL,
    limit: int | None = None,
    prompt: str = "ab",
) -> Path:
    """A run named like its folder."""
    folder.mkdir(parents=True)
    info = RunInfo(
        model=folder.name,
        display=folder.name,
        reasoning="none",
        dataset=data.ref(folder),
        prompt=PromptRef(name="paper", sha256=prompt * 32),
        tasks=tuple(tasks),
        limit=limit,
        settings={},
        versions={},
        created="",
    )
    asked = ((task, place) for task in tasks for place in range(limit or ITEMS))
    found = (_response(task, place, says(task, place)) for task, place in asked)
    write_run(folder, info, [response for response in found if response])
    return folder


def answer(task: str, place: int) -> Answer:
    if task == "interval":
        return "ABCD"[place % 4]
    return (str(place), str(place + 1)) if task == "sorting" else str(1000 + place)


def _item(task: str, place: int) -> Item:
    return Item(
        id=f"{task}-{place}",
        task=task,
        prompt=f"What is {task} {place}?",
        answer=answer(task, place),
        operands=("1", "2"),
        operator="+",
        difficulty=Difficulty(base10=place, base2=place),
        params={},
    )


def _response(task: str, place: int, said: bool | str | None) -> Response | None:
    item = f"{task}-{place}"
    if said is None:
        return None
    if said == "failed":
        return Response(item_id=item, error=Failure(kind="item", message="no"))
    return Response(item_id=item, text=_text(task, place, said), finish_reason="stop")


def _text(task: str, place: int, said: bool | str) -> str:
    if isinstance(said, str):
        return said
    true = answer(task, place) if said else {"interval": "F", "sorting": ("9",)}.get(task, "7")
    shown = f"[{', '.join(true)}]" if isinstance(true, tuple) else true
    return f'{{"answer": "{shown}"}}' if task == "interval" else f'{{"answer": {shown}}}'
