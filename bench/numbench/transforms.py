"""Transformations of items: the same question with other notation, order or signs.

A transformation maps an item to one with the same id, and its answer to the answer of the new item.
Runs on both are compared pair by pair. A variant is how the items of a run are asked: in the words
of a prompt set, after a transformation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import msgspec

from numbench.core import jsonl
from numbench.core.decimal_numbers import parse_decimal
from numbench.errors import BadInput, bad_input_at
from numbench.records import PAPER, Answer, Item, RunInfo
from numbench.tasks import PAPER_TASKS, TASKS
from numbench.tasks.prompts import (
    PromptSet,
    bundled_sets,
    load_prompt_set,
    open_prompt_set,
    set_files,
)

NO_TRANSFORM = "none"
"""The name of the items as they are."""

_UNORDERED = frozenset({"minmax", "sorting", "addition", "multiplication", "mean", "std"})
"""Tasks whose operands have one role, or of which reversal only changes the sign of the answer."""

_ODD = frozenset({"minmax", "sorting", "addition", "mean"})
"""Tasks whose answer changes its sign with those of all operands."""

_OPPOSITES = ("minimum", "maximum"), ("ascending", "descending")
_OPPOSITE = dict(_OPPOSITES) | {second: first for first, second in _OPPOSITES}

Operands = Sequence[str]


@dataclass(frozen=True)
class Transform:
    """A deterministic change of questions.

    tasks: those that it applies to. rewrite: operator and operands of the new question. notation:
    how a number in plain notation is printed. separator: between the elements of a printed list.
    map_answer: the answer to the new question from task, operator and answer of the old one; exact,
    and the same function for a model's answers.
    """

    name: str
    description: str
    tasks: frozenset[str] = frozenset(PAPER_TASKS)
    rewrite: Callable[[str, Operands], tuple[str, Operands]] = lambda *question: question
    notation: Callable[[str], str] = lambda number: number
    separator: str = ", "
    map_answer: Callable[[str, str, Answer], Answer] = lambda _task, _operator, answer: answer


def _answer_after_swap(task: str, operator: str, answer: Answer) -> Answer:
    """Return the answer with reversed operands: b − a is −(a − b), every other one is the same."""
    return _change_numbers(answer, _negate) if (task, operator) == ("addition", "-") else answer


def _answer_after_negation(task: str, _operator: str, answer: Answer) -> Answer:
    return _change_numbers(answer, _negate) if task in _ODD else answer


def _negate(number: str) -> str:
    """Return −number in the same notation; 0 has no sign."""
    if number.startswith("-"):
        return number.removeprefix("-")
    return f"-{number}" if parse_decimal(number) else number


def _change_numbers(answer: Answer, change: Callable[[str], str]) -> Answer:
    """Return an answer with a function applied to its numbers; a letter stays as it is."""
    if not isinstance(answer, str):
        return tuple(map(change, answer))
    return answer if answer.isalpha() else change(answer)


TRANSFORMS: dict[str, Transform] = {
    transform.name: transform
    for transform in (
        Transform(
            "grouping", "digits in groups, and semicolons in lists: [1,234,567.5; 8]",
            notation=lambda number: f"{Decimal(number):,f}", separator="; ",
        ),
        Transform("scientific", "a power of ten: 1.2345675e6",
            notation=lambda number: f"{Decimal(number).normalize():e}".replace("e+", "e"),
        ),
        Transform(
            "plus", "a plus sign before positive numbers: +5",
            notation=lambda number: number if number.startswith("-") else f"+{number}",
        ),
        Transform(
            "trailing-zeros", "two more decimals: 5.00",
            notation=lambda number: f"{number}00" if "." in number else f"{number}.00",
        ),
        Transform(
            "decimal-comma", "a decimal comma, and semicolons in lists: [1,5; 2,75]",
            # MinMax asks for the number as it appears, which is then no JSON number.
            tasks=frozenset(PAPER_TASKS) - {"minmax"},
            notation=lambda number: number.replace(".", ","), separator="; ",
        ),
        Transform(
            "swap", "operands in reverse order", tasks=_UNORDERED,
            rewrite=lambda operator, operands: (operator, operands[::-1]),
            map_answer=_answer_after_swap,
        ),
        Transform(
            "negate", "all operands with the opposite sign",
            tasks=_UNORDERED | {"division"},
            rewrite=lambda operator, operands: (
                _OPPOSITE.get(operator, operator), tuple(map(_negate, operands)),
            ),
            map_answer=_answer_after_negation,
        ),
    )
}  # fmt: skip
"""The transformations by name."""


_AS_IT_IS = Transform(NO_TRANSFORM, "")


def find_transform(name: str) -> Transform:
    """Return the transformation `name`. Raises BadInput if there is none."""
    if name not in TRANSFORMS:
        choices = ", ".join((NO_TRANSFORM, *TRANSFORMS))
        raise BadInput(f"unknown transformation {name!r}; use {choices}")
    return TRANSFORMS[name]


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
        transform = self.transform or _AS_IT_IS
        operator, operands = transform.rewrite(item.operator, item.operands)
        printed = tuple(map(transform.notation, operands))
        is_same = (operator, operands) == (item.operator, item.operands)
        return msgspec.structs.replace(
            item,
            prompt=self.prompts.format_question(item.task, operator, printed, transform.separator),
            answer=item.answer if is_same else TASKS[item.task].exact_answer(operator, operands),
            operator=operator,
            operands=tuple(operands),
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
    with bad_input_at(folder, BadInput):
        transform = find_transform(info.transform) if info.transform else None
    if info.prompt.name == PAPER or info.horizon is not None:
        return Variant(load_prompt_set(), transform)
    own, prompts = folder / STORED_PROMPTS, None
    if own.is_dir():
        prompts = PromptSet(info.prompt.name, own)
    elif info.prompt.name in bundled_sets():
        prompts = load_prompt_set(info.prompt.name)
    if prompts is None or prompts.sha256 != info.prompt.sha256:
        if info.source != "imported":
            raise BadInput(
                f"{own}: the prompts ({info.prompt.label}) are missing, or have changed since the "
                "run; restore them to score it"
            )
        # A log has the answers; the wording of its questions is needed only to show them.
        prompts = load_prompt_set()
    return Variant(prompts, transform)


def store_prompts(folder: Path, prompts: PromptSet) -> None:
    """Copy a prompt set other than `paper` into a run folder, unless it is there."""
    if prompts.name == PAPER:
        return
    for path in set_files(prompts.folder):
        copy = folder / STORED_PROMPTS / path.relative_to(prompts.folder)
        if not copy.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            jsonl.write_atomically(copy, path.read_bytes())
