"""The difficulty check: rank correlations of score and difficulty, as tables and a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import jsonl
from bench.describe.build import write_figure
from bench.describe.scores import read_scores
from bench.report import figures
from bench.report.difficulty import curves, difficulty_curves
from bench.report.grid import Block, Grid, to_csv, to_markdown
from bench.report.layout import shown
from bench.report.ranks import spearman
from bench.report.series import Series, TaskScores
from bench.tasks import TASKS

NAME = "difficulty_check"
_CSV_HEADER = ("task", "model", "reasoning", "n", "rho_base10", "rho_base2", "chance")
_NOTES = (
    "Spearman's rank correlation between the difficulty of an item and its score (log-sMAPE; "
    "comparisons: exact match), exact protocol. Below 0, harder items score lower. The last row "
    "correlates the mean score of the models on each item that all of them answered.",
    "Empty: not asked, or all scores of the task are equal. Without any relation, ρ lies within "
    "±1.96/√(n − 1) in 95 % of cases; a column that is nearly all right leaves little to order.",
)


class Correlation(NamedTuple):
    """Spearman's ρ of score and difficulty, None where it is undefined.

    chance: the bound that |ρ| keeps in 95 % of cases where nothing relates the two (normal
    approximation), None for a single item.
    """

    task: str
    model: str
    reasoning: str
    n: int
    base10: float | None
    base2: float | None
    chance: float | None


def check_difficulty(runs: Sequence[Path], out: Path) -> Path:
    """As `bench.describe.difficulty_check`."""
    scores = read_scores(runs)
    found = correlations(scores)
    jsonl.write_atomically(out / f"{NAME}.csv", _csv(found).encode())
    jsonl.write_atomically(out / f"{NAME}.md", to_markdown(_grid(found)).encode())
    with figures.style():
        write_figure(out, NAME, difficulty_curves(scores, curves(scores)))
    return out


def correlations(scores: Sequence[TaskScores]) -> list[Correlation]:
    """One per task and run in their order; after the runs of a task their mean."""
    return [
        _correlation(of_task.task, series)
        for of_task in scores
        for series in (*of_task.runs, *([of_task.pooled] if of_task.pooled else []))
    ]


def _correlation(task: str, series: Series) -> Correlation:
    n = series.score.size
    return Correlation(
        task,
        series.model,
        series.reasoning,
        n,
        spearman(series.score, series.base10),
        spearman(series.score, series.base2),
        1.96 / math.sqrt(n - 1) if n > 1 else None,
    )


def _csv(found: Sequence[Correlation]) -> str:
    rows = [
        [
            c.task,
            c.model,
            c.reasoning,
            str(c.n),
            *(shown(value, 3) for value in (c.base10, c.base2, c.chance)),
        ]
        for c in found
    ]
    return to_csv(_CSV_HEADER, rows)


def _grid(found: Sequence[Correlation]) -> Grid:
    """Models down, tasks across: ρ in base 10, ρ in base 2, and the number of items."""
    tasks = list(dict.fromkeys(c.task for c in found))
    # The mean over the models last, though it follows the runs of each task.
    rows = list(dict.fromkeys((c.model, c.reasoning) for c in found))
    rows.sort(key=lambda row: row[1] == "")
    cells = {(c.model, c.reasoning, c.task): c for c in found}

    def block(heading: str, write: Callable[[Correlation], str]) -> Block:
        lines = []
        for model, reasoning in rows:
            own = [cells.get((model, reasoning, task)) for task in tasks]
            lines.append([model, reasoning, *(write(c) if c else "" for c in own)])
        return Block(heading, lines)

    header = ["Model", "Reasoning", *(TASKS[task].display for task in tasks)]
    blocks = [
        block("ρ, difficulty in base 10", lambda c: shown(c.base10, 2)),
        block("ρ, difficulty in base 2", lambda c: shown(c.base2, 2)),
        block("n", lambda c: str(c.n)),
    ]
    return Grid(NAME, "Score against difficulty", header, 2, blocks, _NOTES)
