"""The settings that determine a dataset, and the files that it consists of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from numbench.errors import BadInput
from numbench.records import Manifest, Scalar
from numbench.tasks import (
    PAPER_TASKS,
    SCALED_TASKS,
    TASKS,
    check_task_name,
    short_integers,
    study_profile,
)
from numbench.tasks.items import SPLIT_SHARES
from numbench.tasks.shards import Shard

GENERATOR_VERSION = "numbench-generator 1"
"""Changes whenever the same settings would give other items."""

POOL_SIZE = 10_000
"""Items per task of the paper's test set; smaller sets are stratified subsets of as many items."""

MAX_SHARD_ROWS = 10_000_000
"""Maximum rows of one file: half a minute of work that fits in one worker's memory."""

Format = Literal["jsonl", "parquet"]
Profile = Literal["study"]


class DatasetSettings(NamedTuple):
    """The settings that determine the content of a dataset.

    size: items per task. max_digits, max_bits, max_shift, question_size: see `SamplingSettings`.
    profile: `study` for questions distributed as those that the study published, instead of by
    these settings.
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
    question_size: int | None = None
    profile: Profile | None = None

    def manifest_settings(self) -> dict[str, Scalar]:
        """Return the settings that a manifest stores in addition to name, seed and split."""
        operands: dict[str, Scalar] = {"max_digits": self.max_digits}
        if self.max_bits is not None:
            operands = {"max_bits": self.max_bits, "max_shift": self.max_shift}
        if self.question_size is not None:
            operands = {"question_size": self.question_size}
        if self.profile is not None:
            operands = {"profile": self.profile}
        return {"size": self.size, **operands, "format": self.format}

    def shard(self, task: str, index: int = 0, count: int = 1) -> Shard:
        """Return shard `index` of `count` of a task."""
        operands = (self.max_digits, self.max_bits, self.max_shift, self.question_size)
        return Shard(task, self.seed, self.split, index, count, *operands, self.profile)


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
    return (
        manifest.generator == GENERATOR_VERSION
        and (manifest.name, manifest.seed, manifest.split)
        == (settings.name, settings.seed, settings.split)
        and manifest.settings == settings.manifest_settings()
        and {entry.task for entry in manifest.files} == set(settings.tasks)
    )


def strata_share_per_item(manifest: Manifest) -> float:
    """Return the share of the variance between strata of difficulty that each item removes.

    `GENERATOR_VERSION` draws up to `POOL_SIZE` items per task as a stratified sample, one item
    from each of as many strata of difficulty as there are items: n items remove n/size of the
    variance between strata, less the n/`POOL_SIZE` that the pool itself has. 0 for the independent
    items of larger sets and of other generators.
    """
    size = manifest.settings.get("size")
    if manifest.generator != GENERATOR_VERSION or not isinstance(size, int):
        return 0.0
    if "question_size" in manifest.settings:
        # All items have the same difficulty.
        return 0.0
    return 1 / size - 1 / POOL_SIZE if 1 <= size < POOL_SIZE else 0.0


def parse_tasks(names: Sequence[str], scaled: bool = False) -> tuple[str, ...]:
    """Return task names in registry order; `all` means the nine tasks of the paper.

    scaled: `all` means the scaled tasks instead.

    Raises BadInput, with the nearest valid name, for an unknown task.
    """
    names = [name.strip() for name in names]
    if names == ["all"]:
        return tuple(SCALED_TASKS if scaled else PAPER_TASKS)
    for name in names:
        check_task_name(name)
    return tuple(task for task in TASKS if task in names)


def _check_question_size(settings: DatasetSettings) -> None:
    """Raise BadInput unless scaled tasks have a size in their range, and no other task has one."""
    size = settings.question_size
    for name in settings.tasks:
        axis = TASKS[name].sizes
        if axis is None and size is not None:
            raise BadInput(f"--question-size: {name} has no sizes; use {', '.join(SCALED_TASKS)}")
        if axis is not None and size is None:
            raise BadInput(f"{name} needs --question-size N, the number of its {axis.unit}")
        if axis is not None and size is not None and not axis.minimum <= size <= axis.maximum:
            raise BadInput(
                f"--question-size {size}: {name} has {axis.minimum} to {axis.maximum:,} {axis.unit}"
            )
    if size is not None and (settings.max_bits is not None or settings.max_shift):
        raise BadInput("--max-bits and --max-shift do not apply with --question-size: omit them")


def profile_of(name: str, profile: Profile | None) -> Profile | None:
    """Return the profile of a dataset: `study-like` has that of the study without being told."""
    return "study" if name == study_profile.NAME else profile


def _check_profile(settings: DatasetSettings) -> None:
    """Raise BadInput for an unknown profile, or settings that a profile does not have."""
    if settings.profile is None:
        if settings.name == study_profile.NAME:
            raise BadInput(f"--name {study_profile.NAME}: needs --profile study")
        return
    if settings.profile != "study":
        raise BadInput(f"--profile {settings.profile}: use study")
    for task in settings.tasks:
        if task not in study_profile.SAMPLERS:
            raise BadInput(
                f"--profile study has no {task}; use {', '.join(study_profile.SAMPLERS)}"
            )
    defaults = DatasetSettings()
    for field in ("max_digits", "max_bits", "max_shift", "question_size"):
        if getattr(settings, field) != getattr(defaults, field):
            option = "--" + field.replace("_", "-")
            raise BadInput(f"{option} does not apply with --profile study: omit it")


def check_settings(settings: DatasetSettings) -> None:
    """Raise BadInput for invalid settings."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", settings.name):
        raise BadInput(f"--name {settings.name!r}: use letters, digits, '.', '_' and '-'")
    parse_tasks(settings.tasks)
    if not settings.tasks:
        raise BadInput("no task given; choose from " + ", ".join(TASKS))
    if settings.size < 1:
        raise BadInput(f"--size {settings.size}: it must be at least 1 item per task")
    if not 3 <= settings.max_digits <= 17:
        raise BadInput(f"--max-digits {settings.max_digits}: it must be between 3 and 17")
    _check_profile(settings)
    _check_question_size(settings)
    if settings.max_bits is not None:
        try:
            short_integers.check_settings(settings.tasks, settings.max_bits, settings.max_shift)
        except ValueError as error:
            raise BadInput(f"--max-bits, --max-shift: {error}") from None
    elif settings.max_shift:
        raise BadInput("--max-shift requires --max-bits")
    if settings.split not in SPLIT_SHARES:
        raise BadInput(f"--split {settings.split}: choose test, val or train")
    if settings.format not in ("jsonl", "parquet"):
        raise BadInput(f"--format {settings.format}: choose jsonl or parquet")
