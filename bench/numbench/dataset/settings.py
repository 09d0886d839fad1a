"""The settings that determine a dataset, and the files that it consists of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from numbench.errors import BadInput
from numbench.records import Manifest, Scalar
from numbench.tasks import PAPER_TASKS, SCALED_TASKS, TASK_GROUPS, TASKS, check_task_name
from numbench.tasks.base import SamplingSettings
from numbench.tasks.shards import INTEGER_TASKS, Shard, check_bits

GENERATOR_VERSION = "numbench-generator 1"
"""Changes whenever the same settings would give other items."""

POOL_SIZE = 10_000
"""Items per task of the paper's test set; smaller sets are stratified subsets of as many items."""

MAX_SHARD_ROWS = 10_000_000
"""Maximum rows of one file: half a minute of work that fits in one worker's memory."""

_NUMBERS = re.compile(
    r"(\d+) ?digits|(\d+) ?bits(?: ?/ ?10\^(\d+))?|size ?(\d+(?:, ?\d+)*)", re.ASCII
)

Format = Literal["jsonl", "parquet"]


class DatasetSettings(NamedTuple):
    """The settings that determine the content of a dataset.

    size: items per task. max_digits, max_bits, max_shift, question_size: see `SamplingSettings`.
    """

    name: str = "v1"
    tasks: tuple[str, ...] = tuple(PAPER_TASKS)
    split: str = "test"
    size: int = 500
    seed: int = 1
    max_digits: int = 15
    format: Format = "jsonl"
    max_bits: int | None = None
    max_shift: int = 0
    question_size: int | str | None = None

    def manifest_fields(self) -> dict[str, Any]:
        """Return what the manifest of the dataset says in addition to its files."""
        numbers: dict[str, Scalar] = {"max_digits": self.max_digits}
        if self.max_bits is not None:
            numbers = {"max_bits": self.max_bits, "max_shift": self.max_shift}
        if self.question_size is not None:
            numbers = {"question_size": self.question_size}
        return {
            "name": self.name,
            "generator": GENERATOR_VERSION,
            "seed": self.seed,
            "split": self.split,
            "settings": {"size": self.size, **numbers, "format": self.format},
        }

    def shard(self, task: str, index: int = 0, count: int = 1) -> Shard:
        """Return shard `index` of `count` of a task."""
        numbers = (self.max_digits, self.max_bits, self.max_shift, self.question_size)
        return Shard(task, self.seed, self.split, index, count, *numbers)


def sampling_settings(manifest: Manifest) -> SamplingSettings:
    """Return how large the numbers of a dataset are, as far as its manifest says."""
    known: dict[str, Any] = {name: manifest.settings.get(name) for name in SamplingSettings._fields}
    return SamplingSettings(**{name: value for name, value in known.items() if value})


class ShardFile(NamedTuple):
    """A file to be written: the first `rows` items of a shard, or a subset of its pool."""

    shard: Shard
    rows: int
    file: str


def plan_shard_files(
    settings: DatasetSettings, shard_rows: int = MAX_SHARD_ROWS
) -> list[ShardFile]:
    """Return the files of a dataset, each with at most `shard_rows` rows."""
    count = -(-settings.size // shard_rows)
    return [
        ShardFile(
            settings.shard(task, index, count),
            settings.size * (index + 1) // count - settings.size * index // count,
            f"{task}{f'-{index:05}-of-{count:05}' if count > 1 else ''}.{settings.format}",
        )
        for task in settings.tasks
        for index in range(count)
    ]


def matches_manifest(manifest: Manifest, settings: DatasetSettings) -> bool:
    """Return whether a manifest describes the dataset of these settings."""
    fields, tasks = settings.manifest_fields(), {entry.task for entry in manifest.files}
    is_same = all(getattr(manifest, name) == value for name, value in fields.items())
    return is_same and tasks == set(settings.tasks)


def strata_share_per_item(manifest: Manifest) -> float:
    """Return the share of the variance between strata of difficulty that each item removes.

    `GENERATOR_VERSION` draws up to `POOL_SIZE` items per task as a stratified sample, one item
    from each of as many strata of difficulty as there are items: n items remove n/size of the
    variance between strata, less the n/`POOL_SIZE` that the pool itself has. 0 for the independent
    items of larger sets and of other generators.
    """
    size = manifest.settings.get("size")
    # All questions of one size have the same difficulty.
    is_sample = manifest.generator == GENERATOR_VERSION and "question_size" not in manifest.settings
    if not is_sample or not isinstance(size, int) or not 1 <= size < POOL_SIZE:
        return 0.0
    return 1 / size - 1 / POOL_SIZE


def parse_tasks(names: Sequence[str], numbers: SamplingSettings | None = None) -> tuple[str, ...]:
    """Return task names in registry order. `all`: the nine tasks of the paper, or those of them or
    of the scaled tasks that have questions with such numbers. A name may be that of a group.

    Raises BadInput, with the nearest valid name, for an unknown task.
    """
    names = [name.strip() for name in names]
    if names == ["all"]:
        if numbers is not None and numbers.question_size is not None:
            return tuple(SCALED_TASKS)
        return INTEGER_TASKS if numbers is not None and numbers.max_bits else tuple(PAPER_TASKS)
    chosen: set[str] = set()
    for name in names:
        if name not in TASK_GROUPS:
            check_task_name(name)
        chosen.update(TASK_GROUPS.get(name, (name,)))
    return tuple(task for task in TASKS if task in chosen)


def with_dataset_sizes(tasks: Sequence[str], numbers: SamplingSettings) -> SamplingSettings:
    """Return the sizes that datasets of these tasks have, or `numbers` if it is not the default."""
    sizes = {axis.in_dataset if (axis := TASKS[task].sizes) else "" for task in tasks}
    is_default = numbers == SamplingSettings() and len(sizes) == 1
    return SamplingSettings(question_size=sizes.pop() or None) if is_default else numbers


def parse_numbers(text: str) -> SamplingSettings:
    """Return how large numbers are: `15 digits`, `8 bits`, `8 bits / 10^3` (integers of 8 bits,
    divided by powers of ten up to 10^3), or `size 40` or `size 4, 16, 64` for scaled tasks.

    Raises BadInput for other text.
    """
    match = _NUMBERS.fullmatch(text.strip())
    if match is None:
        raise BadInput(f"--numbers {text!r}: use 'N digits', 'N bits', 'N bits / 10^J' or 'size N'")
    digits, bits, shift = (int(group) if group else None for group in match.groups()[:3])
    sizes = sorted({int(size) for size in match[4].split(",")}) if match[4] else [None]
    size = ", ".join(map(str, sizes)) if len(sizes) > 1 else sizes[0]
    return SamplingSettings(15 if digits is None else digits, bits, shift or 0, size)


MAX_ITEMS_PER_TASK = 1_000_000_000
"""The largest dataset, about 100 GB per task."""


def check_settings(settings: DatasetSettings) -> None:
    """Raise BadInput for invalid settings."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", settings.name):
        raise BadInput(f"--name {settings.name!r}: use letters, digits, '.', '_' and '-'")
    if not settings.tasks:
        raise BadInput("no task given; choose from " + ", ".join(TASKS))
    if not 1 <= settings.size <= MAX_ITEMS_PER_TASK:
        limits = f"give 1 to {MAX_ITEMS_PER_TASK:,} questions per task"
        raise BadInput(f"--size {settings.size}: {limits}")
    if not 3 <= settings.max_digits <= 17:
        raise BadInput(f"--numbers: {settings.max_digits} digits; it must be between 3 and 17")
    if settings.max_bits is not None:
        check_bits(settings.tasks, settings.max_bits, settings.max_shift)
    size = settings.question_size
    sizes = [int(each) for each in str(size or 0).split(",")]
    for name in settings.tasks:
        axis = TASKS[name].sizes
        if axis is None and size is None:
            continue
        if axis is None:
            raise BadInput(f"--numbers: {name} has no sizes; use {', '.join(SCALED_TASKS)}")
        if not all(axis.minimum <= each <= axis.maximum for each in sizes):
            raise BadInput(
                f"{name} needs --numbers 'size N' with N from {axis.minimum} to {axis.maximum:,}, "
                f"the number of its {axis.unit}"
            )
