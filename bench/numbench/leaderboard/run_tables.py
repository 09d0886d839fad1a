"""What a leaderboard shows of a run and a report lacks: tables, settings and hashes of files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from numbench.dataset.store import sha256_of
from numbench.journal import INFO, RESPONSES
from numbench.records import RunInfo
from numbench.reporting.data import ReportData
from numbench.reporting.tables.model import NAME_COLUMNS, BuiltTable, Cell, Column, Row, Table
from numbench.tasks import TASKS

_FILES = (INFO, RESPONSES, "requests.jsonl", "rounds.jsonl")
"""The files of a run that its scores depend on, or that show how it was made."""

_COUNTS = (Column("answered", "Answered", "count"), Column("questions", "Questions", "count"))


def incomplete_table(data: ReportData) -> BuiltTable:
    """Return the runs that do not answer their whole dataset: without ranks, most answers first."""
    order = sorted(range(len(data.runs)), key=lambda i: -data.runs[i].completeness.answered)
    rows = []
    for index in order:
        run = data.runs[index]
        cells: dict[str, Cell] = {"model": run.name, "level": run.level}
        cells |= {"answered": run.completeness.answered, "questions": run.completeness.total}
        rows.append(Row(cells, data.group_of(run).heading, run=index))
    caption = (
        "These runs lack more than 1% of the answers to a task. They have no rank, and are in no "
        "comparison and no figure."
    )
    return _table("incomplete", "Incomplete runs", caption, (*NAME_COLUMNS, *_COUNTS), rows)


def score_table(data: ReportData, index: int, is_ranked: bool) -> BuiltTable:
    """Return the scores of one run, one row per task; an incomplete run has no ranks."""
    run = data.runs[index]
    rows = []
    for task in run.cells:
        answered, total = run.completeness.by_task[task]
        cells: dict[str, Cell] = {
            "task": TASKS[task].display,
            "score": data.estimate(run, "score", task),
            "exact_match": data.estimate(run, "exact_match", task),
            "tokens": data.estimate(run, "generated_tokens", task),
            "ranks": data.ranks[task].get(index) if is_ranked else None,
            "answered": answered,
            "questions": total,
        }
        rows.append(Row(cells))
    caption = (
        "Score: log-sMAPE in percent, or exact match where an answer is a letter or a list. "
        "Possible ranks: among the runs and published configurations on the same questions (95% "
        "confidence for all of them together). Tokens: generated per answer. Below a value: its "
        "95% interval."
    )
    columns = (
        Column("task", "Task"),
        Column("score", "Score", ".1f"),
        Column("exact_match", "Exact match", ".1f"),
        Column("tokens", "Tokens", ",.0f"),
        Column("ranks", "Possible ranks", "ranks"),
        *_COUNTS,
    )
    return _table("scores", "Scores", caption, columns, rows)


def _table(
    name: str,
    title: str,
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
) -> BuiltTable:
    table = Table(name, title, caption, columns, lambda data: rows)
    return BuiltTable(table, tuple(columns), tuple(rows), ())


def settings(info: RunInfo) -> dict[str, str]:
    """Return what shaped the requests of a run, as pairs of name and text."""
    known: dict[str, object] = {
        "Model": info.model,
        "Reasoning level": info.reasoning,
        "Source": info.source,
        "Created": info.created or "not recorded",
        "Dataset": f"{info.dataset.name}, sha256 {info.dataset.sha256}",
        "Prompts": f"{info.prompt.name}, sha256 {info.prompt.sha256}",
        "Form of the questions": info.transform or "as in the dataset",
        "Samples per question": info.samples,
    }
    for name, value in info.settings.items():
        # An address may be of a private network.
        is_address = name == "base_url"
        known["Server" if is_address else f"Setting {name}"] = (
            "chosen with --base-url" if is_address else value
        )
    known |= {f"Version of {name}": value for name, value in info.versions.items()}
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in known.items()
    }


def file_hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a run folder that documents its scores."""
    return {name: sha256_of(folder / name) for name in _FILES if (folder / name).is_file()}
