"""Measure the generation of questions of scaled tasks by size. Prints Markdown.

    python benchmarks/scaled_tasks.py [--seconds 0.5]

Generation includes the exact answer, the wording and the check of the question's split.
"""

from __future__ import annotations

import argparse
import os
import platform
import time

from numbench.tasks import SCALED_TASKS
from numbench.tasks.shards import Shard, generate_items

SIZES = (8, 16, 64, 256, 1024, 4096)


def milliseconds_per_question(task: str, size: int, seconds: float) -> float:
    """Return CPU milliseconds per question, over at least three questions and some time."""
    items = generate_items(Shard(task, question_size=size))
    next(items)
    count, start = 0, time.process_time()
    while count < 3 or time.process_time() - start < seconds:
        next(items)
        count += 1
    return 1000 * (time.process_time() - start) / count


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="per task and size")
    seconds = parser.parse_args().seconds
    print("# Speed of generating scaled questions\n")
    print(
        f"`python benchmarks/scaled_tasks.py`, Python {platform.python_version()}, "
        f"{platform.machine()}, {os.cpu_count()} cores. CPU milliseconds\nper question with its "
        "exact answer, by size. The last column: how many times as long the largest\nsize takes as "
        "a quarter of it; 4 is linear, 16 quadratic.\n"
    )
    print("| task | size counts |", " | ".join(f"{size:,}" for size in SIZES), "| 4,096 / 1,024 |")
    print("|---|---|" + "---:|" * (len(SIZES) + 1))
    for name, task in SCALED_TASKS.items():
        times = [milliseconds_per_question(name, size, seconds) for size in SIZES]
        unit = task.sizes.unit if task.sizes else ""
        cells = " | ".join(f"{value:.3g}" for value in times)
        print(f"| {name} | {unit} | {cells} | {times[-1] / times[-2]:.1f} |")


if __name__ == "__main__":
    main()
