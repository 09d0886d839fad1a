"""A dataset as a folder that `datasets.load_dataset` reads and that can go to the hub as it is."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench import jsonl
from bench.dataset.store import Dataset
from bench.ecosystem.copies import copy_file
from bench.ecosystem.measures import system, written
from bench.errors import BadInput
from bench.records import Item

_FILE = "README.md"
_MARK = "pretty_name: numbench"
_SPLITS = {"val": "validation"}
_SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
    (10**8, "10M<n<100M"),
    (10**9, "100M<n<1B"),
    (10**10, "1B<n<10B"),
)


def export_huggingface(source: Dataset, out: Path) -> None:
    """Write the rows of each task as Parquet, and the card.

    BadInput for a dataset file that is not what its manifest says, or where `out` has a README.md
    that is none of ours.
    """
    card = out / _FILE
    if card.is_file() and _MARK not in card.read_text(encoding="utf-8"):
        raise BadInput(f"{card} is not of a numbench dataset; choose another --out")
    files = {task: list(_write(source, task, out)) for task in source.tasks}
    jsonl.write_atomically(card, _card(source, files).encode())


def _write(source: Dataset, task: str, out: Path) -> Iterator[str]:
    """Write the rows of a task; the files under `out`. What is Parquet already is only copied."""
    entries = [entry for entry in source.manifest.files if entry.task == task]
    if all(entry.file.endswith(".parquet") for entry in entries):
        for entry in entries:
            copy_file(source, entry, out / task / entry.file)
            yield f"{task}/{entry.file}"
    else:
        jsonl.write_atomically(out / task / f"{task}.parquet", _parquet(source.by_task[task]))
        yield f"{task}/{task}.parquet"


def _parquet(items: Sequence[Item]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    table = pa.Table.from_pylist([msgspec.to_builtins(item) for item in items])
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def _card(source: Dataset, files: dict[str, list[str]]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    manifest = source.manifest
    places = PackageLoader("bench.ecosystem", "")
    page = Environment(loader=places, undefined=StrictUndefined, keep_trailing_newline=True)
    return page.get_template("card.md.j2").render(
        manifest=manifest,
        size=_size(sum(entry.items for entry in manifest.files)),
        split=_SPLITS.get(manifest.split, manifest.split),
        tasks=[_described(source, task, files[task]) for task in files],
        systems=_sharing(source.tasks),
    )


def _size(items: int) -> str:
    """The hub's word for a number of rows."""
    return next((name for most, name in _SIZES if items < most), "10B<n<100B")


def _described(source: Dataset, task: str, files: Sequence[str]) -> dict[str, object]:
    """What the card says of a task: its files, how many items, and the first of them."""
    (row,) = source.scan(task).head(1).to_pylist()
    return {
        "name": task,
        "files": files,
        "count": sum(entry.items for entry in source.manifest.files if entry.task == task),
        "prompt": row["prompt"],
        "answer": written(row["answer"]),
    }


def _sharing(tasks: Sequence[str]) -> dict[str, list[str]]:
    """Each system prompt with the tasks that have it."""
    sharing: dict[str, list[str]] = {}
    for task in tasks:
        sharing.setdefault(system(task), []).append(task)
    return sharing
