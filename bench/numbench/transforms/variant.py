"""The items of a run as they are asked: in the words of a prompt set, after a transformation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from numbench import jsonl
from numbench.errors import BadInput
from numbench.records import PAPER, Item, RunInfo
from numbench.tasks import TASKS
from numbench.tasks.prompt_files import bundled_sets, set_files
from numbench.tasks.prompts import PromptSet, load_prompt_set, open_prompt_set
from numbench.transforms.registry import NO_TRANSFORM, Transform, find_transform

STORED_PROMPTS = "prompts"
"""The folder of a run with a copy of its prompt set, unless that is `paper`."""


class Variant(NamedTuple):
    """How items are asked. transform: None for the items as they are."""

    prompts: PromptSet
    transform: Transform | None = None

    @property
    def is_plain(self) -> bool:
        """Whether items are asked as the dataset has them."""
        return self.prompts.name == PAPER and self.transform is None

    def ask(self, item: Item) -> Item:
        """Return the item as it is asked, with the same id, difficulty and parameters.

        Its answer is computed from the new operands, not mapped from that of the old item. The
        operands are in plain notation, whatever the notation in the prompt.
        """
        if self.is_plain:
            return item
        operator, operands, separator, printed = item.operator, item.operands, ", ", item.operands
        if self.transform is not None:
            operator, operands = self.transform.rewrite(operator, operands)
            printed = tuple(map(self.transform.notation, operands))
            separator = self.transform.separator
        is_same = (operator, operands) == (item.operator, item.operands)
        return msgspec.structs.replace(
            item,
            prompt=self.prompts.format_question(item.task, operator, printed, separator),
            answer=item.answer if is_same else TASKS[item.task].exact_answer(operator, operands),
            operator=operator,
            operands=operands,
        )

    def select_tasks(self, tasks: Sequence[str], is_chosen: bool) -> tuple[str, ...]:
        """Return the tasks that the transformation applies to.

        is_chosen: whether the user named the tasks. Raises BadInput if it applies to none of them,
        or not to one that the user named.
        """
        if self.transform is None:
            return tuple(tasks)
        selected = tuple(task for task in tasks if task in self.transform.tasks)
        if not selected or (is_chosen and len(selected) < len(tasks)):
            others = [task for task in tasks if task not in selected]
            applicable = [task for task in TASKS if task in self.transform.tasks]
            raise BadInput(
                f"--transform {self.transform.name} does not apply to {', '.join(others)}: "
                f"choose --tasks from {', '.join(applicable)}"
            )
        return selected


def open_variant(prompts: str | Path, transform: str | None) -> Variant:
    """Return the variant of a prompt set (name or folder) and a transformation (None for none).

    Raises BadInput if there is no such prompt set or transformation.
    """
    name = None if transform == NO_TRANSFORM else transform
    return Variant(open_prompt_set(prompts), find_transform(name) if name else None)


def variant_of_run(folder: Path, info: RunInfo) -> Variant:
    """Return how the items of the run in `folder` were asked.

    The prompts are those that the run folder contains, or bundled ones with the same hash. Raises
    BadInput if they are neither.
    """
    try:
        transform = find_transform(info.transform) if info.transform else None
    except BadInput as error:
        raise BadInput(f"{folder}: {error}") from error
    if info.prompt.name == PAPER or info.horizon is not None or info.source == "imported":
        return Variant(load_prompt_set(), transform)
    if (folder / STORED_PROMPTS).is_dir():
        stored = PromptSet(info.prompt.name, folder / STORED_PROMPTS)
        if stored.ref(()).sha256 == info.prompt.sha256:
            return Variant(stored, transform)
        raise BadInput(
            f"{folder / STORED_PROMPTS}: changed since the run; restore the prompts to score it"
        )
    if info.prompt.name in bundled_sets():
        bundled = load_prompt_set(info.prompt.name)
        if bundled.ref(()).sha256 == info.prompt.sha256:
            return Variant(bundled, transform)
    raise BadInput(
        f"{folder}: its prompts ({info.prompt.label}) are not in {STORED_PROMPTS}/; restore them "
        "to score this run"
    )


def store_prompts(folder: Path, prompts: PromptSet) -> None:
    """Copy a prompt set other than `paper` into a run folder, unless it is there."""
    if prompts.name == PAPER:
        return
    for path in set_files(prompts.folder):
        copy = folder / STORED_PROMPTS / path.relative_to(prompts.folder)
        if not copy.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            jsonl.write_atomically(copy, path.read_bytes())
