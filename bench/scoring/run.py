"""Scores of a whole run, and their summary per task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bench import __version__
from bench.dataset.store import Dataset, dataset_of_run
from bench.errors import BadInput
from bench.journal import Run, read_run
from bench.records import Item, ProtocolName, Response, RunInfo, Score, Status
from bench.scoring import paper
from bench.scoring.exact import score_exact
from bench.scoring.labels import read_labels
from bench.tasks import TASKS

NOT_ANSWERED: frozenset[Status] = frozenset({"missing", "error"})
"""Statuses of items for which there is nothing from the model that could be judged."""


class Row(NamedTuple):
    """One item of a run with what came back for it and how that was judged."""

    item: Item
    response: Response | None
    score: Score


class ScoredRun(NamedTuple):
    """A run under one protocol; `rows` per task, in the dataset's order."""

    path: Path
    info: RunInfo
    dataset: Dataset
    protocol: ProtocolName
    rows: dict[str, list[Row]]


class Cell(NamedTuple):
    """The summary of one task of a run.

    n: items that were asked. counted: those that enter the means; `exact` leaves out items
        whose status is missing or error, `paper` takes the first 500 whatever became of them.
    score: mean of the task's headline metric (log-sMAPE or exact match), 0 … 100; like
        exact_match None where nothing is counted.
    tokens: mean generated tokens over the responses that know them, None where none does; for
        `paper` what the study averaged.
    tokens_unknown: counted responses that are not in that mean.
    statuses: how many of the n items have which status.
    compliance: share of responses in the form that was asked for (rule 1), 0 … 100; None where
        there is no response, and for `paper`, which does not look at it.
    """

    n: int
    counted: int
    score: float | None
    exact_match: float | None
    tokens: float | None
    tokens_unknown: int
    statuses: dict[Status, int]
    compliance: float | None


def score_run(
    folder: Path, protocol: ProtocolName = "exact", dataset: Dataset | None = None
) -> ScoredRun:
    """Score the run in `folder`: its tasks, and the first `limit` items of each.

    BadInput where there is no run, where its dataset cannot be found or is not the one given,
    or lacks a task of the run.
    """
    run = read_run(folder)
    if dataset is None:
        dataset = dataset_of_run(run.info.dataset, folder)
    elif dataset.manifest.sha256 != run.info.dataset.sha256:
        raise BadInput(
            f"{folder}: answers dataset {run.info.dataset.name!r} "
            f"({run.info.dataset.sha256[:6]}), not {dataset.name!r} "
            f"({dataset.manifest.sha256[:6]})"
        )
    lacking = [task for task in run.info.tasks if task not in dataset.by_task]
    if lacking:
        raise BadInput(f"{folder}: its dataset at {dataset.path} lacks {', '.join(lacking)}")
    labels = read_labels(dataset.path) if protocol == "paper" else {}
    rows = {
        task: _score_items(dataset.by_task[task][: run.info.limit], run, protocol, labels)
        for task in TASKS
        if task in run.info.tasks
    }
    return ScoredRun(folder, run.info, dataset, protocol, rows)


def _score_items(
    items: Iterable[Item], run: Run, protocol: ProtocolName, labels: dict[str, str]
) -> list[Row]:
    rows = []
    for item in items:
        response = run.responses.get(item.id)
        if protocol == "paper":
            score = paper.score_paper(item, response, labels.get(item.id))
        else:
            score = score_exact(item, response)
        rows.append(Row(item, response, score))
    return rows


def summarize(run: ScoredRun) -> dict[str, Cell]:
    """The summary of every task of a scored run."""
    return {task: _cell(run, task) for task in run.rows}


def counted_rows(run: ScoredRun, task: str) -> list[Row]:
    """The rows that enter a task's means, as `Cell` describes them."""
    if run.protocol == "paper":
        return run.rows[task][: paper.ITEMS]
    return [row for row in run.rows[task] if row.score.status not in NOT_ANSWERED]


def token_counts(run: ScoredRun, rows: Iterable[Row]) -> list[float]:
    """The token counts that enter a mean over `rows`, one per response that knows its own."""
    responses = [row.response for row in rows if row.response]
    if run.protocol == "paper":
        return paper.tokens(run.info, responses)
    counts = [response.usage.generated for response in responses]
    return [float(count) for count in counts if count is not None]


def _cell(run: ScoredRun, task: str) -> Cell:
    rows, counted = run.rows[task], counted_rows(run, task)
    known = token_counts(run, counted)
    compliance = None
    if run.protocol == "exact":
        compliance = _percent([row.score.rule == 1 for row in counted])
    return Cell(
        n=len(rows),
        counted=len(counted),
        score=_percent([headline(task, row.score) for row in counted]),
        exact_match=_percent([row.score.exact_match for row in counted]),
        tokens=sum(known) / len(known) if known else None,
        tokens_unknown=sum(row.response is not None for row in counted) - len(known),
        statuses=dict(Counter(row.score.status for row in rows)),
        compliance=compliance,
    )


def headline(task: str, score: Score) -> float:
    """The score in the task's headline metric, 0 … 1."""
    if TASKS[task].metric == "log_smape" and score.log_smape is not None:
        return score.log_smape
    return float(score.exact_match)


def _percent(shares: list[bool] | list[float]) -> float | None:
    return 100 * sum(shares) / len(shares) if shares else None


def shots(info: RunInfo) -> int:
    """Worked examples before each question of a run."""
    count = info.settings.get("few_shot")
    return count if isinstance(count, int) else 0


def signature(run: ScoredRun, task: str) -> str:
    """How a score came about, in one line: `numbench:0.1.0|data:v1@3f9c2a|prompt:paper|…`."""
    info = run.info
    parts = (
        ("numbench", __version__),
        ("data", f"{run.dataset.name}@{run.dataset.manifest.sha256[:6]}"),
        ("prompt", info.prompt.name),
        ("protocol", run.protocol),
        ("n", str(len(run.rows[task]))),
        ("model", info.model),
        ("reasoning", info.reasoning),
        *([("shots", str(shots(info)))] if shots(info) else []),
    )
    return "|".join(f"{key}:{value}" for key, value in parts)
