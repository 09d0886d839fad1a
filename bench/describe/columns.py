"""A dataset as columns of small numbers: all that its figures need to know of its items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bench.dataset.store import open_dataset
from bench.errors import BadInput
from bench.numerals import parse
from bench.records import Item

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PAIR = ("operand 1", "operand 2")
_ROLES: dict[str, tuple[str, ...]] = {
    "addition": PAIR,
    "multiplication": PAIR,
    "division": PAIR,
    "exponentiation": ("base", "exponent"),
    "interval": ("reference", "boundaries"),
}
_ELEMENTS = ("elements",)


class Numbers(NamedTuple):
    """The numbers that play one role in the questions of a task, in file order.

    digits: significant digits of each, 0 for zero. exponents: ⌊log₁₀|n|⌋, NaN for zero.
    """

    digits: Ints
    exponents: Floats


class Columns(NamedTuple):
    """The items of one task.

    numbers: by role; what a question has beyond its roles belongs to the last one. exponent,
    spread: the sampling parameters of a list, shape (items,), None where the task has none.
    base10, base2: difficulty, shape (items,).
    """

    numbers: dict[str, Numbers]
    exponent: Ints | None
    spread: Ints | None
    base10: Ints
    base2: Ints


class Described(NamedTuple):
    """A dataset's name and folder, and the columns of every task that has items."""

    name: str
    folder: Path
    tasks: dict[str, Columns]


def read_columns(dataset: str | Path) -> Described:
    """The columns of the dataset in folder, or of the name, `dataset`.

    The one place that knows how items are stored. BadInput where the dataset cannot be read,
    has an operand that is no number, or has no item at all.
    """
    opened = open_dataset(dataset)
    try:
        tasks = {task: _columns(task, items) for task, items in opened.by_task.items() if items}
    except ValueError as error:
        raise BadInput(f"{opened.path}: {error}") from error
    if not tasks:
        raise BadInput(f"{opened.path}: no items, so there is nothing to draw")
    return Described(opened.name, opened.path, tasks)


def _columns(task: str, items: Sequence[Item]) -> Columns:
    sampled = all({"exponent", "spread"} <= item.params.keys() for item in items)
    return Columns(
        numbers=_numbers(_ROLES.get(task, _ELEMENTS), items),
        exponent=_ints([item.params["exponent"] for item in items]) if sampled else None,
        spread=_ints([item.params["spread"] for item in items]) if sampled else None,
        base10=_ints([item.difficulty.base10 for item in items]),
        base2=_ints([item.difficulty.base2 for item in items]),
    )


def _numbers(roles: Sequence[str], items: Sequence[Item]) -> dict[str, Numbers]:
    measured: dict[str, list[tuple[int, float]]] = {role: [] for role in roles}
    for item in items:
        for place, operand in enumerate(item.operands):
            measured[roles[min(place, len(roles) - 1)]].append(_measure(operand))
    return {
        role: Numbers(_ints([digits for digits, _ in rows]), np.array([x for _, x in rows]))
        for role, rows in measured.items()
    }


def _measure(text: str) -> tuple[int, float]:
    """Significant digits and order of magnitude of a decimal. ValueError for anything else."""
    significand, exponent = parse(text)
    if significand == 0:
        return 0, math.nan
    digits = str(abs(significand))
    return len(digits.rstrip("0")), float(len(digits) - 1 + exponent)


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)
