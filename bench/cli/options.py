"""Options that commands share, and how they speak."""

from __future__ import annotations

import sys
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console


class Split(str, Enum):  # noqa: UP042 - typer wants str members
    test = "test"
    val = "val"
    train = "train"


class Format(str, Enum):  # noqa: UP042
    jsonl = "jsonl"
    parquet = "parquet"


class Engine(str, Enum):  # noqa: UP042
    local = "local"
    ray = "ray"


class Protocol(str, Enum):  # noqa: UP042
    exact = "exact"
    paper = "paper"


class Reasoning(str, Enum):  # noqa: UP042
    none = "none"
    minimal = "minimal"
    low = "low"
    medium = "medium"
    high = "high"
    maximal = "maximal"


class Suite(str, Enum):  # noqa: UP042
    paper = "paper"


Tasks = Annotated[str, typer.Option(help="Tasks, separated by commas, or all.", metavar="A,B|all")]


def note(message: str) -> None:
    print(message, file=sys.stderr)


def console() -> Console:
    from rich.console import Console

    return Console(highlight=False)
