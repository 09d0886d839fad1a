"""The metrics log of a training: one JSON object a line, all figures and plots come from it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from bench.errors import BadInput, NumbenchError
from bench.jsonl import encode, read_lines, write_atomically

FILE = "metrics.jsonl"
Line: TypeAlias = dict[str, Any]


def read(folder: Path) -> list[Line]:
    """The lines of the log in `folder`. BadInput where there is none or a line is broken."""
    path = folder / FILE
    if not path.is_file():
        raise BadInput(f"{folder}: no training here ({FILE} is missing)")
    return list(read_lines(path, dict[str, Any], growing=True))


def measures(lines: list[Line]) -> list[Line]:
    """The lines that hold a validation."""
    return [line for line in lines if "tasks" in line]


def best(lines: list[Line]) -> Line | None:
    """The validation whose weights are the checkpoint: of the best ones the last; None of none."""
    by_mean = sorted(measures(lines), key=lambda line: line["harmonic_mean"] or 0.0)
    return by_mean[-1] if by_mean else None


class MetricsLog:
    """The open log of a running training."""

    def __init__(self, folder: Path, step: int) -> None:
        """Open it behind its last line of `step` or before: what came later is done again."""
        self._path = folder / FILE
        old = list(read_lines(self._path, msgspec.Raw, growing=True))
        kept = [line for line in old if msgspec.json.decode(line)["step"] <= step]
        write_atomically(self._path, b"".join(bytes(line) + b"\n" for line in kept))
        self._file = self._path.open("ab")

    def write(self, line: Line) -> None:
        """Append a line, on disk before this returns. NumbenchError where the disk refuses it."""
        try:
            self._file.write(encode(line))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise NumbenchError(
                f"{self._path}: {error.strerror}; make room and run the same command again"
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()
