"""A dataset's files at another place, checked on the way."""

from __future__ import annotations

import shutil
from pathlib import Path

from bench import jsonl
from bench.dataset.parts import sha256_of
from bench.dataset.store import MANIFEST, Dataset
from bench.errors import BadInput
from bench.records import FileEntry


def copy_dataset(source: Dataset, out: Path) -> None:
    """Copy the files of `source` into `out`, the manifest last.

    BadInput where `out` holds another dataset, or for a file that is not what the manifest says.
    """
    if (out / MANIFEST).is_file() and Dataset(out).manifest.sha256 != source.manifest.sha256:
        raise BadInput(f"{out} holds another dataset; choose another --out")
    for entry in source.manifest.files:
        copy_file(source, entry, out / entry.file)
    jsonl.write_json(out / MANIFEST, source.manifest)


def copy_file(source: Dataset, entry: FileEntry, path: Path) -> None:
    """Copy one file of `source` to `path`. BadInput where it is not what the manifest says."""
    present = source.path / entry.file
    if not present.is_file() or sha256_of(present) != entry.sha256:
        raise BadInput(
            f"{present}: content differs from the hash in manifest.json; "
            "restore the file or generate the dataset again"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(present, path)
