"""The log of the requests that a run has sent, for what a killed process leaves in flight."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from numbench import jsonl
from numbench.errors import NumbenchError
from numbench.records import POSSIBLY_BILLED, Failure, ItemSample, Response, request_id

SENT = ".sent-requests.jsonl"

T = TypeVar("T")


class _Line(Struct, frozen=True, omit_defaults=True):
    """One line: in the first, the size of `responses.jsonl` when the call began.

    change: 1 if an attempt is sent, -1 if one has ended and is not billed.
    """

    item_id: str = ""
    sample: int = 0
    change: int = 0
    responses_bytes: int = 0


class SentRequests:
    """The log of one call, deleted at its end. A line costs one system call, and no sync.

    So it survives the process, but not always a power cut.
    """

    def __init__(self, folder: Path, responses_bytes: int) -> None:
        """Start the log. Raises OSError if there is no space."""
        self._path = folder / SENT
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        self._file = os.open(self._path, flags, 0o644)
        os.write(self._file, jsonl.encode(_Line(responses_bytes=responses_bytes)))

    def add(self, requested: ItemSample, change: int) -> None:
        """Record a change of the attempts in flight. Raises NumbenchError if there is no space."""
        try:
            os.write(self._file, jsonl.encode(_Line(requested.item.id, requested.sample, change)))
        except OSError as error:
            raise NumbenchError(
                f"{self._path}: {error.strerror}; all answers are saved: make room and run the "
                "same command again"
            ) from error

    def close(self, is_settled: bool) -> None:
        """Close the log, and delete it if every request in it has a response or cost nothing."""
        os.close(self._file)
        if is_settled:
            self._path.unlink(missing_ok=True)


def lost_requests(folder: Path, responses: Path) -> list[Response]:
    """Return a response for each request that a killed call left without one.

    It counts the attempts that may have been billed. `responses`: the file of the responses.
    """
    start, counts = 0, Counter[tuple[str, int]]()
    for line in _read(folder / SENT, _Line):
        start += line.responses_bytes
        counts[line.item_id, line.sample] += line.change
    lost = {
        request_id(item_id, sample): Response(
            item_id=item_id,
            sample=sample,
            attempts=attempts,
            at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            error=Failure(
                kind="transient",
                message="the process was killed before the answer arrived",
                possibly_billed=True,
            ),
            extra={POSSIBLY_BILLED: attempts},
        )
        for (item_id, sample), attempts in counts.items()
        if attempts > 0
    }
    for response in _read(responses, Response, start) if lost else ():
        lost.pop(response.request_id, None)
    return list(lost.values())


def _read(path: Path, kind: type[T], start: int = 0) -> Iterator[T]:
    """Yield the records from an offset that can be read; all if the file was rewritten since."""
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(max(0, start - 1))
        if start and file.read(1) != b"\n":
            file.seek(0)
        for line in file:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                yield msgspec.json.decode(line, type=kind)
