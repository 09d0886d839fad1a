"""Which items a run asks, and where it lies: what a run and its plan have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from bench.dataset.store import Dataset
from bench.errors import BadInput
from bench.records import Item, Response
from bench.tasks import TASKS

PROMPTS = "paper"


def default_folder(model: str, level: str, dataset: str) -> Path:
    """Where a run goes if nobody says: `results/MODEL_LEVEL_DATASET`."""
    return Path("results") / folder_name(model, level, dataset)


def folder_name(model: str, level: str, dataset: str) -> str:
    """What a run's folder is called: `MODEL_LEVEL_DATASET`."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-.")
    return f"{plain}_{level}_{dataset}"


def choose(source: Dataset, tasks: Sequence[str] | None) -> tuple[str, ...]:
    """The tasks to ask, in the registry's order. BadInput for one that is unknown or absent."""
    for task in tasks or ():
        if task not in TASKS:
            raise BadInput(f"unknown task {task!r}: give one of {', '.join(TASKS)}")
        if task not in source.tasks:
            raise BadInput(
                f"dataset {source.name} has no task {task!r}: it has {', '.join(source.tasks)}"
            )
    if tasks is not None and not tasks:
        raise BadInput(f"no task given: give one of {', '.join(source.tasks)}")
    return tuple(task for task in source.tasks if tasks is None or task in tasks)


def interleaved(groups: Iterable[Sequence[Item]]) -> Iterator[Item]:
    """One item of each task in turn, so that a run cut short has something of every task."""
    for round_ in zip_longest(*groups):
        yield from (item for item in round_ if item is not None)


def still_open(
    items: Iterable[Item], responses: Mapping[str, Response], retry_errors: bool
) -> list[Item]:
    """The items that are still to be asked: a failure that may have passed always is."""
    return [item for item in items if _is_open(responses.get(item.id), retry_errors)]


def _is_open(response: Response | None, retry_errors: bool) -> bool:
    if response is None:
        return True
    if response.error is None:
        return False
    return retry_errors or response.error.kind != "item"
