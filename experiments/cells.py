"""What the tables say of the runs that are kept: cells, and the caption below them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.bittoken.training.measuring import chance
from bench.errors import BadInput
from bench.report.escape import markdown
from experiments.kept import Bounded, Scores, differing, read_scores
from experiments.layout import EXACT, SMAPE, Column, Layout, Row

Kept = dict[str, list[Scores]]
"""Runs by their names without the seed, each list by seed."""

_SEED = re.compile(r"-s\d+$")
_SEEDS_ONLY = {"name", "training.seed"}


def read_kept(folder: Path) -> Kept:
    """All runs kept in `folder`. BadInput where runs differ in more than their seed."""
    kept: Kept = defaultdict(list)
    for path in sorted(folder.glob("*/scores.json")):
        scores = read_scores(path.parent)
        assert scores is not None
        if scores.run != path.parent.name or not scores.run.endswith(f"-s{scores.seed}"):
            raise BadInput(
                f"{path}: is of run {scores.run!r} and seed {scores.seed}, in folder "
                f"{path.parent.name!r}: a run is named NAME-sSEED, and so is its folder"
            )
        kept[_SEED.sub("", scores.run)].append(scores)
    for name, runs in kept.items():
        runs.sort(key=lambda run: run.seed)
        for run in runs[1:]:
            fields = set(differing(runs[0].recipe, run.recipe)) - _SEEDS_ONLY
            fields |= set(differing(runs[0].dataset, run.dataset, "dataset"))
            if fields:
                said = ", ".join(sorted(fields))
                raise BadInput(f"{folder}: {name}: {runs[0].run} and {run.run} differ in {said}")
    return dict(kept)


def runs_of(layout: Layout, column: Column, kept: Kept) -> list[Scores]:
    """All runs that a column shows, each once."""
    names = dict.fromkeys(column.run_name(task) for task in layout.tasks)
    return [run for name in names if name for run in kept.get(name, ())]


def compared(layout: Layout, kept: Kept) -> bool:
    """Whether at least two columns have something to show."""
    return sum(bool(runs_of(layout, column, kept)) for column in layout.columns) > 1


def measured(column: Column, row: Row, kept: Kept) -> str:
    """One cell, each figure with a link to its run; empty where nothing was run."""
    name = column.run_name(row.task)
    runs = [run for run in kept.get(name or "", ()) if row.task in run.tasks]
    found = [(run, _score(run, row)) for run in runs if row.ours]
    if not found:
        return ""
    links = [f"[{score.value:.1f}]({run.run}/)" for run, score in found]
    if len(found) == 1:
        (_, score) = found[0]
        return f"{links[0]} ({score.low:.1f}–{score.high:.1f})"
    mean = sum(score.value for _, score in found) / len(found)
    return f"{mean:.1f} ({' '.join(links)})"


def chance_of(row: Row) -> str:
    """Percent that guessing gets, where there is something to guess among."""
    found = chance(row.task) if row.metric == EXACT and row.ours else 0.0
    return f"{100 * found:.1f}" if found else ""


def _score(run: Scores, row: Row) -> Bounded:
    score = run.tasks[row.task]
    if row.metric != SMAPE:
        return score.exact_match
    assert score.log_smape is not None
    return score.log_smape


FACTS: tuple[tuple[str, Callable[[Scores], float]], ...] = (
    ("Seeds", lambda run: run.seed),
    ("Parameters", lambda run: run.parameters),
    ("Budget, tokens", lambda run: run.recipe.training.tokens),
    ("Tokens a question", lambda run: run.tokens_a_question),
    ("Best step", lambda run: run.best_step),
    ("Training, seconds", lambda run: round(run.seconds)),
)
"""What stands below the scores of a column."""


def fact(runs: Sequence[Scores], name: str, value: Callable[[Scores], float]) -> str:
    """A figure of all runs of a column: the seeds each, of others lowest and highest."""
    found = sorted({value(run) for run in runs})
    if name == "Seeds":
        return ", ".join(f"{seed:.0f}" for seed in found)
    return _span(found)


def caption(runs: Sequence[Scores], layout: Layout) -> str:
    """How the figures of a table came about, worked out from its runs."""
    if not runs:
        return "Nothing of this table has been run yet; *italics*: published."
    shapes = _each(
        f"{m.layers} × {m.width}, {m.heads} heads" for m in (r.recipe.model for r in runs)
    )
    sizes = _span(sorted({score.items for run in runs for score in run.tasks.values()}))
    data = _each(f"`{run.dataset.name}@{run.dataset.sha256[:6]}`" for run in runs)
    digits = _span(sorted({run.recipe.data.digits for run in runs}))
    devices = _each(f"{markdown(run.device)}, {threads(run.threads)}" for run in runs)
    versions = _each(f"numbench {run.version}, torch {markdown(run.torch)}" for run in runs)
    budget = _span(sorted({run.recipe.training.tokens for run in runs}))
    batch = _span(sorted({run.recipe.training.batch_tokens for run in runs}))
    parts = [
        f"**Measured** at a budget of {budget} tokens a training ({batch} a step)",
        f"{_span(sorted({run.parameters for run in runs}))} parameters ({shapes})",
        f"{_span(sorted({round(run.seconds) for run in runs}))} s of training on {devices}",
        f"seeds {', '.join(str(seed) for seed in sorted({run.seed for run in runs}))}",
        f"at most {digits} digits an operand, in training and in the dataset {data}, "
        f"{sizes} items a task",
        versions,
    ]
    return "; ".join(parts) + "."


def threads(count: int) -> str:
    """`1 thread`, `8 threads`."""
    return f"{count} thread{'s' if count > 1 else ''}"


def _each(texts: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(texts))


def _span(values: Sequence[float]) -> str:
    """The lowest and the highest of sorted `values`."""
    if not values:
        return ""
    shown = [f"{value:,.0f}" for value in (values[0], values[-1])]
    return "–".join(dict.fromkeys(shown))
