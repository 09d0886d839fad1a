"""What the responses on disk mean for a run: which requests are open, and what they have cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import get_args

import msgspec

from numbench.errors import BadInput
from numbench.horizon.items import AskedItems
from numbench.journal import INFO, RESPONSES, iter_responses, read_jobs
from numbench.jsonl import read_json
from numbench.models.prices import Price, with_cost
from numbench.records import (
    FailureKind,
    Item,
    ItemSample,
    Job,
    Response,
    RunInfo,
    Scalar,
    possibly_billed_attempts,
)
from numbench.records import request_id as request_id_of
from numbench.runner.progress import RunStats, ScoreCallback, TaskProgress, judged
from numbench.runner.resolution import ResolvedRun
from numbench.runner.spec import RetryKind
from numbench.sent_requests import lost_requests
from numbench.served_models import ServedModels

Outcomes = dict[str, FailureKind | RetryKind | None]
"""Request id to the kind of its failure, or of its defect as an answer, None if it is answered."""


_FAILURES = get_args(FailureKind)


def with_stored_token_limit(resolved: ResolvedRun) -> ResolvedRun:
    """Return the run with the token limit of its folder in `info`, if it retries truncated answers.

    The requests have the limit that the user gave, which is recorded in their responses, or without
    one that of the folder.
    """
    path, spec = resolved.folder / INFO, resolved.spec
    if "truncated" not in spec.retry or not path.is_file():
        return resolved
    stored = read_json(path, RunInfo).settings.get("max_tokens")
    info = msgspec.structs.replace(
        resolved.info, settings=resolved.info.settings | {"max_tokens": stored}
    )
    if spec.max_tokens is not None or not isinstance(stored, int | None):
        return replace(resolved, info=info)
    return replace(resolved, info=info, settings=replace(resolved.settings, max_tokens=stored))


@dataclass
class RunState:
    """What the responses of a run on disk say, without their texts.

    outcomes: of each request with a response; an error never replaces an answer. in_progress: the
    ids of requests in active jobs that have no response from their job yet. results: what counts of
    each request. costs: item and US dollars of all responses with a known cost. possibly_billed:
    attempts without an answer that may have been billed, by item. unpriced: an item with an answer
    of unknown cost. served: which models, providers and versions answered.
    """

    outcomes: Outcomes = field(default_factory=dict)
    in_progress: set[str] = field(default_factory=set)
    results: dict[str, TaskProgress] = field(default_factory=dict)
    costs: list[tuple[str, float]] = field(default_factory=list)
    possibly_billed: Counter[str] = field(default_factory=Counter)
    unpriced: str | None = None
    served: ServedModels = field(default_factory=ServedModels)

    @property
    def spent(self) -> float:
        """US dollars that the run has cost, as far as they are known."""
        return sum(dollars for _, dollars in self.costs)

    def statistics(
        self,
        so_far: Iterable[ItemSample],
        unanswered: Iterable[ItemSample],
        judge: ScoreCallback | None,
    ) -> RunStats:
        """Return the statistics of a run so far; every recorded response was paid for.

        so_far: all requests, or of a measurement those of its rounds so far.
        """
        requests = {request.id: request for request in so_far}
        stats = RunStats((request.item for request in requests.values()), judge)
        open_ids = {request.id for request in unanswered}
        tasks = {request.item.id: request.task for request in requests.values()}
        for request_id, result in self.results.items():
            if request_id in requests and request_id not in open_ids:
                stats.count_previous(result)
        for item_id, dollars in self.costs:
            if item_id in tasks:
                stats.add_previous_cost(tasks[item_id], dollars)
        return stats


def read_state(
    resolved: ResolvedRun, price: Price | None, judge: ScoreCallback | None = None
) -> RunState:
    """Read the journal of a run once. Raises BadInput for a broken line.

    judge: decides whether an answer is correct. Responses to items that the run does not have count
    for the costs only.
    """
    folder, state = resolved.folder, RunState()
    active = [job for job in read_jobs(folder).values() if job.is_active]
    job_of = {request_id: job.id for job in active for request_id in job.items}
    discount = resolved.description.batch_discount or 0.0
    asked = {item.id: item for items in resolved.items_by_task.values() for item in items}
    is_horizon = isinstance(resolved.dataset, AskedItems)
    # What a killed call left in flight has no response before the journal is opened.
    lost = lost_requests(folder, folder / RESPONSES)
    for response in chain(iter_responses(folder), lost):
        item = asked.get(response.item_id)
        if item is None and is_horizon:
            item = _horizon_item(resolved.dataset, response.item_id)
        # An item's own string takes no further memory.
        request_id = request_id_of(item.id if item else response.item_id, response.sample)
        was_batch = "batch_job" in response.extra
        response = with_cost(response, price, discount if was_batch else 0.0)
        if job_of.get(request_id) == response.extra.get("batch_job", ()):
            del job_of[request_id]
        item_id = item.id if item else response.item_id
        if response.cost is not None:
            state.costs.append((item_id, response.cost))
        elif response.error is None:
            state.unpriced = item_id
        if attempts := possibly_billed_attempts(response):
            state.possibly_billed[item_id] += attempts
        state.served.count(response)
        if response.error is None:
            state.outcomes[request_id] = _defect(response)
        elif state.outcomes.get(request_id, "item") in _FAILURES:
            state.outcomes[request_id] = response.error.kind
        else:
            continue
        if item is not None:
            state.results[request_id] = judged(item, response, judge)
    state.in_progress = set(job_of)
    return state


def _horizon_item(dataset: object, item_id: str) -> Item:
    assert isinstance(dataset, AskedItems)
    try:
        return dataset.items.by_id(item_id)
    except ValueError as error:
        raise BadInput(f"{dataset.path}: {error}") from error


def _defect(response: Response) -> RetryKind | None:
    """Return why a response is no usable answer, as far as the provider says."""
    if response.finish_reason == "length":
        return "truncated"
    if response.finish_reason == "refusal":
        return "refused"
    return None if response.text.strip() else "empty"


def open_requests(
    resolved: ResolvedRun,
    requests: Iterable[ItemSample],
    outcomes: Outcomes,
    retry: Collection[str],
    in_progress: Container[str] = (),
) -> list[ItemSample]:
    """Return the requests to send: new ones, temporary failures, and those to `retry`.

    With a new token limit these are only the truncated ones. in_progress: the ids of requests in
    active jobs. They may be retries of an earlier call, whose answers are paid for.
    """
    if resolved.has_new_token_limit:
        return [request for request in requests if outcomes.get(request.id) == "truncated"]
    return [
        request
        for request in requests
        if request.id in in_progress or _is_open(outcomes, request.id, retry)
    ]


def _is_open(outcomes: Outcomes, request_id: str, retry: Collection[str]) -> bool:
    if request_id not in outcomes:
        return True
    outcome = outcomes[request_id]
    if outcome in _FAILURES and outcome != "item":
        return True
    return ("error" if outcome == "item" else outcome) in retry


def retry_notes(
    outcome: object, new_token_limit: int | None, job: Job | None = None
) -> dict[str, Scalar]:
    """Return what the response to a retried request records of the retry.

    outcome: of the request before. new_token_limit: of the requests of this call, None if it is
    that of the run. job: the job that generated the answer, maybe for an earlier call.
    """
    if outcome not in (*get_args(RetryKind), "item"):
        return {}
    notes: dict[str, Scalar] = {"retry_of": "error" if outcome == "item" else str(outcome)}
    limit = job.max_tokens if job else new_token_limit
    return notes if limit is None else notes | {"max_tokens": limit}
