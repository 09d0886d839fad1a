"""What determines a dataset, and the files that follow from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from bench.errors import BadInput
from bench.records import Manifest, Scalar
from bench.tasks import TASKS
from bench.tasks.items import SPLIT_SHARES
from bench.tasks.shards import Shard

GENERATOR = "numbench-generator 1"
"""Changes whenever the same settings would give other items."""

POOL = 10_000
"""Items per task of the paper's test set, from which a smaller set is drawn by difficulty."""

SHARD_ROWS = 10_000_000
"""Most rows of one file: what one worker makes in half a minute and can remember."""

Format = Literal["jsonl", "parquet"]


class Settings(NamedTuple):
    """What determines the content of a dataset. `size` counts items per task."""

    name: str = "v1"
    tasks: tuple[str, ...] = tuple(TASKS)
    split: str = "test"
    size: int = 500
    seed: int = 1
    max_digits: int = 15
    format: Format = "jsonl"

    def recorded(self) -> dict[str, Scalar]:
        """What the manifest keeps beside name, seed and split."""
        return {"size": self.size, "max_digits": self.max_digits, "format": self.format}


class Part(NamedTuple):
    """One file to be made: the first `rows` items of a shard, or a subset of its pool."""

    shard: Shard
    rows: int
    file: str


def plan(settings: Settings, shard_rows: int = SHARD_ROWS) -> list[Part]:
    """The files of a dataset, `shard_rows` rows each at the most."""
    count = -(-settings.size // shard_rows)
    return [
        Part(
            Shard(task, settings.seed, settings.split, index, count, settings.max_digits),
            settings.size * (index + 1) // count - settings.size * index // count,
            f"{task}{f'-{index:05}-of-{count:05}' if count > 1 else ''}.{settings.format}",
        )
        for task in settings.tasks
        for index in range(count)
    ]


def same(manifest: Manifest, settings: Settings) -> bool:
    """Whether a manifest describes what these settings would give."""
    return (
        manifest.generator == GENERATOR
        and (manifest.name, manifest.seed, manifest.split)
        == (settings.name, settings.seed, settings.split)
        and manifest.settings == settings.recorded()
        and {entry.task for entry in manifest.files} == set(settings.tasks)
    )


def parse_tasks(names: Sequence[str]) -> tuple[str, ...]:
    """Task names in registry order; `all` means every task. BadInput for an unknown one."""
    if list(names) == ["all"]:
        return tuple(TASKS)
    for name in names:
        if name not in TASKS:
            raise BadInput(f"unknown task {name!r}: choose from {', '.join(TASKS)}, or all")
    return tuple(task for task in TASKS if task in names)


def check(settings: Settings) -> None:
    """BadInput for settings that make no sense."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", settings.name):
        raise BadInput(f"--name {settings.name!r}: use letters, digits, '.', '_' and '-'")
    parse_tasks(settings.tasks)
    if not settings.tasks:
        raise BadInput("no task given: choose from " + ", ".join(TASKS))
    if settings.size < 1:
        raise BadInput(f"--size {settings.size}: it must be at least 1 item per task")
    if not 3 <= settings.max_digits <= 17:
        raise BadInput(f"--max-digits {settings.max_digits}: it must be between 3 and 17")
    if settings.split not in SPLIT_SHARES:
        raise BadInput(f"--split {settings.split}: choose test, val or train")
    if settings.format not in ("jsonl", "parquet"):
        raise BadInput(f"--format {settings.format}: choose jsonl or parquet")
