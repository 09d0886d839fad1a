"""Merge runs of one model on parts of a dataset, such as shards, into one run."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout
from msgspec.structs import replace

from numbench import jsonl
from numbench.dataset.store import Dataset, open_run_dataset
from numbench.errors import BadInput
from numbench.journal import (
    INFO,
    JOBS,
    REQUESTS,
    RESPONSES,
    UNFINISHED,
    exclude_writers,
    iter_response_lines,
    read_jobs,
)
from numbench.records import ItemShard, Job, RecordedRequest, RunInfo, request_id
from numbench.run_identity import find_difference, merge_run_info
from numbench.sent_requests import lost_requests
from numbench.transforms import store_prompts, variant_of_run


class ShardState(NamedTuple):
    """A shard of a merged run: its requests, and how many of them have no response."""

    shard: ItemShard
    requests: int
    missing: int


class MergedRun(NamedTuple):
    """A merged run: its requests, how many the next call sends again, and incomplete shards.

    missing: requests without a response, or with a temporary failure only.
    """

    path: Path
    requests: int
    missing: int
    incomplete_shards: tuple[ShardState, ...]


class _Source(NamedTuple):
    """A run to merge."""

    folder: Path
    info: RunInfo


def merge_runs(
    folders: Sequence[Path], out: Path, on_message: Callable[[str], None] = lambda _: None
) -> MergedRun:
    """Write a run to `out` with the responses and batch jobs of the runs in `folders`.

    The runs stay as they are, and nothing exists at `out` before it is complete. Raises BadInput if
    the runs differ in something that shapes an answer, if two of them have a response to the same
    request, if one is being written or waits for a batch job, or if `out` is not empty.
    on_message: called with each run that is read.
    """
    with ExitStack() as stack:
        sources = [_open(folder, stack) for folder in _distinct(folders)]
        info, dataset = _merge_info(sources, out)
        shard_count = _shard_count(sources)
        folder = stack.enter_context(_new_folder(out))
        present = _write_responses(sources, dataset, folder / RESPONSES, on_message)
        _write_jobs(sources, folder / JOBS)
        _write_requests(sources, folder / REQUESTS)
        store_prompts(folder, variant_of_run(sources[0].folder, info).prompts)
        jsonl.write_json(folder / INFO, info)
    return _describe(out, info, dataset, present, shard_count)


def _distinct(folders: Sequence[Path]) -> Sequence[Path]:
    """Return `folders`. Raises BadInput if one is named twice."""
    for folder, count in Counter(folder.resolve() for folder in folders).items():
        if count > 1:
            raise BadInput(f"{folder} is named {count} times; name each run once")
    return folders


def _open(folder: Path, stack: ExitStack) -> _Source:
    """Return a run that nobody writes until `stack` is closed."""
    if not (folder / INFO).is_file():
        raise BadInput(f"{folder}: no run here ({INFO} is missing)")
    stack.enter_context(exclude_writers(folder))
    if any(job.is_active for job in read_jobs(folder).values()):
        raise BadInput(
            f"{folder}: answers of this run are still in progress at the provider (batch jobs); "
            "collect them first, with the command of the run"
        )
    info = jsonl.read_json(folder / INFO, RunInfo)
    if info.horizon is not None:
        raise BadInput(f"{folder} holds a horizon measurement; only runs on a dataset are merged")
    return _Source(folder, info)


def _merge_info(sources: Sequence[_Source], out: Path) -> tuple[RunInfo, Dataset]:
    """Return the description of the merged run, and its dataset."""
    first, merged = sources[0], sources[0].info
    for other in sources[1:]:
        names = f"{first.folder} and {other.folder} cannot be merged"
        if difference := find_difference(merged, other.info, ("samples", "limit")):
            field, before, now = difference
            raise BadInput(f"{names}: {field} is {before} in the first and {now} in the second")
        earlier, later = sorted((merged, other.info), key=lambda each: each.created)
        merged = merge_run_info(other.folder, earlier, later)
    dataset = _open_dataset(sources)
    tasks = tuple(task for task in dataset.tasks if task in merged.tasks)
    return replace(merged, tasks=tasks, dataset=dataset.ref(out), shard=None), dataset


def _open_dataset(sources: Sequence[_Source]) -> Dataset:
    """Return the dataset that all runs share; runs of other machines need not lead to it."""
    for source in sources[:-1]:
        try:
            return open_run_dataset(source.info.dataset, source.folder)
        except BadInput:
            continue
    return open_run_dataset(sources[-1].info.dataset, sources[-1].folder)


def _shard_count(sources: Sequence[_Source]) -> int | None:
    """Return into how many shards the runs divide their dataset, None if they do not."""
    sharded = [source for source in sources if source.info.shard]
    for source in sharded:
        first = sharded[0]
        assert first.info.shard and source.info.shard
        if source.info.shard.count != first.info.shard.count:
            raise BadInput(
                f"{first.folder} is shard {first.info.shard} and {source.folder} is shard "
                f"{source.info.shard}; merge the shards of one division"
            )
    return sharded[0].info.shard.count if sharded and sharded[0].info.shard else None


@contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """Yield a folder that becomes `out` at the end, and is removed after an error.

    What a killed process left of it is removed first. Raises BadInput if `out` is not empty, or if
    another process merges into it.
    """
    out = out.resolve()
    folder = out.with_name(f".{out.name}{UNFINISHED}")
    lock = FileLock(folder.with_suffix(".lock"))
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise BadInput(f"{out}: another process is merging into this folder") from error
    try:
        if out.is_file() or (out.is_dir() and any(out.iterdir())):
            raise BadInput(f"{out} is not empty; choose another --out")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder
        jsonl.sync_folder(folder)
        if out.is_dir():
            out.rmdir()
        folder.rename(out)
        jsonl.sync_folder(out.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _write_responses(
    sources: Sequence[_Source], dataset: Dataset, path: Path, on_message: Callable[[str], None]
) -> set[str]:
    """Write the lines of all runs to `path`, and return the ids of the requests with a response.

    A temporary failure is none: the run requests it again.

    Raises BadInput if two runs have a response to the same request, or one to an unknown item.
    """
    run_of: dict[str, tuple[int, int]] = {}
    present: set[str] = set()
    with open(path, "wb") as file:
        for index, source in enumerate(sources):
            on_message(f"merging {source.folder}")
            for number, (line, response) in enumerate(iter_response_lines(source.folder), 1):
                place = f"{source.folder / RESPONSES}, line {number}"
                if response.item_id not in dataset.by_id:
                    raise BadInput(
                        f"{place}: item {response.item_id} is not in the dataset {dataset.name}"
                    )
                other, other_number = run_of.setdefault(response.request_id, (index, number))
                if other != index:
                    raise BadInput(
                        f"{place}: sample {response.sample} of item {response.item_id} has a "
                        f"response in {sources[other].folder / RESPONSES}, line {other_number}, "
                        "too; merge runs that share no items"
                    )
                if response.error is None or response.error.kind == "item":
                    present.add(response.request_id)
                file.write(line)
            # What a killed process left in flight: it may have been billed.
            for lost in lost_requests(source.folder, source.folder / RESPONSES):
                file.write(jsonl.encode(lost))
        file.flush()
        os.fsync(file.fileno())
    return present


def _write_jobs(sources: Sequence[_Source], path: Path) -> None:
    """Write the batch jobs of all runs to `path`, if there are any."""
    lines = [
        line
        for source in sources
        for line, _ in jsonl.read_lines_with_bytes(source.folder / JOBS, Job, append_only=True)
    ]
    if lines:
        jsonl.write_atomically(path, b"".join(lines))


def _write_requests(sources: Sequence[_Source], path: Path) -> None:
    """Write the recorded request of each task to `path`: that of the first run that has one."""
    recorded: dict[str, RecordedRequest] = {}
    for source in sources:
        if (source.folder / REQUESTS).exists():
            for request in jsonl.read_lines(
                source.folder / REQUESTS, RecordedRequest, append_only=True
            ):
                recorded.setdefault(request.task, request)
    if recorded:
        jsonl.write_atomically(path, b"".join(map(jsonl.encode, recorded.values())))


def _describe(
    out: Path, info: RunInfo, dataset: Dataset, present: Collection[str], shard_count: int | None
) -> MergedRun:
    """Return the counts of a merged run."""
    items = {task: info.select_items(dataset.by_task[task]) for task in info.tasks}
    shards = []
    for index in range(1, (shard_count or 0) + 1):
        shard = ItemShard(index, shard_count or 0)
        ids = {item.id for of_task in items.values() for item in shard.select(of_task)}
        requests, missing = _count(ids, info.samples, present)
        if missing:
            shards.append(ShardState(shard, requests, missing))
    all_ids = {item.id for of_task in items.values() for item in of_task}
    return MergedRun(out, *_count(all_ids, info.samples, present), tuple(shards))


def _count(ids: Collection[str], samples: int, present: Collection[str]) -> tuple[int, int]:
    """Return the number of requests for the items, and how many of them have no response."""
    requests = [request_id(item_id, sample) for item_id in ids for sample in range(samples)]
    return len(requests), sum(request not in present for request in requests)
