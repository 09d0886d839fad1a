"""Which items a run asks, and where it lies: what a run and its plan have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from bench.dataset.store import Dataset
from bench.errors import BadInput
from bench.records import FailureKind, Item, Response
from bench.tasks import TASKS

PROMPTS = "paper"

Outcomes = dict[str, FailureKind | None]
"""Item id to the kind of its failure, None where it is answered."""


def default_folder(model: str, level: str, dataset: str, few_shot: int) -> Path:
    """Where a run goes if nobody says: `results/MODEL_LEVEL_DATASET`."""
    return Path("results") / folder_name(model, level, dataset, few_shot)


def folder_name(model: str, level: str, dataset: str, few_shot: int) -> str:
    """What a run's folder is called: `MODEL_LEVEL_DATASET`, `_5-shot` behind it with examples."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-.")
    return f"{plain}_{level}_{dataset}" + (f"_{few_shot}-shot" if few_shot else "")


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


def outcomes(responses: Iterable[Response]) -> Outcomes:
    """What became of each item that has a response; an answer is never displaced by an error."""
    found: Outcomes = {}
    for response in responses:
        if response.error is None:
            found[response.item_id] = None
        elif found.get(response.item_id, "run") is not None:
            found[response.item_id] = response.error.kind
    return found


def still_open(items: Iterable[Item], settled: Outcomes, retry_errors: bool) -> list[Item]:
    """The items that are still to be asked: a failure that may have passed always is."""
    return [item for item in items if _is_open(settled, item.id, retry_errors)]


def _is_open(settled: Outcomes, item_id: str, retry_errors: bool) -> bool:
    if item_id not in settled:
        return True
    failure = settled[item_id]
    return failure is not None and (retry_errors or failure != "item")
