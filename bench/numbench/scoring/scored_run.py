"""Score a run, and summarize its scores per task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from numbench._version import __version__
from numbench.dataset.store import Dataset, open_run_dataset, read_published_labels
from numbench.errors import BadInput, MissingTask
from numbench.horizon.items import asked_items
from numbench.journal.run_folder import Run, read_info, read_run
from numbench.models.prices import Price, find_answer_price, with_cost
from numbench.models.providers import find_provider
from numbench.records import (
    Item,
    ProtocolName,
    Response,
    RunInfo,
    Score,
    Status,
    request_id,
)
from numbench.scoring import paper_protocol
from numbench.scoring.error_kinds import UNANSWERED_STATUSES
from numbench.scoring.exact_protocol import score_exact, score_lenient
from numbench.tasks import TASKS
from numbench.tasks.base import FORMS
from numbench.thinking_text import move_thinking
from numbench.transforms import variant_of_run

_SCORERS = {"exact": score_exact, "lenient": score_lenient}


class ScoredItem(NamedTuple):
    """One sample of an item of a run, with its response (None if there is none) and score."""

    item: Item
    response: Response | None
    score: Score

    @property
    def sample(self) -> int:
        """The index of the sample, 0 for the first."""
        return self.score.sample

    @property
    def is_answered(self) -> bool:
        """Whether the model returned any output for the item."""
        return self.score.status not in UNANSWERED_STATUSES


class ScoredRun(NamedTuple):
    """A run under one protocol.

    rows: task → scored items, both in the dataset's order, with the items as they were asked. The
    samples of an item are next to each other, in their order. late_prices: how many costs follow
    from a price that was unknown when the answer was stored, by the origin of the price.
    """

    path: Path
    info: RunInfo
    dataset: Dataset
    protocol: ProtocolName
    rows: dict[str, list[ScoredItem]]
    late_prices: Mapping[str, int] = MappingProxyType({})

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
    run, late_prices = _with_late_costs(read_run(folder))
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
    variant = variant_of_run(folder, run.info)
    rows = {
        task: _score_items(
            map(variant.ask, run.info.select_items(dataset.by_task[task])), run, protocol, labels
        )
        for task in dataset.tasks
        if task in run.info.tasks
    }
    return ScoredRun(folder, run.info, dataset, protocol, rows, late_prices)


def _with_late_costs(run: Run) -> tuple[Run, Counter[str]]:
    """Return a run with the costs that became known since, and how many by the price's origin."""
    settings, origins = run.info.settings, Counter[str]()
    route, base_url = (str(settings.get(name) or "") for name in ("route", "base_url"))
    params, provider = settings.get("request"), find_provider(route.partition("/")[0])
    if run.info.source != "measured" or provider is None or not isinstance(params, dict):
        return run, origins
    prices: dict[tuple[str | None, bool], Price | None] = {}
    responses = dict(run.responses)
    for name, response in run.responses.items():
        if response.cost is not None or response.error is not None:
            continue
        key = served, is_batch = response.served_model, response.batch_job is not None
        if key not in prices:
            prices[key] = find_answer_price(route, base_url or None, params, served, is_batch)
        discount = provider.batch_discount if is_batch else 0.0
        responses[name] = priced = with_cost(response, prices[key], discount)
        if priced.cost_source is not None:
            origins[priced.cost_source] += 1
    return run._replace(responses=responses), origins


def score_dataset_run(folder: Path, protocol: ProtocolName = "exact") -> ScoredRun:
    """Score a run on a dataset.

    Raises BadInput for a horizon measurement: the means of its scores depend on the sizes that it
    chose.
    """
    if read_info(folder).horizon is not None:
        raise BadInput(f"{folder} holds a horizon measurement, not a run on a dataset")
    return score_run(folder, protocol)


def _score_items(
    items: Iterable[Item], run: Run, protocol: ProtocolName, labels: dict[str, str]
) -> list[ScoredItem]:
    rows = []
    for item in items:
        for sample in range(run.info.samples):
            raw = run.responses.get(request_id(item.id, sample))
            # What others recorded is shown, and scored by the paper's rules, as it is.
            is_measured = raw is not None and run.info.source == "measured"
            response = move_thinking(raw) if raw and is_measured else raw
            if protocol == "paper":
                score = paper_protocol.score_paper(item, response, labels.get(item.id))
            else:
                score = _SCORERS[protocol](item, raw)
            if sample:
                score = msgspec.structs.replace(score, sample=sample)
            rows.append(ScoredItem(item, response, score))
    return rows


def summarize(run: ScoredRun) -> dict[str, TaskSummary]:
    """Summarize every task of a scored run."""
    return {task: _summarize_task(run, task) for task in run.rows}


def counted_rows(run: ScoredRun, task: str) -> list[ScoredItem]:
    """Return the samples that are included in a task's means (see `TaskSummary`)."""
    if run.protocol == "paper":
        return run.rows[task][: paper_protocol.ITEMS_PER_TASK * run.info.samples]
    return [row for row in run.rows[task] if row.is_answered]


def item_groups(rows: Iterable[ScoredItem]) -> list[list[ScoredItem]]:
    """Return the samples of each item. Those of one item must be next to each other in `rows`."""
    return [list(group) for _, group in groupby(rows, key=attrgetter("item.id"))]


def item_means(
    groups: Iterable[list[ScoredItem]], value: Callable[[ScoredItem], float | None]
) -> list[float]:
    """Return the mean of the known values of each item; items without one are left out."""
    means = []
    for group in groups:
        values = [known for row in group if (known := value(row)) is not None]
        if values:
            means.append(float(values[0]) if len(values) == 1 else fmean(values))
    return means


def token_counts(run: ScoredRun, rows: Iterable[ScoredItem]) -> list[float]:
    """Return the known token counts of the responses in `rows`."""
    responses = [row.response for row in rows if row.response]
    if run.protocol == "paper":
        return paper_protocol.study_token_counts(run.info, responses)
    counts = [response.usage.generated for response in responses]
    return [float(count) for count in counts if count is not None]


def _summarize_task(run: ScoredRun, task: str) -> TaskSummary:
    rows, counted = run.rows[task], counted_rows(run, task)
    items = item_groups(counted)
    scores = item_means(items, lambda row: headline_score(task, row.score))
    values = item_means(items, lambda row: is_correct_by_value(row.score))
    tokens = token_counts(run, counted)
    means = tokens
    if run.info.samples > 1:
        means = [fmean(known) for group in items if (known := token_counts(run, group))]
    allows_working = run.info.prompt.working
    compliance = item_means(items, lambda row: has_requested_format(row.score, allows_working))
    return TaskSummary(
        n=item_count(run, task),
        counted=len(scores),
        score=_percent(scores),
        exact_match=_percent(item_means(items, lambda row: row.score.exact_match)),
        by_value=_percent(values) if TASKS[task].answer_kind in FORMS else None,
        tokens=fmean(means) if means else None,
        tokens_unknown=sum(row.response is not None for row in counted) - len(tokens),
        statuses=dict(Counter(row.score.status for row in rows)),
        compliance=None if run.protocol == "paper" else _percent(compliance),
    )


def has_requested_format(score: Score, allows_working: bool) -> bool:
    """Return whether a response is a JSON object with the answer, and nothing else.

    allows_working: whether the prompt allows text before the answer; an object in a text counts.
    """
    return score.rule == "json" or (allows_working and score.rule == "object")


def is_correct_by_value(score: Score) -> bool:
    """Return whether an answer has the correct value, in the requested form or another one."""
    return score.exact_match or score.error_kind == "form"


def headline_score(task: str, score: Score) -> float:
    """Return a score in the task's headline metric, 0 to 1."""
    if TASKS[task].metric == "log_smape" and score.log_smape is not None:
        return score.log_smape
    return float(score.exact_match)


def headline_percent(task: str, score: Score) -> float:
    """Return a score in the task's headline metric, 0 to 100."""
    return 100 * headline_score(task, score)


def _percent(shares: Sequence[float]) -> float | None:
    return 100 * sum(shares) / len(shares) if shares else None


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
    parts = (
        ("numbench", __version__),
        ("data", f"{run.dataset.name}@{run.dataset.manifest.sha256[:6]}"),
        ("prompt", info.prompt.label),
        *([("transform", info.transform)] if info.transform else []),
        ("protocol", run.protocol),
        ("n", str(item_count(run, task))),
        *([("shard", str(info.shard))] if info.shard else []),
        *([("samples", str(info.samples))] if info.samples > 1 else []),
        ("model", info.model),
        ("reasoning", info.reasoning),
        *([("shots", str(few_shot_count(info)))] if few_shot_count(info) else []),
        *([("tools", str(tools))] if (tools := info.settings.get("tools")) else []),
        *([("request", info.requests[task][:6])] if task in info.requests else []),
    )
    return "|".join(f"{key}:{value}" for key, value in parts)
