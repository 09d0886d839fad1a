"""A run folder: `run.json` and the append-only `responses.jsonl`.

A response is on disk before its item counts as done, so a run that was killed goes on where it
stopped. A live run folder has one writer, `Journal`; everything else only reads.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec
from filelock import FileLock, Timeout

from bench import jsonl
from bench.append_only import AppendOnly
from bench.errors import BadInput, NumbenchError
from bench.records import Job, Response, RunInfo

INFO = "run.json"
RESPONSES = "responses.jsonl"
JOBS = "jobs.jsonl"
LOCK = ".lock"
WRITER = ".writer"


class Run(NamedTuple):
    """A run as read from its folder: one response per item that has one."""

    path: Path
    info: RunInfo
    responses: dict[str, Response]


def read_run(folder: Path) -> Run:
    """The run in `folder`, also while another process writes it.

    A fragment at the end that lacks its newline is not yet a response and is left out.
    BadInput where there is no run, or for a broken line, with file and line number.
    """
    if not (folder / INFO).is_file():
        raise BadInput(f"{folder}: no run here ({INFO} is missing)")
    responses: dict[str, Response] = {}
    for response in read_lines(folder):
        _keep(responses, response)
    return Run(folder, jsonl.read_json(folder / INFO, RunInfo), responses)


def write_run(folder: Path, info: RunInfo, responses: Iterable[Response]) -> None:
    """Write a whole run at once: the responses first, `run.json` last, each atomically.

    BadInput where `folder` already holds a measured run, whose responses would be lost.
    """
    with _locked(folder):
        present = folder / INFO
        if present.is_file() and jsonl.read_json(present, RunInfo).source == "measured":
            raise BadInput(f"{folder} holds a measured run; choose another folder")
        lines = b"".join(jsonl.encode(response) for response in responses)
        jsonl.write_atomically(folder / RESPONSES, lines)
        jsonl.write_json(present, info)


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """The run folders at or below `paths`, sorted. BadInput for a path that holds none."""
    found: set[Path] = set()
    for path in paths:
        below = {file.parent for file in path.rglob(INFO)}
        if not below:
            raise BadInput(f"{path}: no run here or below (no {INFO})")
        found |= below
    return sorted(found)


def read_lines(folder: Path) -> Iterator[Response]:
    """Every response that the run in `folder` holds, line by line, also those since replaced.

    Nothing is kept in memory. A fragment at the end is left out; BadInput for a broken line.
    """
    return jsonl.read_lines(folder / RESPONSES, Response, growing=True)


def read_jobs(folder: Path) -> dict[str, Job]:
    """The batch jobs of the run in `folder` by their key, each in its last state, oldest first."""
    jobs: dict[str, Job] = {}
    for job in jsonl.read_lines(folder / JOBS, Job, growing=True):
        items = job.items or (jobs[job.key].items if job.key in jobs else ())
        jobs[job.key] = msgspec.structs.replace(job, items=items)
    return jobs


def check_same(folder: Path, info: RunInfo) -> None:
    """BadInput where `folder` holds a run that `info` does not go on with. Nothing is written."""
    if (folder / INFO).is_file():
        present = jsonl.read_json(folder / INFO, RunInfo)
        _check_same(folder, present, info)
        _grow(folder, present, info)


class Journal:
    """The only writer of a live run folder. Use it as a context manager.

    `info` is what `run.json` now says.
    """

    def __init__(self, folder: Path, info: RunInfo) -> None:
        """Open or create the run in `folder`.

        BadInput where another process writes it, or where it disagrees with `info` in anything
        that shapes an answer. A torn last line is repaired.
        """
        self.folder = folder
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._committing: asyncio.Task[None] | None = None
        self._lock = _locked(folder)
        self._lock.__enter__()
        try:
            self.info = self._agree(info)
            self._file = AppendOnly(folder / RESPONSES, Response)
        except OSError as error:
            self._lock.__exit__(None, None, None)
            raise _refused(folder, error, NumbenchError) from error
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

    def note_job(self, job: Job) -> None:
        """Return once the state of a batch job is on disk. NumbenchError where it cannot be."""
        try:
            file = AppendOnly(self.folder / JOBS, Job)
        except OSError as error:
            raise NumbenchError(f"{self.folder / JOBS}: {error.strerror}") from error
        try:
            file.append(jsonl.encode(job))
        finally:
            file.close()

    async def append(self, response: Response) -> None:
        """Return once `response` is on disk. NumbenchError where the disk refuses it.

        All lines that wait while a sync is under way share the next one.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((jsonl.encode(response), done))
        if self._committing is None:
            self._committing = asyncio.create_task(self._commit())
        await done

    def close(self) -> None:
        """Write what still waits, close the file and give the lock back."""
        self._thread.shutdown(wait=True)
        try:
            if self._waiting and not self._file.failed:
                self._file.append(b"".join(line for line, _ in self._waiting))
        finally:
            self._file.close()
            self._lock.__exit__(None, None, None)

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

    def _agree(self, info: RunInfo) -> RunInfo:
        """`info` merged with an existing `run.json`, which then says so."""
        path = self.folder / INFO
        if path.is_file():
            present = jsonl.read_json(path, RunInfo)
            _check_same(self.folder, present, info)
            info = _grow(self.folder, present, info)
            if info == present:
                return present
        elif (self.folder / RESPONSES).exists():
            raise BadInput(
                f"{self.folder}: {RESPONSES} without {INFO}, so nobody knows whose answers these "
                "are; choose another --out"
            )
        jsonl.write_json(path, info)
        return info


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the run folder's lock. BadInput where another process does, or none can."""
    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        who = _writer(folder)
        raise BadInput(f"{folder}: another process ({who}) is writing this run") from error
    except OSError as error:
        raise _refused(folder, error, BadInput) from error
    # Beside the lock, not inside: acquiring the lock may truncate its file.
    writer = folder / WRITER
    try:
        try:
            writer.write_text(str(os.getpid()))
        except OSError as error:
            raise _refused(folder, error, NumbenchError) from error
        yield
    finally:
        writer.unlink(missing_ok=True)
        lock.release()


def _refused(folder: Path, error: OSError, kind: type[NumbenchError]) -> NumbenchError:
    """What to say where `folder` cannot be opened: of `kind`, but a full disk is no wrong use."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NumbenchError(
            f"{folder}: {error.strerror}; make room and run the same command again"
        )
    return kind(f"{folder}: {error.strerror}")


def _writer(folder: Path) -> str:
    try:
        return f"pid {(folder / WRITER).read_text().strip()}"
    except OSError:
        return "of unknown pid"


def _keep(responses: dict[str, Response], response: Response) -> None:
    """Take `response`, unless it is an error and there is an answer already."""
    present = responses.get(response.item_id)
    if present is None or present.error is not None or response.error is None:
        responses[response.item_id] = response


def _check_same(folder: Path, present: RunInfo, info: RunInfo) -> None:
    """BadInput where two descriptions differ in what shapes an answer."""
    settings = msgspec.json.decode(msgspec.json.encode(info.settings))
    pairs: dict[str, tuple[object, object]] = {
        "source": (present.source, info.source),
        "model": (present.model, info.model),
        "reasoning": (present.reasoning, info.reasoning),
        "dataset hash": (present.dataset.sha256, info.dataset.sha256),
        "prompt hash": (present.prompt.sha256, info.prompt.sha256),
    }
    for key in sorted(present.settings.keys() | settings.keys()):
        pairs[f"settings.{key}"] = (present.settings.get(key), settings.get(key))
    for field, (there, here) in pairs.items():
        if there != here:
            raise BadInput(
                f"{folder} holds a run with {field} {there!r}, this one has {here!r}; "
                "choose another --out"
            )


def _grow(folder: Path, present: RunInfo, info: RunInfo) -> RunInfo:
    """`info` over the tasks and the limit of both descriptions.

    A run promises the same number of items of each of its tasks, so that none of them is
    reported as missing merely because nobody asked for it.
    """
    old, new = set(present.tasks), set(info.tasks)
    here, there = _rank(info.limit), _rank(present.limit)
    nested = (old <= new and there <= here) or (new <= old and here <= there)
    if not nested and here != there:
        raise BadInput(
            f"{folder} holds tasks {','.join(present.tasks)} with limit {present.limit}, this run "
            f"asks {','.join(info.tasks)} with limit {info.limit}; give the same --limit, "
            "or choose another --out"
        )
    tasks = present.tasks + tuple(task for task in info.tasks if task not in old)
    versions = dict(info.versions)
    for name, version in present.versions.items():
        seen = version.split(", ")
        latest = versions.get(name, version)
        versions[name] = version if latest in seen else f"{version}, {latest}"
    return msgspec.structs.replace(
        info,
        tasks=tasks,
        limit=info.limit if here >= there else present.limit,
        versions=versions,
        created=present.created,
    )


def _rank(limit: int | None) -> float:
    return float("inf") if limit is None else limit
