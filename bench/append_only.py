"""A file of JSON lines that only grows: each line on disk before it counts, a torn one repaired."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from bench.errors import NumbenchError

_PIECE = 1 << 16


class AppendOnly:
    """An open file to which whole lines are appended."""

    def __init__(self, path: Path, kind: type[object]) -> None:
        """Open or create `path`, whose lines are records of `kind`; a torn last line is repaired.

        OSError where that cannot be.
        """
        self.path = path
        self._failure: NumbenchError | None = None
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _sync_folder(path.parent)
            self._size = _repair(self._file, kind)
        except BaseException:
            os.close(self._file)
            raise

    def append(self, lines: bytes) -> None:
        """Append and sync `lines`; on failure cut the file back and refuse all that follows.

        NumbenchError where the disk refuses them.
        """
        if self._failure is not None:
            raise self._failure
        left = memoryview(lines)
        try:
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except OSError as error:
            # What cannot be cut back is a torn line, which the next opening repairs.
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            self._failure = NumbenchError(
                f"{self.path}: {error.strerror}; all earlier lines are kept: "
                "make room and run the same command again"
            )
            raise self._failure from error
        self._size += len(lines)

    @property
    def failed(self) -> bool:
        """Whether the disk has refused a line, and all others are refused since."""
        return self._failure is not None

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _repair(file: int, kind: type[object]) -> int:
    """End the open file with a whole line; return its size in bytes.

    Only a write that was cut off leaves a last line without newline. A JSON object is decodable
    only when whole, so a line that decodes lacks nothing but the newline.
    """
    size = os.fstat(file).st_size
    end = _end_of_last_line(file, size)
    if end == size:
        return size
    try:
        msgspec.json.decode(_piece(file, end, size), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        os.ftruncate(file, end)
        size = end
    else:
        os.write(file, b"\n")
        size += 1
    os.fsync(file)
    return size


def _end_of_last_line(file: int, size: int) -> int:
    """The place behind the last newline of an open file of `size` bytes, 0 where it has none."""
    end = size
    while end > 0:
        start = max(0, end - _PIECE)
        found = _piece(file, start, end).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _piece(file: int, start: int, end: int) -> bytes:
    """The bytes of an open file from `start` to `end`."""
    parts = []
    while start < end and (part := os.pread(file, end - start, start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _sync_folder(folder: Path) -> None:
    """Make the folder's entries survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
