"""Check the files of a run, and repair them: keep every readable line, and name what is lost."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from numbench.errors import BadInput
from numbench.journal import INFO, JOBS, RESPONSES, ROUNDS, run_lock
from numbench.jsonl import decode_error_message, encode, open_for_reading, write_atomically
from numbench.records import Job, Response, Round

DAMAGED_SUFFIX = ".damaged"
_Record = Response | Job | Round
_RECORD_START: dict[type[_Record], bytes] = {
    Response: b'{"text":',
    Job: b'{"key":',
    Round: b'{"task":',
}
_ITEM_ID = re.compile(rb'"item_id":"([^"\\]{1,200})"')


class Damage(NamedTuple):
    """One line that cannot be read.

    is_recovered: whether a whole record in it can be kept. item_id: the item of a lost
    response, if the line names it.
    """

    path: Path
    line: int
    reason: str
    is_recovered: bool
    item_id: str | None


class RunFiles(NamedTuple):
    """The state of a run's files: the number of readable responses, and the damage."""

    path: Path
    responses: int
    damage: tuple[Damage, ...]


def verify_run(folder: Path, repair: bool = False) -> RunFiles:
    """Return the state of the run in `folder` before a repair.

    repair: rewrite damaged files without what cannot be read; the originals are kept beside them
    with the suffix `.damaged`. Raises BadInput if there is no run, or another process writes it.
    """
    if not (folder / INFO).is_file():
        raise BadInput(f"{folder}: no run here ({INFO} is missing)")
    if not repair:
        return _verify(folder, False)
    with run_lock(folder):
        return _verify(folder, True)


def _verify(folder: Path, repair: bool) -> RunFiles:
    damage: list[Damage] = []
    counts = {}
    for name, kind in ((RESPONSES, Response), (JOBS, Job), (ROUNDS, Round)):
        path = folder / name
        kept: list[bytes] = []
        damaged = list(_read(path, kind, kept)) if path.exists() else []
        if damaged and repair:
            shutil.copy2(path, _backup_path(path))
            write_atomically(path, b"".join(kept))
        damage += damaged
        counts[name] = len(kept)
    return RunFiles(folder, counts[RESPONSES], tuple(damage))


def _read(path: Path, kind: type[_Record], kept: list[bytes]) -> Iterator[Damage]:
    """Yield the damaged lines of a file, and append the readable ones to `kept`."""
    decoder = msgspec.json.Decoder(kind)
    with open_for_reading(path) as file:
        for number, line in enumerate(file, 1):
            try:
                decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if not line.endswith(b"\n"):
                    # The next run repairs an incomplete last line; it may just be being written.
                    return
                reason = decode_error_message(error)
            else:
                kept.append(line if line.endswith(b"\n") else line + b"\n")
                continue
            whole = [encode(record) for record in _whole_records(line, kind)]
            kept += whole
            found = None if whole else _ITEM_ID.search(line)
            item_id = found[1].decode("utf-8", "replace") if found else None
            yield Damage(path, number, reason, bool(whole), item_id)


def _whole_records(line: bytes, kind: type[_Record]) -> Iterator[_Record]:
    """Yield the records in a damaged line, in which their start cannot be part of a text.

    After a power cut, a record may follow zeros or half a record, or a whole one without newline.
    """
    start, decoder = _RECORD_START[kind], msgspec.json.Decoder(kind)
    for rest in line.split(start)[1:]:
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            yield decoder.decode((start + rest).rstrip(b"\0\r\n"))


def _backup_path(path: Path) -> Path:
    """Return a path for the damaged file that does not exist yet."""
    number = 0
    while True:
        backup = Path(f"{path}{DAMAGED_SUFFIX}{number or ''}")
        if not os.path.lexists(backup):
            return backup
        number += 1
