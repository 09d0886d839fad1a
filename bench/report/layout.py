"""What the tables hold: their columns and captions, and the rows that all outputs share."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from bench.tasks import TASKS

LEVELS = ("maximal", "high", "medium", "low", "minimal", "none")
"""Reasoning levels, most first."""


class Estimate(NamedTuple):
    """A mean (percent, or tokens) with its 95 % bounds, None where they are not known."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def bounded(self) -> tuple[float, float, float] | None:
        """Value, lower and upper bound where all are known."""
        if self.low is None or self.high is None:
            return None
        return self.value, self.low, self.high


class Entry(NamedTuple):
    """One row of the tables: a model at a level. `tables` maps table → task → estimate.

    `note` tells apart two entries of one model and level, and is empty otherwise.
    """

    model: str
    reasoning: str
    tables: dict[str, dict[str, Estimate]]
    published: bool = False
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.model} ({self.note})" if self.note else self.model


class TableSpec(NamedTuple):
    """One of the paper's tables. `columns` pairs a CSV header with a task."""

    name: str
    title: str
    columns: tuple[tuple[str, str], ...]
    decimals: int
    caption: str


# The paper's order of columns; a task that it does not know comes after them.
_ORDER = (
    "addition",
    "multiplication",
    "division",
    "mean",
    "std",
    "minmax",
    "interval",
    "sorting",
    "exponentiation",
)
_TASKS = (*_ORDER, *(task for task in TASKS if task not in _ORDER))


def _columns(tasks: tuple[str, ...], **renamed: str) -> tuple[tuple[str, str], ...]:
    return tuple((renamed.get(task, TASKS[task].display), task) for task in tasks)


LOG_SMAPE = TableSpec(
    "log_smape",
    "log-sMAPE",
    _columns(_TASKS, sorting="Sort"),
    1,
    "Mean log-sMAPE in percent (100 is perfect to 15 significant digits); the comparison tasks "
    "MinMax, Interval and Sort are exact-match accuracy in percent instead.",
)
EXACT_MATCH = TableSpec(
    "exact_match",
    "Exact match",
    _columns(tuple(task for task in _TASKS if TASKS[task].metric == "log_smape")),
    1,
    "Exact-match accuracy in percent: all of the first 15 significant digits are right.",
)
TOKENS = TableSpec(
    "tokens",
    "Tokens",
    _columns(_TASKS),
    0,
    "Mean number of generated tokens per item, reasoning included, over the responses whose "
    "count is known; empty where none is.",
)
TABLES = (LOG_SMAPE, EXACT_MATCH, TOKENS)


def one_line(text: str) -> str:
    """A foreign name on one line: control and formatting characters become blanks."""
    clean = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text)
    return " ".join(clean.split()) or "unnamed"


def shown(value: float | None, decimals: int) -> str:
    """A figure as the paper prints it, empty where it is not known; never `-0.0`."""
    return "" if value is None else f"{value:z.{decimals}f}"


def level_rank(level: str) -> int:
    """Place of a level in `LEVELS`; an unknown one comes last."""
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)
