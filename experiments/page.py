"""The page of all tables (results/trained/README.md): the same runs give the same bytes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bittoken.training.recipe import differing_fields
from bittoken.training.validation import expected_chance_accuracy
from experiments.results_store import ScoreEstimate, TrainingScores, read_scores
from experiments.table_layout import (
    EXACT,
    SMAPE,
    LayoutColumn,
    LayoutRow,
    TableLayout,
    published_cell,
    rows_of,
)
from numbench.errors import BadInput
from numbench.reporting.escape import escape_markdown
from numbench.tasks import TASKS

INTRODUCTION = Path(__file__).with_name("page.md")
FINDINGS = "findings.md"
_CAPTION = (
    "In percent; in parentheses the 95 % interval over items, or the score of each seed. "
    "*Italics*: published. The two are not measured in the same way (see above)."
)

RunsByName = dict[str, list[TrainingScores]]
"""Runs by name without the seed, each list sorted by seed."""

_SEED = re.compile(r"-s\d+$")
_SEEDS_ONLY = {"name", "training.seed"}

FACTS: tuple[tuple[str, Callable[[TrainingScores], float]], ...] = (
    ("Seeds", lambda run: run.seed),
    ("Parameters", lambda run: run.parameters),
    ("Budget, tokens", lambda run: run.recipe.training.tokens),
    ("Tokens per question", lambda run: run.tokens_a_question),
    ("Best step", lambda run: run.best_step),
    ("Training, seconds", lambda run: round(run.seconds)),
)
"""The rows below the scores of a table, and their values for a run."""


def read_runs(folder: Path) -> RunsByName:
    """Return all stored runs. Raises BadInput if runs of one name differ in more than the seed."""
    stored: RunsByName = defaultdict(list)
    for path in sorted(folder.glob("*/scores.json")):
        scores = read_scores(path.parent)
        assert scores is not None
        if scores.run != path.parent.name or not scores.run.endswith(f"-s{scores.seed}"):
            raise BadInput(
                f"{path}: has run {scores.run!r} and seed {scores.seed}, but is in the folder "
                f"{path.parent.name!r}; run and folder must both be named NAME-sSEED"
            )
        stored[_SEED.sub("", scores.run)].append(scores)
    for name, runs in stored.items():
        runs.sort(key=lambda run: run.seed)
        for run in runs[1:]:
            fields = set(differing_fields(runs[0].recipe, run.recipe)) - _SEEDS_ONLY
            fields |= set(differing_fields(runs[0].dataset, run.dataset, "dataset"))
            if fields:
                listed = ", ".join(sorted(fields))
                raise BadInput(f"{folder}: {name}: {runs[0].run} and {run.run} differ in {listed}")
    return dict(stored)


def read_findings(path: Path, layouts: Sequence[TableLayout]) -> dict[str, str]:
    """Return the handwritten paragraphs by table name, which is their `## ` heading.

    Raises BadInput if a heading is not the name of a table.
    """
    if not path.is_file():
        return {}
    parts = re.split(r"^## +(.+?) *$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    names = [layout.name for layout in layouts]
    findings = dict(zip(parts[1::2], (text.strip() for text in parts[2::2]), strict=True))
    for name in findings:
        if name not in names:
            raise BadInput(f"{path}: no table {name!r}; use one of {', '.join(names)}")
    return findings


def render_page(
    layouts: Sequence[TableLayout], stored: RunsByName, findings: dict[str, str], lead: str
) -> str:
    """Return the page as Markdown. lead: the results at its top."""
    parts = [INTRODUCTION.read_text(encoding="utf-8").rstrip().replace("{lead}", lead)]
    for layout in layouts:
        runs = [run for column in layout.columns for run in runs_of(layout, column, stored)]
        parts += [f"## {layout.title}", _table(layout, stored), caption(runs, layout), _CAPTION]
        parts += [layout.note] if layout.note else []
        if findings.get(layout.name):
            parts.append(f"**Findings.** {findings[layout.name]}")
        if has_comparison(layout, stored):
            parts.append(f"![Learning curves: {layout.title}](curves/{layout.name}.png)")
    return "\n\n".join(parts) + "\n"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], alignment: str) -> str:
    """Return a Markdown table. alignment: `l` or `r` per column."""
    rule = [{"l": ":--", "r": "--:"}[side] for side in alignment]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def _table(layout: TableLayout, stored: RunsByName) -> str:
    header = ["Task", "Metric", "Chance"]
    for column in layout.columns:
        header += [column.title, "*paper*"]
    rows = [_row(layout, row, stored) for row in rows_of(layout)]
    for name, value in FACTS:
        cells = [name, "", ""]
        for column in layout.columns:
            cells += [fact_cell(runs_of(layout, column, stored), name, value), ""]
        rows.append(cells)
    return markdown_table(header, rows, "ll" + "r" * (len(header) - 2))


def _row(layout: TableLayout, row: LayoutRow, stored: RunsByName) -> list[str]:
    name = TASKS[row.task].display if row.in_benchmark else row.task
    cells = [name, row.metric, chance_cell(row)]
    for column in layout.columns:
        published = published_cell(layout, column, row)
        cells += [measured_cell(column, row, stored), f"*{published}*" if published else ""]
    return cells


def runs_of(layout: TableLayout, column: LayoutColumn, stored: RunsByName) -> list[TrainingScores]:
    """Return all runs of a column, each once."""
    names = dict.fromkeys(column.run_name(task) for task in layout.tasks)
    return [run for name in names if name for run in stored.get(name, ())]


def has_comparison(layout: TableLayout, stored: RunsByName) -> bool:
    """Return whether at least two columns have runs."""
    return sum(bool(runs_of(layout, column, stored)) for column in layout.columns) > 1


def measured_cell(column: LayoutColumn, row: LayoutRow, stored: RunsByName) -> str:
    """Return the scores of a cell, each linked to its run; empty without runs."""
    name = column.run_name(row.task)
    runs = [run for run in stored.get(name or "", ()) if row.task in run.tasks]
    scores = [(run, _score(run, row)) for run in runs if row.in_benchmark]
    if not scores:
        return ""
    links = [f"[{score.value:.1f}]({run.run}/)" for run, score in scores]
    if len(scores) == 1:
        ((_, score),) = scores
        return f"{links[0]} {score.interval}"
    mean = sum(score.value for _, score in scores) / len(scores)
    return f"{mean:.1f} ({' '.join(links)})"


def chance_cell(row: LayoutRow) -> str:
    """Return the chance accuracy in percent; empty if answers cannot be guessed."""
    return format_chance(row.task) if row.metric == EXACT and row.in_benchmark else ""


def format_chance(task: str) -> str:
    """Return the chance accuracy of a task in percent, empty if it is 0."""
    chance = expected_chance_accuracy(task)
    return f"{100 * chance:.1f}" if chance else ""


def _score(run: TrainingScores, row: LayoutRow) -> ScoreEstimate:
    score = run.tasks[row.task]
    if row.metric != SMAPE:
        return score.exact_match
    assert score.log_smape is not None
    return score.log_smape


def fact_cell(
    runs: Sequence[TrainingScores], name: str, value: Callable[[TrainingScores], float]
) -> str:
    """Return a fact of a column's runs: every seed, otherwise the minimum and maximum."""
    values = sorted({value(run) for run in runs})
    if name == "Seeds":
        return ", ".join(f"{seed:.0f}" for seed in values)
    return _range(values)


def caption(runs: Sequence[TrainingScores], layout: TableLayout) -> str:
    """Return how the scores of a table were measured, derived from its runs."""
    if not runs:
        return "No runs yet; *italics*: published."
    shapes = _distinct(
        f"{m.layers} × {m.width}, {m.heads} heads" for m in (r.recipe.model for r in runs)
    )
    items = _range(sorted({score.items for run in runs for score in run.tasks.values()}))
    data = _distinct(f"`{run.dataset.name}@{run.dataset.sha256[:6]}`" for run in runs)
    digits = _range(sorted({run.recipe.data.digits for run in runs}))
    devices = _distinct(
        f"{escape_markdown(run.device)}, {format_threads(run.threads)}" for run in runs
    )
    versions = _distinct(
        f"numbench {run.version}, torch {escape_markdown(run.torch)}" for run in runs
    )
    budget = _range(sorted({run.recipe.training.tokens for run in runs}))
    batch = _range(sorted({run.recipe.training.batch_tokens for run in runs}))
    parts = [
        f"**Measured** with a budget of {budget} tokens per training ({batch} per step)",
        f"{_range(sorted({run.parameters for run in runs}))} parameters ({shapes})",
        f"{_range(sorted({round(run.seconds) for run in runs}))} s of training on {devices}",
        f"seeds {', '.join(str(seed) for seed in sorted({run.seed for run in runs}))}",
        f"at most {digits} digits per operand, in training and in the dataset {data}, "
        f"{items} items per task",
        versions,
    ]
    return "; ".join(parts) + "."


def format_threads(count: int) -> str:
    """Return `1 thread`, `8 threads`."""
    return f"{count} thread{'s' if count > 1 else ''}"


def _distinct(texts: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(texts))


def _range(values: Sequence[float]) -> str:
    """Return the minimum and maximum of sorted `values` as text."""
    if not values:
        return ""
    ends = [f"{value:,.0f}" for value in (values[0], values[-1])]
    return "–".join(dict.fromkeys(ends))
