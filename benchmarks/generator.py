"""How fast datasets are made: rows per CPU-second, memory, scaling. Prints Markdown.

    python benchmarks/generator.py [--rows 1000000] [--largest 10000000] [--workers 1,2]

Every measurement is a process of its own, whose whole CPU time counts, start-up and writing
included; peak memory is what the system reports for that process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from statistics import harmonic_mean
from typing import NamedTuple

from bench.dataset.generate import generate
from bench.dataset.settings import Settings
from bench.tasks import TASKS
from bench.tasks.shards import Shard, items

PLAIN_ROWS = 3000


class Cost(NamedTuple):
    """CPU and wall seconds, peak memory in MiB, bytes written."""

    cpu: float
    wall: float
    memory: float
    size: int


def measure(settings: Settings, workers: int = 1) -> Cost:
    """The cost of generating a dataset in a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix="numbench-"))
    command = [sys.executable, __file__, "--child", json.dumps([*settings, workers, str(folder)])]
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    shutil.rmtree(folder)
    if status:
        raise SystemExit(f"generation failed: {settings}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, size)


def child(arguments: list[object]) -> None:
    """What the measured process does."""
    *fields, workers, folder = arguments
    settings = Settings(*fields)  # type: ignore[arg-type]
    settings = settings._replace(tasks=tuple(settings.tasks))
    generate(settings, Path(str(folder)) / "d", workers=int(str(workers)))


def plain_rate(task: str) -> float:
    """Rows per CPU-second of the plain code, items made but not written."""
    start = time.process_time()
    made = sum(1 for _ in islice(items(Shard(task, 1, "train")), PLAIN_ROWS))
    return made / (time.process_time() - start)


def training(tasks: tuple[str, ...], size: int, format_: str) -> Settings:
    """A training set, which needs no pool."""
    return Settings("bench", tasks, "train", size, 1, 15, format_)  # type: ignore[arg-type]


def per_task(rows: int) -> None:
    """Table: every task in both formats."""
    print(f"## Rows per CPU-second, {rows:,} rows of each task\n")
    print("| task | JSONL | Parquet | plain code | JSONL : plain | bytes a row | peak MiB |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    rates: dict[str, list[float]] = {"jsonl": [], "parquet": []}
    for task in TASKS:
        jsonl, parquet = (measure(training((task,), rows, f)) for f in rates)
        for cost, kept in zip((jsonl, parquet), rates.values(), strict=True):
            kept.append(rows / cost.cpu)
        plain = plain_rate(task)
        print(
            f"| {task} | {rows / jsonl.cpu:,.0f} | {rows / parquet.cpu:,.0f} | {plain:,.0f} | "
            f"{rows / jsonl.cpu / plain:.0f} | {jsonl.size / rows:.0f}, {parquet.size / rows:.0f} "
            f"| {max(jsonl.memory, parquet.memory):.0f} |"
        )
    means = [f"{harmonic_mean(kept):,.0f}" for kept in rates.values()]
    print(f"| **all nine, equal counts** | **{means[0]}** | **{means[1]}** | | | | |\n")


def by_size(largest: int) -> None:
    """Table: the cost of a row must not grow with their number."""
    start = start_up()
    print("## From small to large (multiplication, Parquet)\n")
    print(f"Start-up, {start:.2f} CPU-seconds for importing the package, is counted apart.\n")
    print("| rows | CPU µs a row | with start-up | peak MiB |")
    print("|---:|---:|---:|---:|")
    rows = 10_000
    while rows <= largest:
        # One row more than the pool holds, so that every size is made in the same way.
        cost = measure(training(("multiplication",), rows + 1, "parquet"))
        each, whole = ((cost.cpu - spared) / rows * 1e6 for spared in (start, 0))
        print(f"| {rows:,} | {each:.2f} | {whole:.2f} | {cost.memory:.0f} |")
        rows *= 10
    print()


def start_up() -> float:
    """CPU-seconds of a process that only imports what generation needs."""
    process = subprocess.Popen([sys.executable, "-c", "import bench.dataset.generate"])
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime


def by_workers(rows: int, workers: list[int]) -> None:
    """Table: rows per second of wall time over all nine tasks."""
    print(f"## Workers (all nine tasks, {rows:,} rows each, Parquet)\n")
    print("| workers | rows per second | : one worker | CPU-seconds |")
    print("|---:|---:|---:|---:|")
    first = None
    for count in workers:
        cost = measure(training(tuple(TASKS), rows, "parquet"), count)
        rate = 9 * rows / cost.wall
        first = first or rate
        print(f"| {count} | {rate:,.0f} | {rate / first:.2f} | {cost.cpu:.1f} |")
    print()


def main() -> None:
    """Measure and print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--largest", type=int, default=10_000_000)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    print("# Speed of the generator\n")
    print(f"`make bench`, Python {platform.python_version()}, {os.cpu_count()} cores.\n")
    per_task(options.rows)
    by_size(options.largest)
    by_workers(options.rows, [int(count) for count in options.workers.split(",")])


if __name__ == "__main__":
    main()
