"""Datasets and scores for the Hugging Face hub.

A dataset becomes a folder for `datasets.load_dataset`; one of the test split is also registered as
a benchmark, by the file `eval.yaml`. The scores of runs become evaluation results of a model's
repository, `.eval_results/*.yaml` (https://huggingface.co/docs/hub/eval-results).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from numbench import jsonl
from numbench.dataset.store import Dataset
from numbench.ecosystem.exported_items import (
    answer_text,
    copy_file,
    render_template,
    system_prompt,
)
from numbench.errors import BadInput
from numbench.journal import find_runs
from numbench.records import Item
from numbench.reporting.data import Configuration, ReportData
from numbench.reporting.names import one_line
from numbench.scoring import ScoredRun, score_run, signature
from numbench.scoring.completeness import MIN_ANSWERED_PERCENT, completeness
from numbench.scoring.scored_run import few_shot_count
from numbench.tasks import TASKS

RESULTS_FOLDER = ".eval_results"

_CARD_MARKER = "pretty_name: numbench"
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B",
          "1B<n<10B", "10B<n<100B")  # fmt: skip
_METRIC_NAMES = {"log_smape": "log-sMAPE", "exact_match": "exact match"}
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


def export_huggingface(source: Dataset, out: Path) -> list[Path]:
    """Write each task as Parquet, the dataset card and `eval.yaml`; return the files.

    Only a dataset of the test split has an `eval.yaml`: others are no benchmarks.

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
    if manifest.split == "test":
        description = (
            f"Arithmetic questions with exact answers: {total:,} items, {len(files)} tasks. "
            f"A score is the mean of a task in percent: {_metric(source)}. "
            f"SHA-256 of the data: {manifest.sha256}"
        )
        text = render_template(
            "eval.yaml.j2", name=source.name, description=description, tasks=source.tasks
        )
        jsonl.write_atomically(out / "eval.yaml", text.encode())
        written.append(out / "eval.yaml")
    return written


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


class Benchmark(NamedTuple):
    """What the results refer to.

    repository: the benchmark's dataset on the hub, `OWNER/NAME`. revision: the commit of that
    dataset, None if unknown. source: the URL of the report or the responses, None if unpublished.
    """

    repository: str
    revision: str | None = None
    source: str | None = None


def export_eval_results(paths: Sequence[Path], benchmark: Benchmark, out: Path) -> list[Path]:
    """Write a file of results per run at or below `paths`, and return the files.

    A value is the task's headline score in percent: log-sMAPE, or exact match.

    Raises BadInput if a path has no run, the runs are of several models, two runs would have the
    same file, or a run is not complete or has transformed items: such a score is not that of the
    benchmark.
    """
    if not _REPOSITORY.fullmatch(benchmark.repository):
        raise BadInput(f"{benchmark.repository!r} is not the name of a repository; use OWNER/NAME")
    runs = [score_run(folder) for folder in find_runs(paths)]
    models = sorted({run.info.model for run in runs})
    if len(models) > 1:
        raise BadInput(
            f"runs of several models ({', '.join(models)}): a repository has the results of one"
        )
    for run in runs:
        _check_complete(run)
    texts: dict[Path, str] = {}
    data = ReportData(runs, references=False)
    for configuration in data.runs:
        scored = configuration.scored
        assert scored
        file = out / RESULTS_FOLDER / _file_name(scored)
        if file in texts:
            raise BadInput(f"{scored.path}: another run has the same settings; export one of them")
        entries = [_entry(data, configuration, scored, task) for task in configuration.tasks]
        texts[file] = render_template(
            "eval_results.yaml.j2", entries=entries, benchmark=benchmark, date=scored.info.created
        )
    for file, text in texts.items():
        jsonl.write_atomically(file, text.encode())
    return list(texts)


def _check_complete(run: ScoredRun) -> None:
    if run.info.transform:
        raise BadInput(
            f"{run.path}: the questions are transformed ({run.info.transform}); "
            "their score is not that of the benchmark"
        )
    known = completeness(run)
    for task in known.incomplete_tasks:
        answered, total = known.by_task[task]
        raise BadInput(
            f"{run.path}: task {task!r} has {answered} of {total} answers (at least "
            f"{MIN_ANSWERED_PERCENT}% required per task); complete the run before you publish its "
            "scores"
        )


def _file_name(run: ScoredRun) -> str:
    """Return a name that differs between settings, because a model may have several runs."""
    shots = few_shot_count(run.info)
    parts = ["numbench", run.dataset.name, run.info.reasoning, run.info.prompt.name]
    parts += [f"{shots}-shot"] if shots else []
    return re.sub(r"[^\w.-]+", "-", "-".join(parts), flags=re.ASCII) + ".yaml"


def _entry(
    data: ReportData, configuration: Configuration, run: ScoredRun, task: str
) -> dict[str, object]:
    """Return a score, with its reasoning level, metric, interval, protocol and signature."""
    estimate = data.estimate(configuration, "score", task)
    assert estimate
    known = estimate.low is not None and estimate.high is not None
    interval = f"{estimate.low:.2f} to {estimate.high:.2f}" if known else "unknown"
    answered, total = completeness(run).by_task[task]
    notes = (
        f"reasoning: {one_line(run.info.reasoning)}",
        f"{_METRIC_NAMES[TASKS[task].metric]} in percent",
        f"95% interval: {interval}",
        *([f"answered: {answered} of {total}"] if answered < total else []),
        f"protocol: {run.protocol}",
        f"signature: {signature(run, task)}",
    )
    return {"task": task, "value": round(estimate.value, 4), "notes": "; ".join(notes)}
