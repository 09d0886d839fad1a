"""A run folder: `run.json` and the append-only `responses.jsonl`.

A response is on disk before its item counts as done, so an interrupted run can be resumed. A run
folder has one writer at a time, `Journal`; everything else only reads.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec
from filelock import FileLock, Timeout

from numbench import jsonl
from numbench.errors import BadInput, NumbenchError
from numbench.jsonl import AppendOnlyFile
from numbench.records import ItemSample, ItemShard, Job, Response, RunInfo, Scalar
from numbench.sent_requests import SentRequests, lost_requests
from numbench.tasks.prompts import changed_prompts
from numbench.url_secrets import mask_secret_segments

INFO = "run.json"
RESPONSES = "responses.jsonl"
JOBS = "jobs.jsonl"
REQUESTS = "requests.jsonl"
LOCK = ".lock"
WRITER = ".writer"
UNFINISHED = ".unfinished"
"""The suffix of a folder in which a run is being assembled."""


class Run(NamedTuple):
    """A run as read from its folder.

    responses: at most one per item and sample, by `records.request_id`.
    """

    path: Path
    info: RunInfo
    responses: dict[str, Response]


def read_run(folder: Path) -> Run:
    """Return the run in `folder`, which another process may be writing.

    An incomplete last line is skipped. Raises BadInput if there is no run, or with file and line
    number if a line is broken.
    """
    if not (folder / INFO).is_file():
        raise BadInput(f"{folder}: no run here ({INFO} is missing)")
    responses: dict[str, Response] = {}
    for response in iter_responses(folder):
        _keep_best_response(responses, response)
    return Run(folder, jsonl.read_json(folder / INFO, RunInfo), responses)


def write_run(folder: Path, info: RunInfo, responses: Iterable[Response]) -> None:
    """Write a complete run: the responses, then `run.json`, each atomically.

    Raises BadInput if `folder` holds a measured run, whose responses would be lost.
    """
    with run_lock(folder):
        path = folder / INFO
        if path.is_file() and jsonl.read_json(path, RunInfo).source == "measured":
            raise BadInput(f"{folder} holds a measured run; choose another folder")
        lines = b"".join(jsonl.encode(response) for response in responses)
        jsonl.write_atomically(folder / RESPONSES, lines)
        jsonl.write_json(path, info)


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """Return the run folders at or below `paths`, sorted. Raises BadInput if a path has none."""
    runs: set[Path] = set()
    for path in paths:
        below = {file.parent for file in path.rglob(INFO) if file.parent.suffix != UNFINISHED}
        if not below:
            raise BadInput(f"{path}: no run here or below (no {INFO})")
        runs |= below
    return sorted(runs)


def iter_responses(folder: Path) -> Iterator[Response]:
    """Yield every response of the run in `folder`, including those that were replaced later.

    An incomplete last line is skipped. Raises BadInput for a broken line.
    """
    for _, response in iter_response_lines(folder):
        yield response


def iter_response_lines(folder: Path) -> Iterator[tuple[bytes, Response]]:
    """Yield the line of every response, newline included, with the response; see above."""
    try:
        yield from jsonl.read_lines_with_bytes(folder / RESPONSES, Response, append_only=True)
    except BadInput as error:
        raise BadInput(f"{error}; `numbench verify {folder} --repair` keeps the others") from error


def read_jobs(folder: Path) -> dict[str, Job]:
    """Return the batch jobs of the run in `folder` by key, in their last state, oldest first."""
    jobs: dict[str, Job] = {}
    for job in jsonl.read_lines(folder / JOBS, Job, append_only=True):
        items = job.items or (jobs[job.key].items if job.key in jobs else ())
        jobs[job.key] = msgspec.structs.replace(job, items=items)
    return jobs


def check_compatible(folder: Path, info: RunInfo) -> None:
    """Raise BadInput if `folder` holds a run that `info` cannot resume. Writes nothing."""
    if (folder / INFO).is_file():
        stored = jsonl.read_json(folder / INFO, RunInfo)
        _check_compatible(folder, stored, info)
        _merge_run_info(folder, stored, info)


_MAX_RESERVED_BYTES, _MIN_RESERVED_BYTES = 1 << 16, 1 << 12
"""Space to reserve for one response in flight, if the disk has plenty, and at least."""


class Journal:
    """The writer of a run folder, used as a context manager. info: the content of `run.json`."""

    def __init__(self, folder: Path, info: RunInfo, max_in_flight: int = 0) -> None:
        """Open or create the run in `folder`.

        max_in_flight: number of paid responses to reserve space for, so that they can be stored if
        the disk is full when they arrive. Paid requests are also logged when they are sent.

        An incomplete last line is repaired. Requests that a killed call left without a response are
        stored as possibly billed. Raises BadInput if another process writes the run, or
        if it differs from `info` in a setting that shapes an answer.
        """
        self.folder = folder
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._committing: asyncio.Task[None] | None = None
        self._lock = run_lock(folder)
        self._lock.__enter__()
        try:
            self.info = self._write_run_info(info)
            reserved = _reserved_bytes(folder, max_in_flight)
            self._file = AppendOnlyFile(folder / RESPONSES, Response, reserved)
            try:
                self.lost_attempts = self._store_lost_requests()
                self._sent = SentRequests(folder, self._file.size) if max_in_flight else None
            except BaseException:
                self._file.close()
                raise
        except OSError as error:
            self._lock.__exit__(None, None, None)
            raise _folder_error(folder, error, NumbenchError) from error
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def record_job(self, job: Job) -> None:
        """Return once the state of a batch job is on disk. Raises NumbenchError if that fails."""
        try:
            file = AppendOnlyFile(self.folder / JOBS, Job)
        except OSError as error:
            raise NumbenchError(f"{self.folder / JOBS}: {error.strerror}") from error
        try:
            file.append(jsonl.encode(job))
        finally:
            file.close()

    def record_sent(self, requested: ItemSample) -> None:
        """Log an attempt that is about to be sent. Raises NumbenchError if there is no space."""
        if self._sent is not None:
            self._sent.add(requested)

    def record_not_billed(self, requested: ItemSample) -> None:
        """Log that an attempt has ended without a cost. Raises NumbenchError like `record_sent`."""
        if self._sent is not None:
            self._sent.remove(requested)

    @property
    def path(self) -> Path:
        """The file of the responses."""
        return self._file.path

    @property
    def is_full(self) -> bool:
        """Whether the disk is full; responses still go to the space that was reserved."""
        return self._file.is_full

    @property
    def failed(self) -> bool:
        """Whether the disk has refused a response, so that no more can be stored."""
        return self._file.failed

    async def append(self, response: Response) -> None:
        """Return once `response` is on disk. Raises NumbenchError if writing fails.

        All lines that arrive during a sync share the next one.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((jsonl.encode(response), done))
        if self._committing is None:
            self._committing = asyncio.create_task(self._commit())
        await done

    def append_all(self, responses: Iterable[Response]) -> None:
        """Store `responses` before any `append`. Raises NumbenchError if writing fails."""
        if lines := b"".join(jsonl.encode(response) for response in responses):
            self._file.append(lines)

    def close(self) -> None:
        """Write the waiting lines, close the file and release the lock."""
        self._thread.shutdown(wait=True)
        try:
            if self._waiting and not self._file.failed:
                self._file.append(b"".join(line for line, _ in self._waiting))
        finally:
            if self._sent is not None:
                self._sent.close(is_settled=not self._file.failed)
            self._file.close()
            self._lock.__exit__(None, None, None)

    def _store_lost_requests(self) -> int:
        """Store the requests that a killed call left, and return the number of their attempts."""
        lost = lost_requests(self.folder, self.path)
        if lost:
            self._file.append(b"".join(map(jsonl.encode, lost)))
        return sum(response.attempts for response in lost)

    async def _commit(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting, []
            lines = b"".join(line for line, _ in batch)
            failure: NumbenchError | None = None
            try:
                await loop.run_in_executor(self._thread, self._file.append, lines)
            except NumbenchError as error:
                failure = error
            for _, done in batch:
                if done.done():
                    continue
                if failure is None:
                    done.set_result(None)
                else:
                    done.set_exception(failure)
        self._committing = None

    def _write_run_info(self, info: RunInfo) -> RunInfo:
        """Merge `info` with an existing `run.json`, write the result and return it."""
        path = self.folder / INFO
        if path.is_file():
            stored = jsonl.read_json(path, RunInfo)
            _check_compatible(self.folder, stored, info)
            info = _merge_run_info(self.folder, stored, info)
            if info == stored:
                return stored
        elif (self.folder / RESPONSES).exists():
            raise BadInput(
                f"{self.folder}: {RESPONSES} without {INFO}, so the model of these answers is "
                "unknown; choose another --out"
            )
        jsonl.write_json(path, info)
        return info


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a run folder. Raises BadInput if another process holds it."""
    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise _other_writer(folder) from error
    except OSError as error:
        raise _folder_error(folder, error, BadInput) from error
    # Not in the lock file itself: acquiring the lock may truncate it.
    writer = folder / WRITER
    try:
        try:
            writer.write_text(str(os.getpid()))
        except OSError as error:
            raise _folder_error(folder, error, NumbenchError) from error
        yield
    finally:
        writer.unlink(missing_ok=True)
        lock.release()


def _reserved_bytes(folder: Path, responses: int) -> int:
    """Return the bytes to reserve for some responses: at most half of the free space, if enough."""
    affordable = shutil.disk_usage(folder).free // 2
    most, least = responses * _MAX_RESERVED_BYTES, responses * _MIN_RESERVED_BYTES
    return max(least, min(most, affordable))


def _folder_error(folder: Path, error: OSError, kind: type[NumbenchError]) -> NumbenchError:
    """Return the error for a folder that cannot be opened: `kind`, NumbenchError if it is full."""
    if error.errno in jsonl.DISK_FULL:
        return NumbenchError(
            f"{folder}: {error.strerror}; make room and run the same command again"
        )
    return kind(f"{folder}: {error.strerror}")


def _writer_pid(folder: Path) -> str:
    try:
        return f"pid {(folder / WRITER).read_text().strip()}"
    except OSError:
        return "of unknown pid"


def _keep_best_response(responses: dict[str, Response], response: Response) -> None:
    """Store `response`, unless it is an error and the request has an answer."""
    previous = responses.get(response.request_id)
    if previous is None or previous.error is not None or response.error is None:
        responses[response.request_id] = response


_NOT_COMPARED = {"samples", "stream"}
"""Settings of a run that may change: neither shapes an answer."""


@contextmanager
def exclude_writers(folder: Path) -> Iterator[None]:
    """Keep other processes from writing an existing run. Raises BadInput if one does.

    Changes no file. A folder that was never locked, or that is read-only, has no writer.
    """
    lock = FileLock(folder / LOCK)
    try:
        if lock_exists := (folder / LOCK).exists():
            lock.acquire(timeout=0)
    except Timeout as error:
        raise _other_writer(folder) from error
    except OSError:
        lock_exists = False
    try:
        yield
    finally:
        if lock_exists:
            lock.release()


def _other_writer(folder: Path) -> BadInput:
    return BadInput(f"{folder}: another process ({_writer_pid(folder)}) is writing this run")


def _check_compatible(folder: Path, stored: RunInfo, info: RunInfo) -> None:
    """Raise BadInput if two descriptions differ in something that shapes an answer."""
    if difference := find_difference(stored, info, ("shard",)):
        field, before, now = difference
        raise BadInput(
            f"{folder} holds a run with {field} {before}, this one has {now}; choose another --out"
        )
    for task in changed_requests(stored, info):
        raise BadInput(
            f"{folder} holds a run with other requests for {task} (see requests.jsonl); "
            "choose another --out"
        )
    if changed := changed_prompts(stored.prompt, info.prompt):
        raise BadInput(
            f"{folder} holds a run with different prompts ({', '.join(changed)}); "
            "choose another --out"
        )


class Difference(NamedTuple):
    """What two descriptions of runs differ in."""

    field: str
    first: str
    second: str


def find_difference(
    stored: RunInfo, info: RunInfo, more_fields: Sequence[str] = ()
) -> Difference | None:
    """Return the first difference in something that shapes an answer, or in `more_fields`.

    Prompts are left out: see `changed_prompts`.
    """
    settings = msgspec.json.decode(msgspec.json.encode(info.settings))
    pairs: dict[str, tuple[object, object]] = {
        "source": (stored.source, info.source),
        "model": (stored.model, info.model),
        "reasoning": (stored.reasoning, info.reasoning),
        "dataset hash": (stored.dataset.sha256, info.dataset.sha256),
    }
    first_settings = dict(stored.settings)
    if isinstance(url := first_settings.get("base_url"), str):
        # Older versions wrote keys in paths as they are.
        first_settings["base_url"] = mask_secret_segments(url)
    for key in sorted((first_settings.keys() | settings.keys()) - _NOT_COMPARED):
        pairs[f"settings.{key}"] = (first_settings.get(key), settings.get(key))
    pairs |= {name: (getattr(stored, name), getattr(info, name)) for name in more_fields}
    for field, (first, second) in pairs.items():
        if first != second:
            return Difference(field, _shortened(first), _shortened(second))
    return None


def changed_requests(stored: RunInfo, info: RunInfo) -> list[str]:
    """Return the tasks that both runs contain and whose requests differ between them."""
    tasks = stored.requests.keys() & info.requests.keys()
    return sorted(task for task in tasks if stored.requests[task] != info.requests[task])


def _shortened(value: object) -> str:
    """Return the repr of a setting with hashes cut to 12 digits."""
    if isinstance(value, ItemShard):
        return str(value)
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1", repr(value))


def _merge_run_info(folder: Path, stored: RunInfo, info: RunInfo) -> RunInfo:
    """Return `info` with the tasks, the limit and the samples of both descriptions.

    A run has the same number of items for each of its tasks and of samples for each of its items,
    so that nothing is reported as missing that was never requested. Raises BadInput if the two
    descriptions do not allow that.
    """
    stored_tasks, new_tasks = set(stored.tasks), set(info.tasks)
    new_limit, stored_limit = _limit_as_float(info.limit), _limit_as_float(stored.limit)
    stored_size, new_size = (stored_limit, stored.samples), (new_limit, info.samples)
    includes_stored = stored_tasks <= new_tasks and _is_at_most(stored_size, new_size)
    is_included = new_tasks <= stored_tasks and _is_at_most(new_size, stored_size)
    if not includes_stored and not is_included and new_size != stored_size:
        options = "--limit" if stored.samples == info.samples else "--limit and --samples"
        raise BadInput(
            f"{folder} holds {_describe_size(stored)}, this run has {_describe_size(info)}; give "
            f"the same {options}, or choose another --out"
        )
    tasks = stored.tasks + tuple(task for task in info.tasks if task not in stored_tasks)
    samples = max(stored.samples, info.samples)
    settings = info.settings | ({"samples": samples} if samples > 1 else {})
    settings |= merged_stream(stored, info)
    return msgspec.structs.replace(
        info,
        tasks=tasks,
        settings=settings,
        prompt=msgspec.structs.replace(info.prompt, tasks=stored.prompt.tasks | info.prompt.tasks),
        requests=stored.requests | info.requests,
        limit=info.limit if new_limit >= stored_limit else stored.limit,
        versions=merge_versions(stored, info),
        created=stored.created,
    )


def merged_stream(first: RunInfo, second: RunInfo) -> dict[str, Scalar]:
    """Return the setting `stream` of two runs together, if they differ in it."""
    differs = first.settings.get("stream") != second.settings.get("stream")
    return {"stream": "mixed"} if differs else {}


def merge_versions(earlier: RunInfo, later: RunInfo) -> dict[str, str]:
    """Return the versions of both runs by name; if they differ, `EARLIER, LATER`."""
    versions = dict(later.versions)
    for name, version in earlier.versions.items():
        latest = versions.get(name, version)
        versions[name] = version if latest in version.split(", ") else f"{version}, {latest}"
    return versions


def _is_at_most(size: tuple[float, int], other: tuple[float, int]) -> bool:
    """Return whether a run with one limit and number of samples is part of one with the other."""
    return size[0] <= other[0] and size[1] <= other[1]


def _describe_size(info: RunInfo) -> str:
    samples = f" and {info.samples} samples" if info.samples > 1 else ""
    return f"tasks {','.join(info.tasks)} with limit {info.limit}{samples}"


def _limit_as_float(limit: int | None) -> float:
    return float("inf") if limit is None else limit
