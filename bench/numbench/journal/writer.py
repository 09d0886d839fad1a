"""The writer of a run folder, whose `responses.jsonl` only grows.

A response is on disk before its item counts as done, so an interrupted run can be resumed.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path

from numbench.core import jsonl
from numbench.core.jsonl import AppendOnlyFile
from numbench.errors import NumbenchError
from numbench.journal.run_folder import (
    INFO,
    JOBS,
    RESPONSES,
    ROUNDS,
    SENT,
    SentLine,
    folder_error,
    lost_requests,
    resumed_info,
    run_lock,
    timestamp,
)
from numbench.records import ItemSample, Job, Response, Round, RunInfo

_RESPONSE_BYTES = 1 << 16
"""Disk space that has to be free for one response in flight."""


class Journal(AbstractContextManager["Journal"]):
    """The writer of a run folder, used as a context manager."""

    def __init__(self, folder: Path, info: RunInfo, max_in_flight: int = 0) -> None:
        """Open or create the run in `folder`.

        max_in_flight: number of paid responses for which the disk needs space. Paid requests are
        also logged when they are sent.

        An incomplete last line is repaired. Requests that a killed call left without a response are
        stored as possibly billed. Raises BadInput if another process writes the run, or
        if it differs from `info` in a setting that shapes an answer.
        """
        self.folder = folder
        self._is_new = not os.path.lexists(folder)
        self._is_discarded = False
        self._waiting: list[bytes] = []
        self._appended = self._synced = 0
        self._sync = asyncio.Lock()
        self._needed_bytes = max_in_flight * _RESPONSE_BYTES
        with ExitStack() as stack:
            stack.enter_context(run_lock(folder))
            stack.callback(self._discard)
            try:
                jsonl.write_json(folder / INFO, resumed_info(folder, info))
                if self.is_full:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                self._file = AppendOnlyFile(folder / RESPONSES, Response)
                stack.callback(self._file.close)
                lost = lost_requests(folder)
                if lost:
                    self._file.append(b"".join(map(jsonl.encode, lost)))
                self.lost_attempts = sum(response.attempts for response in lost)
                self._sent = self._open_sent() if max_in_flight else None
            except OSError as error:
                raise folder_error(folder, error) from error
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")
            self._stack = stack.pop_all()

    def __exit__(self, *_: object) -> None:
        self.close()

    def record(self, record: Job | Round) -> None:
        """Return once the state of a batch job, or a round of a measurement, is on disk.

        Raises NumbenchError if that fails.
        """
        name = JOBS if isinstance(record, Job) else ROUNDS
        try:
            with closing(AppendOnlyFile(self.folder / name, type(record))) as file:
                file.append(jsonl.encode(record))
        except OSError as error:
            raise NumbenchError(f"{self.folder / name}: {error.strerror}") from error

    def record_unbilled(self, requested: ItemSample) -> None:
        """Log that an attempt has ended and is not billed."""
        self.record_sent(requested, change=-1)

    def record_sent(self, requested: ItemSample, *, change: int = 1) -> None:
        """Log an attempt that is about to be sent.

        A line costs one system call and no sync: the log survives the process, but not always a
        power cut. Raises NumbenchError if there is no space.
        """
        if self._sent is None:
            return
        line = SentLine(requested.item.id, requested.sample, len(requested.turns), change)
        try:
            os.write(self._sent, jsonl.encode(line))
        except OSError as error:
            raise NumbenchError(
                f"{self.folder / SENT}: {error.strerror}; all answers are saved: make room and run "
                "the same command again"
            ) from error

    @property
    def path(self) -> Path:
        """The file of the responses."""
        return self._file.path

    @property
    def is_full(self) -> bool:
        """Whether the disk lacks space for the responses in flight."""
        return shutil.disk_usage(self.folder).free < self._needed_bytes

    @property
    def failed(self) -> bool:
        """Whether the disk has refused a response, so that no more can be stored."""
        return self._file.failed

    @property
    def is_empty(self) -> bool:
        """Whether the run has no response yet, not even a failed one."""
        return not self._file.size and not self._waiting

    def discard_if_empty(self) -> None:
        """Remove the folder when the journal is closed, if this call created it for nothing.

        It is kept if it holds any response, job or round: those may have been paid for.
        """
        self._is_discarded = True

    async def append(self, response: Response) -> None:
        """Return once `response` is on disk. Raises NumbenchError if writing fails.

        All lines that arrive during a sync share the next one.
        """
        self._waiting.append(jsonl.encode(response))
        self._appended += 1
        number = self._appended
        async with self._sync:
            if self._synced < number:
                lines, last, self._waiting = b"".join(self._waiting), self._appended, []
                loop = asyncio.get_running_loop()
                # It ends even if this task is cancelled. Those that wait then append nothing more,
                # and learn in the same thread whether it failed.
                await asyncio.shield(loop.run_in_executor(self._thread, self._file.append, lines))
                self._synced = last

    def close(self) -> None:
        """Write the waiting lines, close the file and release the lock."""
        with self._stack:
            self._thread.shutdown(wait=True)
            try:
                if self._waiting and not self.failed:
                    self._file.append(b"".join(self._waiting))
            finally:
                if self._sent is not None:
                    os.close(self._sent)
                    if not self.failed:
                        (self.folder / SENT).unlink(missing_ok=True)

    def _discard(self) -> None:
        """Remove the folder if that was asked for. No other process writes here yet."""
        # Requests stay in their log if the disk could not settle them.
        has_records = any((self.folder / name).exists() for name in (JOBS, ROUNDS, SENT))
        if self._is_discarded and self._is_new and self.is_empty and not has_records:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _open_sent(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        log = os.open(self.folder / SENT, flags, 0o644)
        os.write(log, jsonl.encode(SentLine(responses_bytes=self._file.size, at=timestamp())))
        return log
