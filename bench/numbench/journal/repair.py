"""Check the files of a run, and repair them: keep every readable line, and name what is lost."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec

from numbench.core.jsonl import decode_error_message, encode, open_for_reading, write_atomically
from numbench.errors import BadInput
from numbench.journal.run_folder import (
    INFO,
    JOBS,
    RESPONSES,
    ROUNDS,
    SENT,
    lost_requests,
    run_lock,
    whole_records,
)
from numbench.records import Job, Response, Round

DAMAGED_SUFFIX = ".damaged"
_ITEM_ID = re.compile(rb'"item_id":"([^"\\]{1,200})"')


class Damage(NamedTuple):
    """One line that cannot be read.

    item_id: the item of a lost response, if the line names it. kept: whole records in the line.
    """

    path: Path
    line: int
    reason: str
    item_id: str | None
    kept: int


class RunFiles(NamedTuple):
    """The state of a run's files: the number of readable responses, and the damage."""

    responses: int
    damage: tuple[Damage, ...]


def verify_run(folder: Path, repair: bool = False) -> RunFiles:
    """Return the state of the run in `folder` before a repair.

    repair: rewrite damaged files without what cannot be read; the originals are kept beside them
    with the suffix `.damaged`. Requests that a killed call left without a response are stored, as a
    resume does. Raises BadInput if there is no run, or another process writes it.
    """
    if not (folder / INFO).is_file():
        raise BadInput(f"{folder}: no run here ({INFO} is missing)")
    damage: list[Damage] = []
    counts = {}
    with run_lock(folder) if repair else nullcontext():
        for name, kind in ((RESPONSES, Response), (JOBS, Job), (ROUNDS, Round)):
            path = folder / name
            kept: list[bytes] = []
            damaged = list(_read(path, kind, kept)) if path.exists() else []
            damage += damaged
            counts[name] = len(kept)
            if damaged and repair:
                shutil.copy2(path, _backup_path(path))
                # Their log tells them by the size that the file had before.
                lost = lost_requests(folder) if name == RESPONSES else []
                write_atomically(path, b"".join((*kept, *map(encode, lost))))
                if name == RESPONSES:
                    (folder / SENT).unlink(missing_ok=True)
    return RunFiles(counts[RESPONSES], tuple(damage))


def _read(path: Path, kind: type[Response | Job | Round], kept: list[bytes]) -> Iterator[Damage]:
    """Yield the damaged lines of a file, and append the readable ones to `kept`."""
    decoder = msgspec.json.Decoder(kind)
    with open_for_reading(path) as file:
        for number, line in enumerate(file, 1):
            try:
                decoder.decode(line)
                kept.append(line.removesuffix(b"\n") + b"\n")
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if not line.endswith(b"\n"):
                    # The next run repairs an incomplete last line; it may just be being written.
                    return
                found = _ITEM_ID.search(line)
                item_id = found[1].decode("utf-8", "replace") if found else None
                whole = list(whole_records(line, decoder))
                kept += whole
                yield Damage(path, number, decode_error_message(error), item_id, len(whole))


def _backup_path(path: Path) -> Path:
    """Return a path for the damaged file that does not exist yet."""
    backups = (Path(f"{path}{DAMAGED_SUFFIX}{number or ''}") for number in count())
    return next(backup for backup in backups if not os.path.lexists(backup))
