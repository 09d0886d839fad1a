"""Generation of a dataset: plan its files, make those that are missing, then say it is whole."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from bench import jsonl
from bench.dataset.engines import Engine, make_all
from bench.dataset.parts import RECORDS, sha256_of
from bench.dataset.settings import GENERATOR, SHARD_ROWS, Part, Settings, check, plan, same
from bench.dataset.store import MANIFEST, Dataset, write_manifest
from bench.errors import BadInput, NumbenchError
from bench.records import FileEntry


class Generated(NamedTuple):
    """A dataset, and whether it was there before, every file as its manifest says."""

    dataset: Dataset
    unchanged: bool


class Finished(NamedTuple):
    """Word of a finished file: how many of all files are done, and when the rest will be.

    `rate` is rows per second of this call, `left` the seconds that the rest takes at that rate.
    """

    entry: FileEntry
    done: int
    of: int
    rate: float
    left: float


def generate(
    settings: Settings = Settings(),  # noqa: B008 - immutable
    out: Path | None = None,
    workers: int = 1,
    engine: Engine = "local",
    on_file: Callable[[Finished], None] = lambda _: None,
    shard_rows: int = SHARD_ROWS,
) -> Generated:
    """Write the dataset of these settings to `out` (default: datasets/NAME).

    Every row depends on the settings alone. Interrupted, it goes on with the missing files; the
    manifest is written last. BadInput for settings that make no sense, and where `out` holds
    another dataset or other files; NumbenchError where the disk or a worker fails.
    """
    check(settings)
    if workers < 1:
        raise BadInput(f"--workers {workers}: it must be at least 1")
    folder = out or Path("datasets") / settings.name
    parts = plan(settings, shard_rows)
    try:
        present = _prepare(folder, settings, parts)
        if present is None:
            return Generated(Dataset(folder), unchanged=True)
        with FileLock(folder / RECORDS / "lock", timeout=0):
            missing = [part for part in parts if part.file not in present]
            to_do, made, start = sum(part.rows for part in missing), 0, time.monotonic()
            for entry in make_all(missing, folder, workers, engine):
                present[entry.file] = entry
                made += entry.items
                rate = made / max(time.monotonic() - start, 1e-9)
                left = (to_do - made) / rate
                on_file(Finished(entry, len(present), len(parts), rate, left))
            dataset = _complete(folder, settings, [present[part.file] for part in parts])
        return Generated(dataset, unchanged=False)
    except Timeout:
        raise BadInput(f"{folder}: another process is generating this dataset") from None
    except OSError as error:
        raise NumbenchError(
            f"{error.filename or folder}: {error.strerror or error}; what is finished is kept, "
            "and the same command goes on"
        ) from error


def _prepare(folder: Path, settings: Settings, parts: list[Part]) -> dict[str, FileEntry] | None:
    """The entries of files that are finished already; None where the whole dataset is.

    Creates the folder, with a note of the settings that it is being filled with.
    """
    if (folder / MANIFEST).exists():
        _verify(Dataset(folder), settings)
        return None
    records = folder / RECORDS
    note = records / "settings.json"
    wanted = [*settings[:1], list(settings.tasks), *settings[2:], GENERATOR]
    wanted.append([part.file for part in parts])
    if note.exists():
        if jsonl.read_json(note, list) != wanted:
            raise BadInput(
                f"{folder} holds the beginning of another dataset: choose another --out, "
                "or remove the folder"
            )
    elif folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} holds other files: choose another --out")
    else:
        jsonl.write_json(note, wanted)
    return {part.file: entry for part in parts if (entry := _finished(folder, part))}


def _verify(dataset: Dataset, settings: Settings) -> None:
    """BadInput where a whole dataset is not the one asked for, or a file of it has changed."""
    manifest = dataset.manifest
    if not same(manifest, settings):
        raise BadInput(
            f"{dataset.path} holds another dataset ({manifest.name}, seed {manifest.seed}, "
            f"{manifest.split}): choose another --out, or remove the folder"
        )
    for entry in manifest.files:
        path = dataset.path / entry.file
        if not path.is_file() or sha256_of(path) != entry.sha256:
            raise BadInput(
                f"{path} is missing or differs from the manifest: remove {dataset.path} "
                "and generate it again"
            )


def _finished(folder: Path, part: Part) -> FileEntry | None:
    """The entry of a part that an earlier call finished, if its file still is what it was."""
    record, path = folder / RECORDS / f"{part.file}.json", folder / part.file
    if not record.exists() or not path.exists():
        return None
    entry = jsonl.read_json(record, FileEntry)
    return entry if sha256_of(path) == entry.sha256 else None


def _complete(folder: Path, settings: Settings, entries: list[FileEntry]) -> Dataset:
    dataset = write_manifest(
        folder,
        entries,
        name=settings.name,
        generator=GENERATOR,
        seed=settings.seed,
        split=settings.split,
        settings=settings.recorded(),
    )
    shutil.rmtree(folder / RECORDS)
    return dataset
