"""Runs with enough items for significant differences: 40 per task."""

from collections.abc import Callable, Iterable
from pathlib import Path

from numbench.dataset.store import Dataset, write_dataset
from numbench.records import Answer, Response
from numbench.tasks import PAPER_TASKS
from tests.report import runs

ITEMS = 40
ALL = tuple(PAPER_TASKS)

Says = Callable[[str, int], bool | str | None]
"""The response to an item: correct, incorrect, a text, or None for no response."""


def dataset(folder: Path, tasks: Iterable[str] = ALL, name: str = "longer") -> Dataset:
    items = {
        task: [runs.item(task, index, answer(task, index)) for index in range(ITEMS)]
        for task in tasks
    }
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
    received = ((task, index) for task in tasks for index in range(limit or ITEMS))
    result = (_response(task, index, says(task, index)) for task, index in received)
    return write(folder, data, [r for r in result if r], tasks, limit, prompt)


def write(
    folder: Path,
    data: Dataset,
    responses: Iterable[Response],
    tasks: Iterable[str],
    limit: int | None = None,
    prompt: str = "ab",
) -> Path:
    """A run with these responses."""
    by_number = {str(number): response for number, response in enumerate(responses)}
    return runs.run(
        folder, data, by_number, display=folder.name, reasoning="none", model=folder.name,
        tasks=tuple(tasks), limit=limit, prompt=prompt,
    )  # fmt: skip


def answer(task: str, index: int) -> Answer:
    if task == "interval":
        return "ABCD"[index % 4]
    return (str(index), str(index + 1)) if task == "sorting" else str(1000 + index)


def _response(task: str, index: int, said: bool | str | None) -> Response | None:
    item = f"{task}-{index}"
    if said is None:
        return None
    if said == "failed":
        return runs.failed(task, index)
    return Response(item_id=item, text=_text(task, index, said), finish_reason="stop")


def _text(task: str, index: int, said: bool | str) -> str:
    if isinstance(said, str):
        return said
    true = answer(task, index) if said else {"interval": "F", "sorting": ("9",)}.get(task, "7")
    shown = f"[{', '.join(true)}]" if isinstance(true, tuple) else true
    return f'{{"answer": "{shown}"}}' if task == "interval" else f'{{"answer": {shown}}}'
