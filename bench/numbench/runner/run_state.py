"""What a run has on disk: the responses say which requests are open, and what they have cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from numbench.core.texts import Sentences
from numbench.errors import BadInput, bad_input_at
from numbench.horizon.items import AskedItems
from numbench.journal.conversations import Conversations
from numbench.journal.run_folder import iter_responses, lost_requests, read_jobs, resumed_info
from numbench.journal.served_models import ServedModels
from numbench.records import Item, ItemSample, Response
from numbench.records import request_id as request_id_of
from numbench.runner.budget import RunCosts
from numbench.runner.estimates import estimated_costs
from numbench.runner.prepared_run import PreparedRun
from numbench.runner.progress import RunStats, ScoreCallback, TaskProgress, judged
from numbench.runner.spec import RetryKind
from numbench.thinking_text import separate_thinking

_text = Sentences(__file__)

Outcomes = dict[str, RetryKind | Literal["failed"] | None]
"""Request id to its defect as an answer or its failure; None if it is answered.

error: a permanent failure. failed: a temporary one.
"""


@dataclass
class RunState:
    """What the responses of a run on disk say when a call begins, without their texts.

    served: which models, providers and versions answered. costs: of all responses. Both then count
    the responses of the call too.
    outcomes: of each request with a response; an error never replaces an answer. uncollected: the
    ids of the requests that have no response from their job yet, by the key of the job.
    in_progress: those of active jobs. results: what counts of each request of the run. paid: US
    dollars for questions of the run, by task. unpriced: an item with an answer of unknown cost.
    conversations: the replies of those that have not ended. was_reached: whether the server has
    replied.
    """

    served: ServedModels
    costs: RunCosts
    outcomes: Outcomes = field(default_factory=dict)
    uncollected: dict[str, set[str]] = field(default_factory=dict)
    in_progress: set[str] = field(default_factory=set)
    results: dict[str, TaskProgress] = field(default_factory=dict)
    paid: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    unpriced: str | None = None
    conversations: Conversations = field(default_factory=Conversations)
    was_reached: bool = False

    def statistics(
        self,
        so_far: Iterable[ItemSample],
        unanswered: Iterable[ItemSample],
        judge: ScoreCallback | None,
    ) -> RunStats:
        """Return the statistics of a run so far; every recorded response was paid for.

        so_far: all requests, or of a measurement those of its rounds so far.
        """
        stats = RunStats((request.item for request in so_far), judge)
        open_ids = {request.id for request in unanswered}
        for request_id, result in self.results.items():
            if request_id not in open_ids:
                stats.add(result)
                stats.previously_done += 1
        for task, cost in self.paid.items():
            stats.add(TaskProgress(task, cost=cost))
        return stats


def read_state(prepared: PreparedRun, judge: ScoreCallback | None = None) -> RunState:
    """Read the journal of a run once.

    judge: decides whether an answer is correct. Responses to items that the run does not have count
    for the costs only. Raises BadInput for a broken line, if answers in progress would be paid for
    again without `--batch`, or if the costs so far, or those of a batch job, whose requests are
    sent all at once, rule out a cost limit.
    """
    folder = prepared.folder
    served = ServedModels(resumed_info(folder, prepared.info))
    state = RunState(served, RunCosts(*estimated_costs(prepared)))
    jobs = [job for job in read_jobs(folder).values() if job.state != "collected"]
    if not prepared.spec.batch and any(job.is_active for job in jobs):
        raise BadInput(_text("active_job", folder=folder))
    state.uncollected = {job.key: set(job.items) for job in jobs}
    by_id = {job.id: state.uncollected[job.key] for job in jobs if job.id}
    asked = {item.id: item for items in prepared.items_by_task.values() for item in items}
    dataset, known = prepared.dataset, dict[TaskProgress, TaskProgress]()
    # What a killed call left in flight has no response before the journal is opened.
    for response in chain(iter_responses(folder), lost_requests(folder)):
        item = asked.get(response.item_id)
        if item is None and isinstance(dataset, AskedItems):
            with bad_input_at(dataset.path, ValueError):
                item = dataset.items.by_id(response.item_id)
        # An item's own string takes no further memory.
        request_id = request_id_of(item.id if item else response.item_id, response.sample)
        response = prepared.with_cost(response, is_batch=response.batch_job is not None)
        if uncollected := by_id.get(response.batch_job or ""):
            uncollected.discard(request_id)
        _count_cost(prepared, state, response, item)
        state.was_reached |= response.error is None or response.error.status is not None
        response = state.conversations.join(response)
        state.served.count(response)
        if response.error is None:
            state.outcomes[request_id] = answer_defect(response)
        elif state.outcomes.get(request_id, "error") in ("error", "failed"):
            state.outcomes[request_id] = "error" if response.error.kind == "item" else "failed"
        else:
            continue
        if item is not None and response.sample < prepared.spec.samples:
            # Many are the same.
            result = judged(item, response, judge)
            state.results[request_id] = known.setdefault(result, result)
    active = (state.uncollected[job.key] for job in jobs if job.is_active)
    state.in_progress = set().union(*active)
    _check_known_costs(prepared, state)
    return state


def _check_known_costs(prepared: PreparedRun, state: RunState) -> None:
    """Raise BadInput if what a run has on disk, or its batch, rules its cost limit out."""
    if prepared.spec.max_cost is None:
        return
    if state.unpriced is not None:
        raise BadInput(_text("unpriced", item=state.unpriced))
    unknown = [task for task in prepared.info.tasks if state.costs.tasks[task].estimate is None]
    if prepared.spec.batch and unknown:
        model, tasks = prepared.spec.model, ", ".join(unknown)
        raise BadInput(_text("unknown_costs", model=model, tasks=tasks))


def _count_cost(
    prepared: PreparedRun, state: RunState, response: Response, item: Item | None
) -> None:
    task = item.task if item else prepared.dataset.task_of(response.item_id)
    if (cost := response.known_cost) is not None:
        state.costs.add_cost(task, cost)
        if item is not None:
            state.paid[task] += cost
    if response.cost is None and response.error is None:
        state.unpriced = response.item_id
    if attempts := response.possibly_billed_attempts:
        state.costs.add_possibly_billed(task, attempts, is_earlier=True)


def answer_defect(response: Response) -> RetryKind | None:
    """Return why a response is not usable, as far as the provider and its thinking say."""
    answer, _, is_open = separate_thinking(response.text)
    if response.finish_reason == "length" or (is_open and response.finish_reason is None):
        return "truncated"
    if response.finish_reason == "refusal":
        return "refused"
    return None if answer.strip() else "empty"


def open_requests(
    prepared: PreparedRun,
    requests: Iterable[ItemSample],
    outcomes: Outcomes,
    retry: Collection[str],
    in_progress: Container[str] = (),
) -> list[ItemSample]:
    """Return the requests to send: new ones, temporary failures, and those to `retry`.

    With a new token limit these are only the truncated ones. in_progress: the ids of requests in
    active jobs. They may be retries of an earlier call, whose answers are paid for.
    """
    if prepared.retry_token_limit is not None:
        return [request for request in requests if outcomes.get(request.id) == "truncated"]
    return [
        request
        for request in requests
        if request.id in in_progress or outcomes.get(request.id, "failed") in {"failed", *retry}
    ]
