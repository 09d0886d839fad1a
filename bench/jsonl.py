"""Reading and writing of record files: typed, atomic, and exact about where a fault lies."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

import msgspec

from bench.errors import BadInput

T = TypeVar("T")


def encode(record: object) -> bytes:
    """One record as a JSON line, newline included."""
    return msgspec.json.encode(record) + b"\n"


def read_lines(path: Path, kind: type[T], growing: bool = False) -> Iterator[T]:
    """The records of a JSONL file, in order. BadInput names file, line and field.

    growing: it is append-only, so it may not be there yet, and its last line may lack its end:
    that fragment is left out.
    """
    if growing and not path.exists():
        return
    decoder = msgspec.json.Decoder(kind)
    with open_for_reading(path) as file:
        for number, line in enumerate(file, 1):
            try:
                record = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if growing and not line.endswith(b"\n"):
                    return
                raise BadInput(f"{path}, line {number}: {_reason(error)}") from error
            yield record


def read_json(path: Path, kind: type[T]) -> T:
    """One record from a JSON file. BadInput names file and field."""
    with open_for_reading(path) as file:
        try:
            return msgspec.json.decode(file.read(), type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{path}: {_reason(error)}") from error


def write_json(path: Path, record: object) -> None:
    """Write one record as indented JSON, atomically."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to a temporary neighbour, sync it, rename it to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def open_for_reading(path: Path) -> BufferedReader:
    """`open(path, 'rb')`, with a missing or unreadable file as BadInput."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def _reason(error: Exception) -> str:
    said = str(error)
    return said if said[:2].isupper() else said[:1].lower() + said[1:]
