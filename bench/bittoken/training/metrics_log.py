"""The metrics log of a training (JSON Lines), the source of its tables and figures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from numbench.errors import BadInput, NumbenchError
from numbench.jsonl import encode, read_lines, write_atomically

METRICS_FILE = "metrics.jsonl"
LogEntry: TypeAlias = dict[str, Any]


def read_log(folder: Path) -> list[LogEntry]:
    """Return the entries of the log in `folder`. Raises BadInput if it is missing or damaged."""
    path = folder / METRICS_FILE
    if not path.is_file():
        raise BadInput(f"{folder}: no training in this folder ({METRICS_FILE} is missing)")
    return list(read_lines(path, dict[str, Any], append_only=True))


def validation_entries(entries: list[LogEntry]) -> list[LogEntry]:
    """Return the entries of validations."""
    return [entry for entry in entries if "tasks" in entry]


def best_validation(entries: list[LogEntry]) -> LogEntry | None:
    """Return the validation whose weights are the checkpoint: the last one with the best mean."""
    by_mean = sorted(validation_entries(entries), key=lambda entry: entry["harmonic_mean"] or 0.0)
    return by_mean[-1] if by_mean else None


class MetricsLog:
    """The log of a running training, open for appending."""

    def __init__(self, folder: Path, step: int) -> None:
        """Open the log in `folder` and remove the entries after `step`, which will be repeated."""
        self._path = folder / METRICS_FILE
        lines = list(read_lines(self._path, msgspec.Raw, append_only=True))
        kept = [line for line in lines if msgspec.json.decode(line)["step"] <= step]
        write_atomically(self._path, b"".join(bytes(line) + b"\n" for line in kept))
        self._file = self._path.open("ab")

    def write(self, entry: LogEntry) -> None:
        """Append an entry and sync it to disk. Raises NumbenchError if writing fails."""
        try:
            self._file.write(encode(entry))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise NumbenchError(
                f"{self._path}: {error.strerror}; free disk space and run the same command again"
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()
