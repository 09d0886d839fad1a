"""Dataset folders: `manifest.json` and files of items per task; released and local datasets."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from numbench.core import jsonl
from numbench.core.installation import resource_folder
from numbench.errors import BadInput, MissingTask
from numbench.records import DatasetRef, FileEntry, Item, Manifest
from numbench.tasks import TASKS

MANIFEST, PUBLISHED_LABELS = "manifest.json", "published_labels.jsonl"

RELEASED_DATASETS = {
    "v1": "acae8c0c5780fd1c9dcb67a5b0b058be0d258118e3ac8f3d7d96229039fb6b77",
    "short": "dbec1130d48c2f223212939d7ce2f937938ef2980ab83aec2f0e774d22770c6a",
    "forms": "d36e0e949fa74729a3fb768d6500ca735e06584043ce30a20bcf9208240048cf",
    "context": "e3d452397c17eb75d22f326b2169b07b060eea46a42006866c33320c51362484",
    "paper": "8d049ed269e288c9de62108d2e814b56457b5f6e71d34ee8da93098776d5c153",
}
"""The released datasets by name, with the hashes of their manifests. They never change."""


class Dataset:
    """A dataset on disk, whose files are checked against the manifest's hashes on first use.

    Items are read from JSONL files each time that they are asked for, so that a dataset takes
    little memory however large it is.
    """

    def __init__(self, path: Path) -> None:
        """Open the folder `path`. Raises BadInput if it has no readable manifest."""
        self.path = path
        manifest = path / MANIFEST
        if not manifest.is_file():
            raise BadInput(f"{path}: no dataset here (manifest.json is missing)")
        self.manifest = jsonl.read_json(manifest, Manifest)

    def __repr__(self) -> str:
        return f"Dataset({str(self.path)!r}, tasks={', '.join(self.tasks)})"

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def label(self) -> str:
        """The name with the start of the hash: `v1@3f9c2a`."""
        return f"{self.name}@{self.manifest.sha256[:6]}"

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of the dataset in registry order. Raises BadInput if one is not installed."""
        present = {entry.task for entry in self.manifest.files}
        if missing := sorted(present - TASKS.keys()):
            raise MissingTask(
                f"{self.path}: task {missing[0]!r} is not installed; "
                "install the package that provides it"
            )
        return tuple(task for task in TASKS if task in present)

    @cached_property
    def by_task(self) -> dict[str, Sequence[Item]]:
        """All items per task in file order. Raises BadInput for a file that has changed."""
        files: dict[str, list[Path]] = {task: [] for task in self.tasks}
        for entry in self.manifest.files:
            files[entry.task].append(self.check_file(entry))
        return {task: _read_items(paths) for task, paths in files.items()}

    @cached_property
    def by_id(self) -> dict[str, Item]:
        """All items by their id."""
        return {item.id: item for items in self.by_task.values() for item in items}

    def task_of(self, item_id: str) -> str:
        """Return the task of an item. Raises KeyError for an id of another dataset."""
        return self.by_id[item_id].task

    def ref(self, relative_to: Path) -> DatasetRef:
        """Return the reference to this dataset that a run folder `relative_to` stores."""
        path = Path(os.path.relpath(self.path.resolve(), relative_to.resolve())).as_posix()
        return DatasetRef(name=self.name, path=path, sha256=self.manifest.sha256)

    def check_file(self, entry: FileEntry) -> Path:
        """Return the path of a file. Raises BadInput if it is not as the manifest says."""
        path = self.path / entry.file
        if not path.is_file() or sha256_of(path) != entry.sha256:
            raise BadInput(
                f"{path}: missing, or its content differs from the hash in manifest.json; "
                "restore the file or generate the dataset again"
            )
        return path


def _read_items(paths: Sequence[Path]) -> Sequence[Item]:
    if all(path.suffix != ".parquet" for path in paths):
        return jsonl.StoredRecords(paths, Item)
    import pyarrow.parquet

    rows = (row for path in paths for row in pyarrow.parquet.read_table(path).to_pylist())
    return msgspec.convert(list(rows), list[Item])


def open_dataset(name: str | Path) -> Dataset:
    """Return the dataset of a name or a folder.

    A released name (`v1`, `short`, `forms`, `context`, `paper`) always means the released dataset.
    Another name means the folder `./datasets/NAME`, or `./NAME` if there is none. A `Path`, or text
    with a separator (`./NAME`), is a folder. Raises BadInput if there is no such dataset, if a
    local folder has a released name but other content, or if a name fits two different datasets.
    """
    if isinstance(name, Path) or "/" in name or os.sep in name:
        return Dataset(Path(name))
    folders = (Path("datasets") / name, Path(name))
    found = [Dataset(folder) for folder in folders if (folder / MANIFEST).is_file()]
    if name in RELEASED_DATASETS:
        for local in found:
            if local.manifest.sha256 != RELEASED_DATASETS[name]:
                raise BadInput(
                    f"{local.path} is not the released {name}; address it as "
                    f"./{local.path.as_posix()}, or rename it to use the released {name}"
                )
        return released_dataset(name)
    if not found:
        raise BadInput(
            f"no dataset {name!r}; use {', '.join(RELEASED_DATASETS)}, the name of a dataset in "
            f"./datasets, or a path such as ./{name}"
        )
    if len({dataset.manifest.sha256 for dataset in found}) > 1:
        paths = " or ".join(f"./{dataset.path.as_posix()}" for dataset in found)
        raise BadInput(f"dataset {name!r} is ambiguous; address it by its path: {paths}")
    return found[0]


def dataset_names() -> tuple[str, ...]:
    """Return the names of the released datasets, and of those in ./datasets."""
    local = sorted(path.parent.name for path in Path("datasets").glob(f"*/{MANIFEST}"))
    return tuple(dict.fromkeys((*RELEASED_DATASETS, *local)))


def open_run_dataset(ref: DatasetRef, run_folder: Path) -> Dataset:
    """Return the dataset of a run, identified by its hash.

    The candidates are the path in the run, the released datasets and `./datasets/NAME`. Raises
    BadInput if none of them has the hash.
    """
    released = [resource_folder("datasets") / name for name in RELEASED_DATASETS]
    for folder in (run_folder / ref.path, *released, Path("datasets") / ref.name):
        if (folder / MANIFEST).is_file():
            dataset = Dataset(folder)
            if dataset.manifest.sha256 == ref.sha256:
                return dataset
    raise BadInput(
        f"{run_folder}: its dataset {ref.name!r} (sha256 {ref.sha256[:12]}) is not at {ref.path} "
        "nor in ./datasets, or has changed since the run; restore it to score this run"
    )


def released_dataset(name: str) -> Dataset:
    """Return the released dataset `name`. Raises BadInput if its files have been replaced."""
    dataset = Dataset(resource_folder("datasets") / name)
    if dataset.manifest.sha256 != RELEASED_DATASETS[name]:
        raise BadInput(
            f"{dataset.path} is not the released {name}; restore it or reinstall numbench"
        )
    return dataset


def write_dataset(path: Path, items: Mapping[str, Iterable[Item]], **fields: Any) -> Dataset:
    """Write items per task as JSONL, then the manifest, each atomically; return the dataset.

    fields: what the manifest says in addition to its files.
    """
    entries = []
    for task, source in items.items():
        rows, file = list(source), path / f"{task}.jsonl"
        jsonl.write_atomically(file, b"".join(map(jsonl.encode, rows)))
        ids = hashlib.sha256("".join(item.id for item in rows).encode())
        entries.append(file_entry(file, task, len(rows), ids.hexdigest()))
    return write_manifest(path, entries, **fields)


def file_entry(path: Path, task: str, items: int, ids: str) -> FileEntry:
    """Return the manifest's entry of a file. ids: the hash of its item ids."""
    size, sha256 = path.stat().st_size, sha256_of(path)
    return FileEntry(task=task, file=path.name, items=items, bytes=size, sha256=sha256, ids=ids)


def write_manifest(path: Path, entries: Iterable[FileEntry], **fields: Any) -> Dataset:
    """Write the manifest of the files in `path`, the last step of writing a dataset."""
    files = tuple(entries)
    manifest = Manifest(files=files, sha256=dataset_hash(files), **fields)
    jsonl.write_json(path / MANIFEST, manifest)
    return Dataset(path)


class PublishedLabel(Struct, frozen=True):
    """The answer that the authors of a dataset published to one item, verbatim; it may be wrong.

    Only the protocol `paper` scores against it. The file says in addition whether it is exact.
    """

    item_id: str
    answer: str


def read_published_labels(dataset: Path) -> dict[str, str]:
    """Return the published answers in a dataset folder by item id; empty if there are none."""
    path = dataset / PUBLISHED_LABELS
    if not path.is_file():
        return {}
    return {label.item_id: label.answer for label in jsonl.read_lines(path, PublishedLabel)}


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def dataset_hash(entries: Iterable[FileEntry]) -> str:
    """Return the hash of a dataset: the SHA-256 of its sorted file names and hashes."""
    lines = sorted(f"{entry.file} {entry.sha256}\n" for entry in entries)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
