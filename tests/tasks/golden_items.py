"""Hashes of items by task, settings and split: what "same seed, same bytes" means.

    python -m tests.tasks.golden_items        writes golden_items.json from the installed code

The committed file was written by an earlier implementation, in which two samplers of every task
gave the same items.
"""

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from numbench.core import jsonl
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.tasks import PAPER_TASKS, SCALED_TASKS
from numbench.tasks.shards import Shard, generate_items

PATH = Path(__file__).with_suffix(".json")
QUICK_ITEMS, ITEMS, LARGE_ITEMS = 25, 20_000, 1_000
SPLITS = ("test", "val", "train")
INTEGER_TASKS = ("minmax", "interval", "sorting", "addition", "multiplication", "division")


def shards() -> dict[str, Shard]:
    """Return the shard of every cell."""
    cells: list[Shard] = []
    for split in SPLITS:
        for task in PAPER_TASKS:
            cells += [Shard(task, 1, split, max_digits=digits) for digits in (2, 3, 9, 15, 17)]
            cells.append(Shard(task, 7, split, index=1, count=3))
        for task in INTEGER_TASKS:
            for bits, shift in ((4, 0), (8, 0), (8, 3), (15, 6), (24, 0), (24, 1)):
                cells.append(Shard(task, 1, split, max_bits=bits, max_shift=shift))
        for task, declared in SCALED_TASKS.items():
            assert declared.sizes is not None
            for size in (declared.sizes.minimum, 3, 12):
                cells.append(Shard(task, 1, split, question_size=size))
    for task in SCALED_TASKS:
        cells += [Shard(task, 2, "test", question_size=size) for size in (64, 1000)]
    return {name_of(shard): shard for shard in cells}


def name_of(shard: Shard) -> str:
    """Return the name of a cell."""
    numbers = f"digits {shard.max_digits}"
    if shard.max_bits is not None:
        numbers = f"bits {shard.max_bits} shift {shard.max_shift}"
    if shard.question_size is not None:
        numbers = f"size {shard.question_size}"
    part = f" shard {shard.index} of {shard.count}" if shard.count > 1 else ""
    return f"{shard.task}, {numbers}, {shard.split}, seed {shard.seed}{part}"


def item_hash(shard: Shard, count: int) -> tuple[int, str]:
    """Return how many of the first `count` items exist, and the start of the SHA-256 of all."""
    digest, found = hashlib.sha256(), 0
    for line in islice(_lines(shard), count):
        digest.update(line)
        found += 1
    return found, digest.hexdigest()[:20]


def _lines(shard: Shard) -> Iterator[bytes]:
    return map(jsonl.encode, generate_items(shard))


def wanted_items(shard: Shard) -> int:
    """Return the number of items of a cell that are hashed."""
    return LARGE_ITEMS if (shard.question_size or 0) > 12 else ITEMS


def datasets() -> dict[str, DatasetSettings]:
    """Return the settings of whole datasets: files of samples, of small spaces, and of one size."""
    integers = DatasetSettings("integers", INTEGER_TASKS, size=20)
    long = DatasetSettings("long", ("nested", "copy", "long_mean"), size=1200, question_size=9)
    return {
        "digits": DatasetSettings("digits", size=40, seed=3, max_digits=9),
        "digits parquet": DatasetSettings("digits", size=40, seed=3, format="parquet"),
        "more than a pool": DatasetSettings("large", ("addition", "std"), "train", 10_001),
        "bits 4": integers._replace(max_bits=4, tasks=INTEGER_TASKS[:3]),
        "bits 5": integers._replace(max_bits=5),
        "bits 7 shift 2": integers._replace(max_bits=7, max_shift=2),
        "one size": long,
        "one size parquet": long._replace(format="parquet"),
    }


def dataset_hash(settings: DatasetSettings) -> str:
    """Return the hash in the manifest of a generated dataset."""
    with tempfile.TemporaryDirectory() as folder:
        return generate(settings, Path(folder) / "data").manifest.sha256


def main() -> None:
    """Write the file."""
    cells = {}
    for name, shard in shards().items():
        found, whole = item_hash(shard, wanted_items(shard))
        quick = item_hash(shard, min(QUICK_ITEMS, found))[1]
        cells[name] = [found, quick, whole]
        print(name, found, file=sys.stderr, flush=True)
    hashes = {name: dataset_hash(settings) for name, settings in datasets().items()}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(cell)}" for name, cell in cells.items())
    pairs = ",\n".join(f'  {json.dumps(name)}: "{value}"' for name, value in hashes.items())
    PATH.write_text(f'{{"items": {{\n{lines}\n}}, "datasets": {{\n{pairs}\n}}}}\n')


if __name__ == "__main__":
    main()
