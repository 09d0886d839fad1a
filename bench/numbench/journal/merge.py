"""Merge runs of one model on parts of a dataset, such as shards, into one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from numbench.core import jsonl
from numbench.core.texts import Sentences
from numbench.dataset.store import Dataset, open_run_dataset
from numbench.errors import BadInput
from numbench.journal.identity import find_difference, merge_run_info
from numbench.journal.run_folder import (
    INFO,
    JOBS,
    REQUESTS,
    RESPONSES,
    check_run_folder,
    iter_lines,
    lost_requests,
    read_info,
    read_jobs,
    run_lock,
)
from numbench.records import Job, RecordedRequest, Response, RunInfo, request_id
from numbench.transforms import store_prompts, variant_of_run

_text = Sentences(__file__)


class MergedRun(NamedTuple):
    """A merged run: its requests, and how many of them the next call sends again.

    missing: requests without a response, or with a temporary failure only.
    """

    path: Path
    requests: int
    missing: int


def merge_runs(
    folders: Sequence[Path], out: Path, on_message: Callable[[str], None] = lambda _: None
) -> MergedRun:
    """Write a run to `out` with the responses and batch jobs of the runs in `folders`.

    The runs stay as they are, and `out` becomes a run only when it is complete. Raises BadInput if
    the runs differ in something that shapes an answer, if two of them have a response to the same
    request, if one is being written or waits for a batch job, or if `out` has responses.
    on_message: called with each run that is read.
    """
    present: set[str] = set()
    with ExitStack() as stack:
        for folder, count in Counter(folder.resolve() for folder in folders).items():
            if count > 1:
                raise BadInput(_text("twice", folder=folder, count=count))
        if any((out / name).exists() for name in (INFO, RESPONSES)):
            raise BadInput(f"{out} has responses already; choose another --out")
        check_run_folder(out)
        infos = {folder: _open(folder, stack) for folder in folders}
        info = _merge_infos(infos)
        dataset = _open_dataset(infos)
        tasks = tuple(task for task in dataset.tasks if task in info.tasks)
        info = replace(info, tasks=tasks, dataset=dataset.ref(out), shard=None)
        lines = list(_read_responses(folders, dataset, present, on_message))
        jobs = [line for each in folders for line, _ in iter_lines(each, JOBS, Job)]
        requests = {
            request.task: line
            for each in reversed(folders)
            for line, request in iter_lines(each, REQUESTS, RecordedRequest)
        }
        stack.enter_context(run_lock(out))
        store_prompts(out, variant_of_run(folders[0], info).prompts)
        for name, content in ((JOBS, jobs), (REQUESTS, requests.values())):
            if content:
                jsonl.write_atomically(out / name, content)
        jsonl.write_atomically(out / RESPONSES, lines)
        # Without it the folder is not a run.
        jsonl.write_json(out / INFO, info)
    expected = {
        request_id(item.id, sample)
        for task in info.tasks
        for item in info.select_items(dataset.by_task[task])
        for sample in range(info.samples)
    }
    return MergedRun(out, len(expected), len(expected - present))


def _open(folder: Path, stack: ExitStack) -> RunInfo:
    """Return the description of a run that nobody writes until `stack` is closed."""
    info = read_info(folder)
    stack.enter_context(run_lock(folder))
    if any(job.is_active for job in read_jobs(folder).values()):
        raise BadInput(_text("in_progress", folder=folder))
    if info.horizon is not None:
        raise BadInput(_text("horizon", folder=folder))
    return info


def _merge_infos(infos: dict[Path, RunInfo]) -> RunInfo:
    """Return the description of the merged run."""
    (first_folder, first), *others = infos.items()
    sharded = [(folder, info.shard) for folder, info in infos.items() if info.shard]
    merged = first
    for folder, info in others:
        if difference := find_difference(merged, info, ("samples", "limit")):
            field, before, now = difference
            about = {"first": first_folder, "folder": folder, "field": field}
            raise BadInput(_text("different", **about, before=before, now=now))
        earlier, later = sorted((merged, info), key=lambda each: each.created)
        merged = merge_run_info(folder, earlier, later)
    for folder, shard in sharded:
        first_folder, first_shard = sharded[0]
        if shard.count != first_shard.count:
            about = {"first": first_folder, "first_shard": first_shard}
            raise BadInput(_text("other_shards", **about, folder=folder, shard=shard))
    return merged


def _open_dataset(infos: dict[Path, RunInfo]) -> Dataset:
    """Return the dataset that all runs share; runs of other machines need not lead to it."""
    *others, (last, last_info) = infos.items()
    for folder, info in others:
        try:
            return open_run_dataset(info.dataset, folder)
        except BadInput:
            continue
    return open_run_dataset(last_info.dataset, last)


def _read_responses(
    folders: Sequence[Path], dataset: Dataset, present: set[str], on_message: Callable[[str], None]
) -> Iterator[bytes]:
    """Yield the responses of all runs, and add the ids of the requests that have one to `present`.

    A temporary failure is none: the run requests it again.

    Raises BadInput if two runs have a response to the same request, or one to an unknown item.
    """
    run_of: dict[str, Path] = {}
    for folder in folders:
        on_message(f"merging {folder}")
        for number, (line, response) in enumerate(iter_lines(folder, RESPONSES, Response), 1):
            place, item = f"{folder / RESPONSES}, line {number}", response.item_id
            if item not in dataset.by_id:
                raise BadInput(_text("other_dataset", place=place, item=item, dataset=dataset.name))
            other = run_of.setdefault(response.request_id, folder)
            if other != folder:
                about = {"place": place, "sample": response.sample, "item": item}
                raise BadInput(_text("asked_twice", **about, other=other / RESPONSES))
            if response.is_final:
                present.add(response.request_id)
            yield line
        # What a killed process left in flight: it may have been billed.
        yield from map(jsonl.encode, lost_requests(folder))
