"""The numbers that the figures of a dataset need, as columns per task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numbench.dataset.store import open_dataset
from numbench.decimal_numbers import parse_decimal
from numbench.errors import BadInput
from numbench.records import Item
from numbench.tasks import TASKS

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

PAIR = ("operand 1", "operand 2")


class OperandColumns(NamedTuple):
    """The operands of one name in the questions of a task, in file order.

    digits: significant digits of each, 0 for zero. exponents: ⌊log₁₀|n|⌋, NaN for zero.
    """

    digits: IntArray
    exponents: FloatArray


class TaskColumns(NamedTuple):
    """The items of one task.

    numbers: by operand name; operands beyond the last name belong to it. exponent, spread: the
    sampling parameters of a list, shape (items,), None if the task has none. base10, base2:
    difficulty, shape (items,).
    """

    numbers: dict[str, OperandColumns]
    exponent: IntArray | None
    spread: IntArray | None
    base10: IntArray
    base2: IntArray


class DatasetColumns(NamedTuple):
    """The name of a dataset, and the columns of every task that has items."""

    name: str
    tasks: dict[str, TaskColumns]


def read_columns(dataset: str | Path) -> DatasetColumns:
    """Return the columns of a dataset, given by name or folder.

    Raises BadInput if it cannot be read, has an operand that is not a number, or has no items.
    """
    opened = open_dataset(dataset)
    try:
        tasks = {task: _columns(task, items) for task, items in opened.by_task.items() if items}
    except ValueError as error:
        raise BadInput(f"{opened.path}: {error}") from error
    if not tasks:
        raise BadInput(f"{opened.path}: no items, so there is nothing to draw")
    return DatasetColumns(opened.name, tasks)


def _columns(task: str, items: Sequence[Item]) -> TaskColumns:
    sampled = all({"exponent", "spread"} <= item.params.keys() for item in items)
    return TaskColumns(
        numbers=_numbers(TASKS[task].operand_names, items),
        exponent=_ints([item.params["exponent"] for item in items]) if sampled else None,
        spread=_ints([item.params["spread"] for item in items]) if sampled else None,
        base10=_ints([item.difficulty.base10 for item in items]),
        base2=_ints([item.difficulty.base2 for item in items]),
    )


def _numbers(names: Sequence[str], items: Sequence[Item]) -> dict[str, OperandColumns]:
    measured: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
    for item in items:
        for index, operand in enumerate(item.operands):
            measured[names[min(index, len(names) - 1)]].append(_measure(operand))
    return {
        name: OperandColumns(_ints([digits for digits, _ in rows]), np.array([x for _, x in rows]))
        for name, rows in measured.items()
        if rows
    }


def _measure(text: str) -> tuple[int, float]:
    """Return significant digits and order of magnitude. Raises ValueError for a non-decimal."""
    significand, exponent = parse_decimal(text)
    if significand == 0:
        return 0, math.nan
    digits = str(abs(significand))
    return len(digits.rstrip("0")), float(len(digits) - 1 + exponent)


def _ints(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
