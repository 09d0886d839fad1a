"""Datasets for the Hugging Face hub: folders for `datasets.load_dataset`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from numbench.core import jsonl
from numbench.dataset.store import Dataset
from numbench.ecosystem.export import (
    copy_file,
    copy_notice,
    render_template,
    system_prompt,
)
from numbench.errors import BadInput
from numbench.records import Item, answer_text
from numbench.tasks import TASKS

_CARD_MARKER = "pretty_name: numbench"
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B",
          "1B<n<10B", "10B<n<100B")  # fmt: skip


def export_huggingface(source: Dataset, out: Path) -> list[Path]:
    """Write each task as Parquet, and the dataset card; return the files.

    Raises BadInput if a dataset file does not match its manifest, or if `out` contains the
    README.md of something else.
    """
    manifest, card = source.manifest, out / "README.md"
    if card.is_file() and _CARD_MARKER not in card.read_text(encoding="utf-8"):
        raise BadInput(f"{card} is not the card of a numbench dataset; choose another --out")
    files = {task: list(_write_task(source, task, out)) for task in source.tasks}
    counts = {
        task: sum(entry.items for entry in manifest.files if entry.task == task) for task in files
    }
    total = sum(counts.values())
    systems: dict[str, list[str]] = {}
    for task in source.tasks:
        systems.setdefault(system_prompt(task), []).append(task)
    text = render_template(
        "card.md.j2",
        manifest=manifest,
        size=_SIZES[min(max(len(str(total)) - 3, 0), len(_SIZES) - 1)],
        split="validation" if manifest.split == "val" else manifest.split,
        metric=_metric(source),
        tasks=[_description(out, task, files[task], counts[task]) for task in files],
        systems=systems,
    )
    jsonl.write_atomically(card, text.encode())
    written = [card, *(out / name for names in files.values() for name in names)]
    return [*written, *copy_notice(source, out)]


def _metric(source: Dataset) -> str:
    """Return the name of the score of each task."""
    exact = [task for task in source.tasks if TASKS[task].metric == "exact_match"]
    if len(exact) == len(source.tasks):
        return "exact match"
    return f"log-sMAPE, or exact match ({', '.join(exact)})" if exact else "log-sMAPE"


def _write_task(source: Dataset, task: str, out: Path) -> Iterator[str]:
    """Write the items of a task and yield its files under `out`; Parquet files are copied."""
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
    if not any(item.params for item in items):
        # Parquet has no struct without fields.
        table = table.drop_columns(["params"])
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def _description(out: Path, task: str, files: Sequence[str], count: int) -> dict[str, object]:
    """Return the card's entry of a task: files, number of items and the first item."""
    from pyarrow.parquet import ParquetFile

    (row,) = next(ParquetFile(out / files[0]).iter_batches(1)).to_pylist()
    answer = answer_text(row["answer"])
    return {"name": task, "files": files, "count": count, "prompt": row["prompt"], "answer": answer}
