"""Measure the speed of scoring: rows per CPU-second, stage by stage. Prints Markdown.

    python benchmarks/scoring.py [--study FOLDER] [--rows 58500]

Without the study's raw files (`frontier_results` of its repository) the responses are synthetic
answers to the dataset `v1`: correct, wrong, in other notations, in prose, after thinking, and some
that never end, in shares like the study's. The responses are repeated up to the number of rows, run
by run, as `numbench report` reads them.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple, TypeVar, get_args

sys.path.insert(0, str(Path(__file__).parents[1]))

from numbench.dataset.store import Dataset, open_dataset, open_run_dataset
from numbench.journal.run_folder import read_run, write_run
from numbench.records import DatasetRef, Item, PromptRef, ProtocolName, Response, RunInfo
from numbench.scoring import (
    ScoredRun,
    TaskSummary,
    exact_protocol,
    metrics,
    score_exact,
    score_lenient,
    score_paper,
    score_run,
    summarize,
)
from studies.raw_responses import import_study

CONFIGURATIONS = 6
REPEATS = 3
"""Repetitions per stage; the fastest one counts."""
CACHES = (
    metrics._rounding_collides,
    exact_protocol._truth,
    exact_protocol._true_list,
)

T = TypeVar("T")


class Stage(NamedTuple):
    """A stage and its CPU-seconds over all rows."""

    name: str
    seconds: float


def synthetic_runs(folder: Path) -> list[Path]:
    """Write run folders with synthetic responses to the dataset `v1`, reproducibly."""
    dataset = open_dataset("v1")
    draws = random.Random(1)
    paths = []
    for number in range(CONFIGURATIONS):
        responses = [
            Response(item_id=item.id, text=synthetic_text(item, draws))
            for items in dataset.by_task.values()
            for item in items
        ]
        path = folder / f"run-{number}"
        write_run(path, _describe(dataset, path, number), responses)
        paths.append(path)
    return paths


def _describe(dataset: Dataset, run: Path, number: int) -> RunInfo:
    reference = DatasetRef(
        name=dataset.name,
        path=os.path.relpath(dataset.path, run),
        sha256=dataset.manifest.sha256,
    )
    return RunInfo(
        model=f"synthetic-{number}",
        display=f"Synthetic {number}",
        reasoning="none",
        dataset=reference,
        prompt=PromptRef(name="paper", sha256="0"),
        tasks=tuple(dataset.by_task),
        limit=None,
        settings={},
        versions={},
        created="",
        source="imported",
    )


def synthetic_text(item: Item, draws: random.Random) -> str:
    """Return a response in one of the forms that models use, in shares like the study's."""
    truth = item.answer
    draw = draws.random()
    if not isinstance(truth, str):
        return f'{{"answer": [{", ".join(truth if draw < 0.9 else truth[::-1])}]}}'
    if item.task == "interval":
        return f'{{"answer": "{truth if draw < 0.9 else "F"}"}}'
    if draw < 0.55:
        return f'{{"answer": {truth}}}'
    if draw < 0.57:
        return f"The answer is {truth}"
    if draw < 0.572:
        return f'{{"answer": {truth}{"" if "." in truth else "."}{"0" * 65_000}'
    if draw < 0.58:
        return (
            f'<think>{item.prompt} {truth}? {"Let me check. " * 200}</think>{{"answer": {truth}}}'
        )
    index = draws.choice([i for i, digit in enumerate(truth) if digit.isdigit()])
    wrong = f"{truth[:index]}{draws.randrange(1, 10)}{truth[index + 1 :]}"
    return f'{{"answer": {wrong if draw < 0.92 else repr(float(wrong))}}}'


def timed(stage: Callable[[], T]) -> tuple[T, float]:
    """Return the result of a stage and the CPU-seconds of its fastest run, with empty caches."""
    times = []
    for _ in range(REPEATS):
        for cache in CACHES:
            cache.cache_clear()
        start = time.process_time()
        result = stage()
        times.append(time.process_time() - start)
    return result, min(times)


def repeated(folders: list[Path], rows: int) -> list[Path]:
    """Repeat the runs until they contain at least `rows` responses."""
    sizes = {folder: len(read_run(folder).responses) for folder in folders}
    chosen: list[Path] = []
    total = 0
    for folder in cycle(folders):
        if total >= rows:
            return chosen
        chosen.append(folder)
        total += sizes[folder]
    return chosen


def pairs_of(folders: list[Path], rows: int) -> list[tuple[Item, Response]]:
    """Return the first items and responses of the runs."""

    def pairs() -> Iterator[tuple[Item, Response]]:
        for folder in folders:
            run = read_run(folder)
            for items in open_run_dataset(run.info.dataset, folder).by_task.values():
                for item in items:
                    if item.id in run.responses:
                        yield item, run.responses[item.id]

    return list(islice(pairs(), rows))


def summarize_all(runs: list[ScoredRun]) -> list[dict[str, TaskSummary]]:
    """Summarize all runs."""
    return [summarize(run) for run in runs]


def measure(folders: list[Path], rows: int) -> tuple[int, list[Stage]]:
    """Return the number of rows and the time of every stage."""
    chosen = repeated(folders, rows)
    pairs = pairs_of(chosen, rows)
    stages = []

    def add(name: str, run: Callable[[], object], share: float = 1) -> None:
        stages.append(Stage(name, timed(run)[1] * share))

    read = sum(len(read_run(folder).responses) for folder in chosen)
    add("read the journal", lambda: [read_run(folder) for folder in chosen], len(pairs) / read)
    add("parse and score, `exact`", lambda: [score_exact(*pair) for pair in pairs])
    mixed = random.Random(1).sample(pairs, len(pairs))
    once = list({item.id: (item, response) for item, response in mixed}.values())
    share = len(pairs) / len(once)
    add("`exact`, every item once", lambda: [score_exact(*pair) for pair in once], share)
    add("parse and score, `lenient`", lambda: [score_lenient(*pair) for pair in pairs])
    add("parse and score, `paper`", lambda: [score_paper(*pair) for pair in pairs])
    for protocol in get_args(ProtocolName):
        scored = [score_run(folder, protocol) for folder in folders]
        scored_rows = sum(len(rows) for run in scored for rows in run.rows.values())
        summaries = partial(summarize_all, scored)
        add(f"summarize, `{protocol}`", summaries, len(pairs) / scored_rows)
    return len(pairs), stages


def print_table(rows: int, stages: list[Stage]) -> None:
    """Print one line per stage."""
    print(f"| stage | rows per CPU-second | CPU-seconds for {rows:,} |")
    print("|---|---:|---:|")
    for stage in stages:
        print(f"| {stage.name} | {rows / stage.seconds:,.0f} | {stage.seconds:.2f} |")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, default=os.environ.get("NUMBENCH_PAPER_RESULTS"))
    parser.add_argument("--rows", type=int, default=58_500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="numbench-") as name:
        folder = Path(name)
        study = options.study is not None
        folders = (
            import_study(Path(options.study), folder, lambda _: None)
            if study
            else synthetic_runs(folder)
        )
        rows, stages = measure(folders, options.rows)
    source = "The study's raw responses" if study else "Synthetic responses to `v1`"
    print("# Speed of scoring\n")
    print(f"`make bench`, Python {platform.python_version()}, one core. {source}, repeated.\n")
    print_table(rows, stages)


if __name__ == "__main__":
    main()
