"""A dataset folder: `manifest.json` and one JSONL file of items per task."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench import jsonl
from bench.errors import BadInput
from bench.paths import resource
from bench.records import DatasetRef, FileEntry, Item, Manifest, Scalar
from bench.tasks import TASKS

if TYPE_CHECKING:
    import pyarrow.dataset


MANIFEST = "manifest.json"


class Dataset:
    """A dataset on disk. Items are read on first use; the manifest's hashes are then checked."""

    def __init__(self, path: Path) -> None:
        """Open the folder `path`. BadInput where it holds no readable manifest."""
        self.path = path
        manifest = path / MANIFEST
        if not manifest.is_file():
            raise BadInput(f"{path}: no dataset here (manifest.json is missing)")
        self.manifest = jsonl.read_json(manifest, Manifest)

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks it holds, in the order of the registry."""
        present = {entry.task for entry in self.manifest.files}
        return tuple(task for task in TASKS if task in present)

    @cached_property
    def by_task(self) -> dict[str, list[Item]]:
        """All items, per task in file order. BadInput for a changed file, a bad line, a bad id."""
        items: dict[str, list[Item]] = {task: [] for task in self.tasks}
        for entry in self.manifest.files:
            items.setdefault(entry.task, []).extend(self._read(entry))
        return items

    @cached_property
    def by_id(self) -> dict[str, Item]:
        """All items by their id."""
        return {item.id: item for items in self.by_task.values() for item in items}

    def ref(self, relative_to: Path) -> DatasetRef:
        """How a run folder at `relative_to` refers to this dataset."""
        shown = Path(os.path.relpath(self.path.resolve(), relative_to.resolve())).as_posix()
        return DatasetRef(name=self.name, path=shown, sha256=self.manifest.sha256)

    def scan(self, task: str) -> pyarrow.dataset.Dataset:
        """The files of one task as a lazy Arrow dataset: batches, columns and filters on demand.

        BadInput for a task that it does not hold.
        """
        import pyarrow.dataset

        files = [entry.file for entry in self.manifest.files if entry.task == task]
        if not files:
            raise BadInput(f"{self.path} has no task {task!r}: it has {', '.join(self.tasks)}")
        kind = "parquet" if files[0].endswith(".parquet") else "json"
        return pyarrow.dataset.dataset([self.path / file for file in files], format=kind)

    def _read(self, entry: FileEntry) -> list[Item]:
        path = self.path / entry.file
        parquet = path.suffix == ".parquet"
        items = _from_parquet(path) if parquet else list(jsonl.read_lines(path, Item))
        for number, item in enumerate(items, 1):
            if item.task != entry.task or item.task not in TASKS:
                raise BadInput(
                    f"{path}, line {number}: field task is {item.task!r}, expected {entry.task!r}"
                )
        if len(items) != entry.items:
            raise BadInput(f"{path}: {len(items)} items, the manifest says {entry.items}")
        if hashlib.sha256(path.read_bytes()).hexdigest() != entry.sha256:
            raise BadInput(
                f"{path}: content differs from the hash in manifest.json; "
                "restore the file or generate the dataset again"
            )
        return items


def open_dataset(name: str | Path) -> Dataset:
    """The dataset in folder `name`, or the one called `name` under ./datasets or as shipped."""
    places = [Path(name)]
    if isinstance(name, str) and "/" not in name:
        places += [Path("datasets") / name, resource("datasets") / name]
    for place in places:
        if (place / MANIFEST).is_file():
            return Dataset(place)
    if places[0].is_dir():
        return Dataset(places[0])
    known = sorted(path.parent.name for path in resource("datasets").glob("*/manifest.json"))
    raise BadInput(
        f"no dataset {str(name)!r}: give a folder with a manifest.json, "
        f"or one of: {', '.join(known) or 'none is installed'}"
    )


def dataset_of_run(ref: DatasetRef, run_folder: Path) -> Dataset:
    """The dataset that a run answered, by content hash.

    Looked for where the run says it lay, then by name. BadInput where neither has that hash.
    """
    places = [run_folder / ref.path, Path("datasets") / ref.name, resource("datasets") / ref.name]
    for place in places:
        if (place / MANIFEST).is_file():
            dataset = Dataset(place)
            if dataset.manifest.sha256 == ref.sha256:
                return dataset
    raise BadInput(
        f"{run_folder}: its dataset {ref.name!r} ({ref.sha256[:6]}) is not at {ref.path} nor "
        f"under datasets/, or has changed since; put it back to score this run"
    )


def write_dataset(
    path: Path,
    items: Mapping[str, Iterable[Item]],
    *,
    name: str,
    generator: str,
    seed: int | None,
    split: str,
    settings: dict[str, Scalar],
) -> Dataset:
    """Write items per task as JSONL, then the manifest, each atomically; return the dataset."""
    entries = []
    for task, rows in items.items():
        kept = list(rows)
        data = b"".join(map(jsonl.encode, kept))
        jsonl.write_atomically(path / f"{task}.jsonl", data)
        entries.append(
            FileEntry(
                task=task,
                file=f"{task}.jsonl",
                items=len(kept),
                bytes=len(data),
                sha256=hashlib.sha256(data).hexdigest(),
                ids=hashlib.sha256("".join(item.id for item in kept).encode()).hexdigest(),
            )
        )
    return write_manifest(
        path, entries, name=name, generator=generator, seed=seed, split=split, settings=settings
    )


def write_manifest(
    path: Path,
    entries: Iterable[FileEntry],
    *,
    name: str,
    generator: str,
    seed: int | None,
    split: str,
    settings: dict[str, Scalar],
) -> Dataset:
    """Declare the files in `path` to be a dataset: the last step of writing one."""
    files = tuple(entries)
    manifest = Manifest(
        name=name,
        generator=generator,
        seed=seed,
        split=split,
        settings=settings,
        files=files,
        sha256=_dataset_hash(files),
    )
    jsonl.write_json(path / MANIFEST, manifest)
    return Dataset(path)


def _from_parquet(path: Path) -> list[Item]:
    import pyarrow
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_table(path).to_pylist()
        return msgspec.convert(rows, list[Item])
    except (OSError, pyarrow.ArrowInvalid, msgspec.ValidationError) as error:
        raise BadInput(f"{path}: {error}") from error


def _dataset_hash(entries: Iterable[FileEntry]) -> str:
    lines = sorted(f"{entry.file} {entry.sha256}\n" for entry in entries)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
