"""Typed reading and writing of JSON and JSONL files, and atomic writing of any file.

Errors name file, line and field.
"""

from __future__ import annotations

import codecs
import errno
import mmap
import os
import re
import sys
import tempfile
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from io import BufferedReader
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, TypeVar, overload

import msgspec

from numbench.errors import BadInput, NumbenchError, bad_input_at, printable

if sys.platform != "win32":
    import fcntl

T = TypeVar("T")


_RANDOM_READ_BYTES = 1 << 16
"""The lines of one task are that close to each other in most files."""


def encode(record: object) -> bytes:
    """Return one record as a JSON line, newline included."""
    return msgspec.json.encode(record) + b"\n"


def read_lines(path: Path, kind: type[T], append_only: bool = False) -> Iterator[T]:
    """Yield the records of a JSONL file in order.

    append_only: the file is being appended to, so it may not exist yet, and an incomplete last
    line is skipped. Raises BadInput with file, line and field if a line is not a `kind`.
    """
    for _, record in read_lines_with_bytes(path, kind, append_only):
        yield record


def read_lines_with_bytes(
    path: Path, kind: type[T], append_only: bool = False
) -> Iterator[tuple[bytes, T]]:
    """Yield each line of a JSONL file, newline included, with its record; see `read_lines`."""
    if append_only and not path.exists():
        return
    decoder = msgspec.json.Decoder(kind)
    with open_for_reading(path) as file:
        for number, line in enumerate(file, 1):
            try:
                record = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if append_only and not line.endswith(b"\n"):
                    return
                raise BadInput(f"{path}, line {number}: {decode_error_message(error)}") from error
            yield line if line.endswith(b"\n") else line + b"\n", record


def read_at(path: Path, kind: type[T], offsets: Iterable[int]) -> Iterator[tuple[int, T]]:
    """Yield the record of the line at each of some offsets in bytes, after its offset."""
    decoder = msgspec.json.Decoder(kind)
    with BufferedReader(open_for_reading(path).detach(), _RANDOM_READ_BYTES) as file:
        for offset in offsets:
            file.seek(offset)
            try:
                yield offset, decoder.decode(file.readline())
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                message = decode_error_message(error)
                raise BadInput(f"{path}, line at byte {offset}: {message}") from error


class StoredRecords(Sequence[T]):
    """The records of JSONL files, one file after the other. Each is read when it is asked for."""

    def __init__(self, paths: Sequence[Path], kind: type[T]) -> None:
        """Find the lines of the files. Raises BadInput if one cannot be read."""
        self._paths, self._kind = paths, kind
        self._offsets, self._ends = array("q"), []
        for path in paths:
            offset = 0
            with open_for_reading(path) as file:
                for line in file:
                    self._offsets.append(offset)
                    offset += len(line)
            self._ends.append(len(self._offsets))
        self._indices: Sequence[int] = range(len(self._offsets))

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> StoredRecords[T]: ...
    def __getitem__(self, index: int | slice) -> T | StoredRecords[T]:
        if isinstance(index, int):
            return next(self.read([range(len(self))[index]]))
        part = copy(self)
        part._indices = self._indices[index]
        return part

    def __iter__(self) -> Iterator[T]:
        return self.read(range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def read(self, indices: Iterable[int]) -> Iterator[T]:
        """Yield the records at some indices, in their order."""
        lines = (self._indices[index] for index in indices)
        for file, of_file in groupby(lines, partial(bisect_right, self._ends)):
            offsets = map(self._offsets.__getitem__, of_file)
            for _, record in read_at(self._paths[file], self._kind, offsets):
                yield record


def read_json(path: Path, kind: type[T]) -> T:
    """Return the record in a JSON file. Raises BadInput with file and field for another content."""
    with open_for_reading(path) as file:
        try:
            content = file.read().removeprefix(codecs.BOM_UTF8)
            return msgspec.json.decode(content, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{path}: {decode_error_message(error)}") from error


def write_json(path: Path, record: object) -> None:
    """Write one record as indented JSON, atomically."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")


def write_atomically(path: Path, data: bytes | Iterable[bytes], mode: int = 0o644) -> None:
    """Write `data`, or its parts, to a file; see `atomic_file`."""
    with atomic_file(path, mode) as file:
        file.writelines((data,) if isinstance(data, bytes) else data)


@contextmanager
def atomic_file(path: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """Yield a temporary file in the same folder, which is synced and renamed at the end.

    Synced too is the folder, so that the new file survives a power cut.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            # A full disk names no file.
            error.filename = str(path)
        raise
    sync_folder(path.parent)


def open_for_reading(path: Path) -> BufferedReader:
    """Return `open(path, 'rb')`. Raises BadInput if the file is missing or unreadable."""
    with bad_input_at(path, OSError):
        return open(path, "rb")


_TYPE_NAMES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
}


def decode_error_message(error: Exception) -> str:
    """Return a decoding error of msgspec in plain words: the field and what is wrong with it.

    >>> decode_error_message(msgspec.ValidationError("Expected `str`, got `int` - at `$.id`"))
    'field id: expected text, got a whole number'
    """
    if not isinstance(error, msgspec.ValidationError):
        if isinstance(error, UnicodeDecodeError):
            return "not UTF-8 text"
        reason = str(error).removeprefix("JSON is malformed: ")
        return f"not valid JSON ({reason[:1].lower()}{reason[1:]})"
    message, _, location = str(error).partition(" - at ")
    field = location.rpartition("`$")[2].strip("`.")
    if field.rpartition(".")[2] == "schema" and "<=" in message:
        return "written by a newer version of numbench; update numbench to read it"
    if match := re.fullmatch(r"Object missing required field `(.*)`", message):
        return f"field {field}{'.' if field else ''}{match[1]} is missing"
    if match := re.fullmatch(r"Invalid enum value (.*)", message):
        message = f"unknown value {match[1]}"
    else:
        message = re.sub(r"`([^`]*)`", lambda match: _describe_type(match[1]), message)
        message = message[:1].lower() + message[1:]
    return f"field {field}: {message}" if field else message


def _describe_type(names: str) -> str:
    return " or ".join(_TYPE_NAMES.get(name, name) for name in names.split(" | "))


def check_output_folder(out: Path, *own: str) -> None:
    """Raise BadInput unless a command may write to the folder `out`.

    It or a folder above it may be a file. With `own`, the names of what the command writes, the
    folder may have other files only beside one of these; hidden files do not count.
    """
    for path in (out, *out.parents):
        if path.exists() and not path.is_dir():
            raise BadInput(f"{path} is a file; --out names a folder")
    if not own or not out.is_dir() or any((out / name).exists() for name in own):
        return
    if other := next((path for path in out.iterdir() if not path.name.startswith(".")), None):
        name = printable(other.name)
        raise BadInput(f"{out} holds other files ({name}); choose another --out")


DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""The errors of a disk, or of a user's share of it, without space."""


class AppendOnlyFile:
    """An open file of `size` bytes, to which this process alone appends whole lines."""

    def __init__(self, path: Path, kind: type[object]) -> None:
        """Open or create `path`, a JSONL file of `kind`, and repair an incomplete last line.

        Raises OSError if the file cannot be opened, BlockingIOError if another process writes it.
        """
        self.path, self._kind = path, kind
        self._failure: NumbenchError | None = None
        self._file, self.size = self._open()

    def _open(self) -> tuple[int, int]:
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _lock(file)
            sync_folder(self.path.parent)
            return file, _repair_last_line(file, self._kind)
        except BaseException:
            os.close(file)
            raise

    def append(self, lines: bytes) -> None:
        """Append and sync `lines`.

        Raises NumbenchError if the disk refuses them; the file is then cut back to its size
        before, and every later call raises the same error.
        """
        if self._failure is not None:
            raise self._failure
        reason, cause = "", None
        if os.fstat(self._file).st_size < self.size:
            reason = "another program shortened the file; run the same command again"
        try:
            self._write(lines)
            if not self._is_at_path():
                self._continue_at_path()
        except OSError as error:
            # If the file cannot be cut back, the next opening repairs its last line.
            with suppress(OSError):
                os.ftruncate(self._file, self.size)
            room = "make room and " if error.errno in DISK_FULL else ""
            way = f"all earlier lines are saved: {room}run the same command again"
            reason, cause = f"{error.strerror}; {way}", error
        if reason:
            self._failure = NumbenchError(f"{self.path}: {reason}")
            raise self._failure from cause

    def _write(self, lines: bytes) -> None:
        unwritten = memoryview(lines)
        while unwritten:
            unwritten = unwritten[os.write(self._file, unwritten) :]
        os.fsync(self._file)
        self.size += len(lines)

    def _is_at_path(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), self.path.stat())
        except FileNotFoundError:
            return False

    def _continue_at_path(self) -> None:
        """Add to the file that is at `path` now the lines that it lacks, and append to it."""
        replaced = self._file
        self._file, self.size = self._open()
        with os.fdopen(replaced, "rb") as old, self.path.open("rb") as new:
            old.seek(0)
            known = set(new)
            self._write(b"".join(line for line in old if line not in known))

    @property
    def failed(self) -> bool:
        """Whether an append has failed, so that all later ones fail too."""
        return self._failure is not None

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def is_being_written(path: Path) -> bool:
    """Return whether another process has `path` open as an `AppendOnlyFile`."""
    try:
        with path.open("rb") as file:
            _lock(file.fileno())
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def _lock(file: int) -> None:
    """Lock an open file until it is closed. Raises BlockingIOError if another process has it."""
    if sys.platform != "win32":
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # Of the others, the file system has no locks.
            if isinstance(error, BlockingIOError):
                raise


def _repair_last_line(file: int, kind: type[object]) -> int:
    """Complete or remove the last line of an open file if it has no newline; return the file size.

    Only an interrupted write leaves such a line. A JSON object can be decoded only if it is
    complete, so a line that can be decoded lacks only its newline.
    """
    size = os.fstat(file).st_size
    if size == 0:
        return 0
    with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as content:
        end = content.rfind(b"\n") + 1
        line = content[end:]
    if not line:
        return size
    try:
        msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        os.ftruncate(file, end)
        size = end
    else:
        os.write(file, b"\n")
        size += 1
    os.fsync(file)
    return size


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that a new file in it survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
