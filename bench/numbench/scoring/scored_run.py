"""Score a run, and summarize its scores per task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numbench._version import __version__
from numbench.dataset.store import Dataset, open_run_dataset, read_published_labels
from numbench.errors import BadInput, MissingTask
from numbench.horizon.items import asked_items
from numbench.journal.run_folder import read_info, read_run
from numbench.journal.served_models import ServedModels
from numbench.models.prices import find_answer_price, with_cost
from numbench.models.providers import find_provider
from numbench.records import ProtocolName, Response, RunInfo, Score, Status
from numbench.scoring import paper_protocol
from numbench.scoring.scored_rows import ScoredItem, ScoredRows, TaskSource, score_rows
from numbench.tasks import TASKS
from numbench.tasks.base import FORMS
from numbench.transforms import variant_of_run

MIN_ANSWERED_PERCENT = 99
"""A complete run answers so many of the samples of each task."""


class ScoredRun(NamedTuple):
    """A run under one protocol.

    rows: task → scored items, both in the dataset's order, with the items as they were asked. The
    samples of an item are next to each other, in their order. served: who answered.
    """

    path: Path
    info: RunInfo
    dataset: Dataset
    protocol: ProtocolName
    rows: dict[str, ScoredRows]
    served: ServedModels

    @property
    def late_prices(self) -> Counter[str]:
        """How many costs follow from a price that was found later, by the origin of the price."""
        columns = (rows.columns["late_price"].tolist() for rows in self.rows.values())
        return Counter(filter(None, chain.from_iterable(columns)))

    def __repr__(self) -> str:
        counts = ", ".join(f"{task}: {len(rows)}" for task, rows in self.rows.items())
        name = f"{self.info.model}, {self.info.reasoning}, {self.protocol}"
        return f"ScoredRun({str(self.path)!r}, {name}, {counts})"


class TaskSummary(NamedTuple):
    """The summary of one task of a run.

    All means are over items, of the means over the samples of each item.

    n: items of the run.
    counted: items included in the means; `exact` and `lenient` leave out samples with the status
        missing or error, and items without any other; `paper` takes the first 500 items with any
        status.
    score: mean of the task's headline metric (log-sMAPE or exact match), 0 to 100; None, like
        exact_match, if no item is counted.
    tokens: mean generated tokens over the responses with a token count, None if no response has
        one; for `paper` the token counts that the study averaged.
    tokens_unknown: counted responses that are not included in that mean.
    statuses: number of samples per status: of items, with one sample per item.
    by_value: exact match if the correct value in another form counts too; None for a task that asks
        for no form.
    compliance: percentage of responses in the requested format, 0 to 100 (`has_requested_format`);
        None if no item is counted, and for `paper`.
    """

    n: int
    counted: int
    score: float | None
    exact_match: float | None
    by_value: float | None
    tokens: float | None
    tokens_unknown: int
    statuses: dict[Status, int]
    compliance: float | None


def score_run(
    folder: Path, protocol: ProtocolName = "exact", dataset: Dataset | None = None
) -> ScoredRun:
    """Score the run in `folder`: each of its tasks, with the items that the run includes.

    dataset: the run's dataset; by default it is opened from where the run refers to. The items of
    a horizon measurement are those with a response.

    Raises BadInput if there is no run, if its dataset is not found or differs from `dataset`, or
    if the dataset does not have a task of the run.
    """
    run = read_run(folder)
    if run.info.horizon is not None:
        # In the order of the journal.
        answered = dict.fromkeys(response.item_id for response in run.responses.values())
        dataset = asked_items(folder, run.info, list(answered))
    elif dataset is None:
        dataset = open_run_dataset(run.info.dataset, folder)
    elif dataset.manifest.sha256 != run.info.dataset.sha256:
        raise BadInput(
            f"{folder}: the run answers dataset {run.info.dataset.name!r} "
            f"({run.info.dataset.sha256[:6]}), not {dataset.name!r} "
            f"({dataset.manifest.sha256[:6]})"
        )
    if missing := [task for task in run.info.tasks if task not in dataset.tasks]:
        raise MissingTask(
            f"{folder}: task {', '.join(map(repr, missing))} is not installed, or not in the "
            f"dataset at {dataset.path}; install the package that provides it"
        )
    if protocol == "paper" and run.info.transform:
        raise BadInput(
            f"{folder}: the protocol paper is for the questions as they were published, not after "
            f"the transformation {run.info.transform}: use the protocol exact"
        )
    labels = read_published_labels(dataset.path) if protocol == "paper" else {}
    price = _late_costs(run.info)
    variant = variant_of_run(folder, run.info)
    rows = {
        task: score_rows(TaskSource(task, items, variant.ask, run, price, protocol, labels))
        for task, items in dataset.by_task.items()
        if task in run.info.tasks
    }
    return ScoredRun(folder, run.info, dataset, protocol, rows, run.served)


def _late_costs(info: RunInfo) -> Callable[[Response], Response]:
    """Return the function that adds the cost to an answer if it became known since."""
    settings = info.settings
    route, base_url = (str(settings.get(name) or "") for name in ("route", "base_url"))
    params, provider = settings.get("request"), find_provider(route.partition("/")[0])
    if info.source != "measured" or provider is None or not isinstance(params, dict):
        return lambda response: response
    find = cache(partial(find_answer_price, route, base_url or None, params))

    def priced(response: Response) -> Response:
        if response.cost is not None or response.error is not None:
            return response
        is_batch = response.batch_job is not None
        discount = provider.batch_discount if is_batch else 0.0
        return with_cost(response, find(response.served_model, is_batch), discount)

    return priced


def score_dataset_run(folder: Path, protocol: ProtocolName = "exact") -> ScoredRun:
    """Score a run on a dataset.

    Raises BadInput for a horizon measurement: the means of its scores depend on the sizes that it
    chose.
    """
    if read_info(folder).horizon is not None:
        raise BadInput(f"{folder} holds a horizon measurement, not a run on a dataset")
    return score_run(folder, protocol)


def summarize(run: ScoredRun) -> dict[str, TaskSummary]:
    """Summarize every task of a scored run."""
    return {task: _summarize_task(run, task) for task in run.rows}


def counted_rows(run: ScoredRun, task: str) -> ScoredRows:
    """Return the samples that are included in a task's means (see `TaskSummary`)."""
    rows = run.rows[task]
    if run.protocol == "paper":
        return rows[: paper_protocol.ITEMS_PER_TASK * run.info.samples]
    return rows.select(rows.is_answered)


def _summarize_task(run: ScoredRun, task: str) -> TaskSummary:
    counted = counted_rows(run, task)
    columns = counted.columns
    formats = ("json", "object") if run.info.prompt.working else ("json",)
    tokens = counted.item_means(columns["tokens"])
    tokens = tokens[~np.isnan(tokens)]
    unknown = np.isnan(columns["tokens"]) & (columns["offset"] >= 0)

    def percent(shares: npt.NDArray[Any]) -> float | None:
        means = counted.item_means(shares.astype(np.float64)).tolist()
        return 100 * sum(means) / len(means) if means else None

    return TaskSummary(
        n=item_count(run, task),
        counted=len(counted.items),
        score=percent(counted.headline),
        exact_match=percent(columns["exact_match"]),
        by_value=percent(counted.by_value) if TASKS[task].answer_kind in FORMS else None,
        tokens=fmean(tokens.tolist()) if len(tokens) else None,
        tokens_unknown=int(unknown.sum()),
        statuses=dict(Counter(run.rows[task].columns["status"].tolist())),
        compliance=None if run.protocol == "paper" else percent(np.isin(columns["rule"], formats)),
    )


def has_requested_format(score: Score, allows_working: bool) -> bool:
    """Return whether a response is a JSON object with the answer, and nothing else.

    allows_working: whether the prompt allows text before the answer; an object in a text counts.
    """
    return score.rule == "json" or (allows_working and score.rule == "object")


def headline_score(task: str, score: Score) -> float:
    """Return a score in the task's headline metric, 0 to 1."""
    if TASKS[task].metric == "log_smape" and score.log_smape is not None:
        return score.log_smape
    return float(score.exact_match)


def item_count(run: ScoredRun, task: str) -> int:
    """Return the number of items of a task of a run, whatever the number of samples."""
    return len(run.rows[task]) // run.info.samples


def few_shot_count(info: RunInfo) -> int:
    """Return the number of worked examples before each question of a run."""
    count = info.settings.get("few_shot")
    return count if isinstance(count, int) else 0


def signature(run: ScoredRun, task: str) -> str:
    """Describe how a score was made: `numbench:0.1.0|data:v1@3f9c2a|prompt:paper|…`."""
    info = run.info
    parts = {
        "numbench": __version__,
        "data": run.dataset.label,
        "prompt": info.prompt.label,
        "transform": info.transform or None,
        "protocol": run.protocol,
        "n": item_count(run, task),
        "shard": info.shard,
        "samples": info.samples if info.samples > 1 else None,
        "model": info.model,
        "reasoning": info.reasoning,
        "shots": few_shot_count(info) or None,
        "tools": info.settings.get("tools") or None,
        "request": info.requests[task][:6] if task in info.requests else None,
    }
    return "|".join(f"{name}:{value}" for name, value in parts.items() if value is not None)


class Completeness(NamedTuple):
    """How many of the expected samples are answered. by_task: task → (answered, expected)."""

    by_task: Mapping[str, tuple[int, int]]

    @property
    def answered(self) -> int:
        """Return the number of samples with an answer."""
        return sum(answered for answered, _ in self.by_task.values())

    @property
    def total(self) -> int:
        """Return the number of expected samples."""
        return sum(total for _, total in self.by_task.values())

    @property
    def incomplete_tasks(self) -> list[str]:
        """Return the tasks with answers to fewer than 99% of their samples."""
        return [
            task
            for task, (answered, total) in self.by_task.items()
            if 100 * answered < MIN_ANSWERED_PERCENT * total
        ]

    @property
    def is_complete(self) -> bool:
        """Return whether at least 99% of the samples of every task are answered.

        The others, which may be the hard ones, then move a task's score by 1 point at most.
        """
        return not self.incomplete_tasks

    def __str__(self) -> str:
        """Return `27 of 4,500`."""
        return f"{self.answered:,} of {self.total:,}"


def completeness(
    run: ScoredRun, expected: Mapping[str, Collection[str]] | None = None
) -> Completeness:
    """Return how many samples a run answers: of its dataset, or of the `expected` item ids by task.

    Samples that `--limit`, `--tasks` or a shard leaves out, that an interruption left open, and
    those whose request failed have no answer.
    """
    items = run.dataset.by_task if expected is None else expected
    by_task = {}
    for task, of_task in items.items():
        rows = run.rows.get(task)
        answered: Sequence[ScoredItem] = rows.select(rows.is_answered) if rows else ()
        if expected is not None:
            ids = frozenset(expected[task])
            answered = [row for row in answered if row.item.id in ids]
        by_task[task] = len(answered), len(of_task) * run.info.samples
    return Completeness(by_task)
