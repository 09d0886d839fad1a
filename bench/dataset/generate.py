"""Generation of a dataset: sample, keep what belongs to the split, answer, stratify, write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bench.dataset.store import Dataset, write_dataset
from bench.dataset.stratify import stratified
from bench.errors import BadInput
from bench.records import Item
from bench.tasks import TASKS, Task
from bench.tasks.base import Sampling
from bench.tasks.draws import Draws, Stream, attempts
from bench.tasks.items import SPLIT_SHARES, make_item, split_of
from bench.tasks.truth import in_range

GENERATOR = "numbench-generator 1"
"""Changes whenever the same settings would give other bytes."""

POOL = 10_000
"""Items per task of the paper's test set, from which a smaller set is drawn by difficulty."""

_MOST_DRY_ATTEMPTS = 100_000


class Settings(NamedTuple):
    """What determines the content of a dataset. `size` counts items per task."""

    name: str = "v1"
    tasks: tuple[str, ...] = tuple(TASKS)
    split: str = "test"
    size: int = 500
    seed: int = 1
    max_digits: int = 15


class Generated(NamedTuple):
    """A dataset, and whether the folder held the very same one before."""

    dataset: Dataset
    unchanged: bool


def generate(
    settings: Settings = Settings(),  # noqa: B008 - immutable
    out: Path | None = None,
    workers: int = 1,
    on_task: Callable[[str], None] = lambda _: None,
) -> Generated:
    """Write the dataset of these settings to `out` (default: datasets/NAME).

    Every byte depends on the settings alone. `on_task` hears of each finished task. BadInput for
    settings that make no sense, and where `out` holds another dataset or other files.
    """
    _check(settings)
    folder = out or Path("datasets") / settings.name
    before = _occupant(folder, settings)
    build = partial(build_task, settings)
    pool = ProcessPoolExecutor(workers) if workers > 1 else None
    items: dict[str, list[Item]] = {}
    with pool or nullcontext():
        results = (pool.map if pool else map)(build, settings.tasks)
        for task, rows in zip(settings.tasks, results, strict=True):
            items[task] = rows
            on_task(task)
    dataset = write_dataset(
        folder,
        items,
        name=settings.name,
        generator=GENERATOR,
        seed=settings.seed,
        split=settings.split,
        settings={"size": settings.size, "max_digits": settings.max_digits},
    )
    unchanged = before is not None and before.manifest == dataset.manifest
    return Generated(dataset, unchanged)


def build_task(settings: Settings, name: str) -> list[Item]:
    """The items of one task: a stratified sample of a pool of at least POOL."""
    task = TASKS[name]
    pool_size = max(POOL, settings.size)
    stream = Stream(settings.seed, task.stream or name, settings.split, 0)
    pool = list(islice(distinct(task, stream, Sampling(settings.max_digits)), pool_size))
    if len(pool) < pool_size:
        raise BadInput(
            f"--size {settings.size}: only {len(pool)} different {name} items with "
            f"--max-digits {settings.max_digits} were found; ask for fewer, or for more digits"
        )
    words = next(attempts(stream._replace(name=f"{stream.name}/subset"), 3 * pool_size))
    return stratified(pool, settings.size, words)


def distinct(task: Task, stream: Stream, sampling: Sampling) -> Iterator[Item]:
    """The different items of a stream, in order of appearance.

    It ends after 100,000 attempts in a row that gave nothing new.
    """
    seen: set[str] = set()
    dry = 0
    for draws in attempts(stream, task.words):
        item = item_of(task, draws, sampling, stream.split)
        if item is not None and item.id not in seen:
            seen.add(item.id)
            dry = 0
            yield item
        elif (dry := dry + 1) >= _MOST_DRY_ATTEMPTS:
            return


def item_of(task: Task, draws: Draws, sampling: Sampling, split: str) -> Item | None:
    """The item of one attempt; None where it breaks a rule, leaves the range or the split."""
    problem = task.sample(draws, sampling)
    if problem is None or split_of(problem.operands) != split:
        return None
    answer = task.truth(problem.operator, problem.operands)
    if task.metric == "log_smape" and not in_range(str(answer)):
        return None
    return make_item(task.name, *problem, answer=answer)


def parse_tasks(names: Sequence[str]) -> tuple[str, ...]:
    """Task names in registry order; `all` means every task. BadInput for an unknown one."""
    if list(names) == ["all"]:
        return tuple(TASKS)
    for name in names:
        if name not in TASKS:
            raise BadInput(f"unknown task {name!r}: choose from {', '.join(TASKS)}, or all")
    return tuple(task for task in TASKS if task in names)


def _check(settings: Settings) -> None:
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


def _occupant(folder: Path, settings: Settings) -> Dataset | None:
    """The dataset that already lies in `folder`, if it is one of the same settings."""
    if not folder.exists() or not any(folder.iterdir()):
        return None
    if not (folder / "manifest.json").exists():
        present = {path.name for path in folder.iterdir()}
        if present <= {f"{task}.jsonl" for task in TASKS}:
            return None
        raise BadInput(f"{folder} holds other files: choose another --out")
    old = Dataset(folder)
    manifest = old.manifest
    same = (manifest.generator, manifest.name, manifest.seed, manifest.split) == (
        GENERATOR,
        settings.name,
        settings.seed,
        settings.split,
    ) and manifest.settings == {"size": settings.size, "max_digits": settings.max_digits}
    if not same or {entry.task for entry in manifest.files} != set(settings.tasks):
        raise BadInput(
            f"{folder} holds another dataset ({manifest.name}, seed {manifest.seed}, "
            f"{manifest.split}): choose another --out, or remove the folder"
        )
    return old
