"""Scored runs as rows of the tables: means from scoring, bounds from the items behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bench.report.intervals import Column, Interval, bootstrap_means, wilson
from bench.report.layout import (
    EXACT_MATCH,
    LOG_SMAPE,
    TABLES,
    TOKENS,
    Entry,
    Estimate,
    level_rank,
    one_line,
)
from bench.report.published import published_models
from bench.scoring import Cell, ScoredRun, headline, signature, summarize
from bench.scoring.run import counted_rows, shots, token_counts
from bench.tasks import TASKS


class Measured(NamedTuple):
    """A scored run with its summary, its row of the tables and the signature of each task."""

    run: ScoredRun
    cells: dict[str, Cell]
    entry: Entry
    signatures: dict[str, str]

    @property
    def label(self) -> str:
        """`GPT 5 (minimal)`, with what tells it apart from its like."""
        note = f", {self.entry.note}" if self.entry.note else ""
        return f"{self.entry.model} ({self.entry.reasoning}{note})"


class _Place(NamedTuple):
    """Where in the tables a bootstrapped interval belongs."""

    run: int
    table: str
    task: str


def measure(runs: Sequence[ScoredRun]) -> list[Measured]:
    """The runs summarized, models in the paper's order and levels from most to none."""
    ordered = _ordered(runs)
    cells = [summarize(run) for run in ordered]
    tables = _estimates(ordered, cells)
    notes = _notes(ordered)
    return [
        Measured(
            run,
            cells[place],
            Entry(display(run), level(run), tables[place], note=notes[place]),
            {task: signature(run, task) for task in run.rows},
        )
        for place, run in enumerate(ordered)
    ]


def display(run: ScoredRun) -> str:
    """The model's name for people, on one line."""
    return one_line(run.info.display)


def level(run: ScoredRun) -> str:
    """The reasoning level, on one line."""
    return one_line(run.info.reasoning)


def dataset_label(run: ScoredRun) -> str:
    """`v1@3f9c2a`: the dataset's name and the beginning of its hash."""
    return one_line(f"{run.dataset.name}@{run.dataset.manifest.sha256[:6]}")


def _ordered(runs: Sequence[ScoredRun]) -> list[ScoredRun]:
    models = list(dict.fromkeys([*published_models(), *(display(run) for run in runs)]))
    return sorted(runs, key=lambda run: (models.index(display(run)), level_rank(level(run))))


def _notes(runs: Sequence[ScoredRun]) -> list[str]:
    """The examples shown; for runs still alike the dataset, and the folder if need be."""
    like = [(display(run), level(run), shots(run.info)) for run in runs]
    data = [(*like[place], dataset_label(run)) for place, run in enumerate(runs)]
    alike, same_data = Counter(like), Counter(data)
    notes = []
    for place, run in enumerate(runs):
        parts = [f"{shots(run.info)}-shot"] if shots(run.info) else []
        if alike[like[place]] > 1:
            parts.append(dataset_label(run))
            if same_data[data[place]] > 1:
                parts.append(one_line(run.path.as_posix()))
        notes.append(", ".join(parts))
    return notes


def _estimates(
    runs: Sequence[ScoredRun], cells: Sequence[dict[str, Cell]]
) -> list[dict[str, dict[str, Estimate]]]:
    """Per run: table → task → estimate, for every cell that has a value."""
    tables: list[dict[str, dict[str, Estimate]]] = [
        {spec.name: {} for spec in TABLES} for _ in runs
    ]
    waiting: dict[_Place, Column] = {}
    for place, (run, summary) in enumerate(zip(runs, cells, strict=True)):
        for task, cell in summary.items():
            rows = counted_rows(run, task)
            is_number = TASKS[task].metric == "log_smape"
            if cell.exact_match is not None:
                spec = EXACT_MATCH if is_number else LOG_SMAPE
                bounds = wilson(sum(row.score.exact_match for row in rows), len(rows))
                tables[place][spec.name][task] = _proportion(cell.exact_match, bounds)
            if is_number and cell.score is not None:
                waiting[_Place(place, LOG_SMAPE.name, task)] = np.array(
                    [100 * headline(task, row.score) for row in rows]
                )
            if cell.tokens is not None:
                waiting[_Place(place, TOKENS.name, task)] = np.array(token_counts(run, rows))
    intervals = bootstrap_means(list(waiting.values()))
    for where, interval in zip(waiting, intervals, strict=True):
        cell = cells[where.run][where.task]
        value = cell.tokens if where.table == TOKENS.name else cell.score
        assert value is not None
        tables[where.run][where.table][where.task] = Estimate(value, *interval)
    return tables


def _proportion(value: float, bounds: Interval) -> Estimate:
    return Estimate(value, 100 * bounds.low, 100 * bounds.high)
