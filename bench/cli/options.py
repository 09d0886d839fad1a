"""Options that commands share, and how they speak."""

from __future__ import annotations

import re
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


class TextSplit(str, Enum):  # noqa: UP042
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


class ApiName(str, Enum):  # noqa: UP042
    chat = "chat"
    responses = "responses"


class Suite(str, Enum):  # noqa: UP042
    paper = "paper"


DURATION = "90s|30m|8h"


def duration(text: str) -> float:
    """Seconds behind `90`, `90s`, `30m`, `8h` or `1h30m`. BadParameter for anything else."""
    match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", text.strip())
    if not match or not any(match.groups()):
        raise typer.BadParameter(f"{text!r} is no time: give seconds, or such as 30m, 8h, 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return 3600 * hours + 60 * minutes + seconds


Tasks = Annotated[str, typer.Option(help="Tasks, separated by commas, or all.", metavar="A,B|all")]


def note(message: str) -> None:
    print(message, file=sys.stderr)


def console() -> Console:
    from rich.console import Console

    return Console(highlight=False)
