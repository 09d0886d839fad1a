"""What the responses on disk mean for a run: which requests are open, and what they have cost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec

from numbench.errors import BadInput
from numbench.journal import INFO, iter_responses, read_jobs
from numbench.jsonl import read_json
from numbench.records import Completion, FailureKind, ItemSample, Job, Response, RunInfo, Scalar
from numbench.runner.progress import RunStats, ScoreCallback
from numbench.runner.spec import ResolvedRun, RunSpec

RetryKind = Literal["empty", "truncated", "refused", "error"]
"""What `--retry` requests again: answers that are none, and permanent failures."""

Outcomes = dict[str, FailureKind | RetryKind | None]
"""Request id to the kind of its failure, or of its defect as an answer, None if it is answered."""


_FAILURES = get_args(FailureKind)
_JOB_IDS = ("batch_job", "id")
"""Where a response has the id of its batch job, and of its generation in the background."""


def retry_kinds(retry: Iterable[str], retry_errors: bool = False) -> frozenset[str]:
    """Return the kinds of responses to request again. Raises BadInput for an unknown one."""
    kinds = frozenset(retry) | ({"error"} if retry_errors else set())
    if unknown := sorted(kinds - set(get_args(RetryKind))):
        raise BadInput(
            f"unknown --retry {', '.join(unknown)}: use {', '.join(get_args(RetryKind))}"
        )
    return kinds


def with_stored_token_limit(
    resolved: ResolvedRun, spec: RunSpec, retry: Collection[str]
) -> ResolvedRun:
    """Return the run with the token limit of its folder in `info`, if it retries truncated answers.

    The requests have the limit of `spec`, which is recorded in their responses, or without one
    that of the folder.
    """
    path = resolved.folder / INFO
    if "truncated" not in retry or not path.is_file():
        return resolved
    stored = read_json(path, RunInfo).settings.get("max_tokens")
    info = msgspec.structs.replace(
        resolved.info, settings=resolved.info.settings | {"max_tokens": stored}
    )
    if spec.max_tokens is not None or not isinstance(stored, int | None):
        return replace(resolved, info=info)
    return replace(resolved, info=info, settings=replace(resolved.settings, max_tokens=stored))


class Stored(NamedTuple):
    """The responses of a run on disk, without their texts.

    outcomes: of each request with a response; an error never replaces an answer. repeated: the ids
    of requests with several responses. in_progress: the ids of requests in active jobs that have
    no response from their job yet.
    """

    outcomes: Outcomes
    repeated: set[str]
    in_progress: set[str]


def read_stored(folder: Path, requests: Mapping[str, ItemSample]) -> Stored:
    """Read the journal of the run in `folder`, with these requests by their ids.

    Raises BadInput for a broken line.
    """
    active = [job for job in read_jobs(folder).values() if job.is_active]
    job_of = {request_id: job.id for job in active for request_id in job.items}
    outcomes: Outcomes = {}
    repeated: set[str] = set()
    for response in iter_responses(folder):
        known = requests.get(response.request_id)
        # An item's own string takes no further memory.
        request_id = known.id if known else response.request_id
        if request_id in outcomes:
            repeated.add(request_id)
        job_id = job_of.get(request_id)
        if job_id is not None and job_id in (response.extra.get(key) for key in _JOB_IDS):
            del job_of[request_id]
        if response.error is None:
            outcomes[request_id] = _defect(response)
        elif outcomes.get(request_id, "item") in _FAILURES:
            outcomes[request_id] = response.error.kind
    return Stored(outcomes, repeated, set(job_of))


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


def earlier_statistics(
    requests: Mapping[str, ItemSample],
    unanswered: Sequence[ItemSample],
    folder: Path,
    repeated: Container[str],
    add_cost: Callable[[Completion], Completion],
    judge: ScoreCallback | None,
) -> RunStats:
    """Return the statistics of a run with what is on disk; every recorded response was paid for.

    requests: all of the run by their ids, or of a measurement those of its rounds so far. The
    responses are counted as they are read, so that their texts are not in memory at once, except
    for the `repeated` requests, of whose responses one counts.
    """
    stats = RunStats((request.item for request in requests.values()), judge)
    open_ids = {request.id for request in unanswered}

    def count(request_id: str, completion: Completion) -> None:
        if request_id not in open_ids:
            stats.count_previous(requests[request_id].item, completion)
        elif completion.cost is not None:
            stats.add_previous_cost(requests[request_id].item, completion.cost)

    latest: dict[str, Completion] = {}
    for response in iter_responses(folder):
        request_id, completion = response.request_id, add_cost(response)
        if request_id not in requests:
            continue
        if request_id not in repeated:
            count(request_id, completion)
            continue
        replaced = latest.get(request_id)
        if completion.error is not None and replaced is not None and replaced.error is None:
            replaced = completion
        else:
            latest[request_id] = completion
        if replaced is not None and replaced.cost is not None:
            stats.add_previous_cost(requests[request_id].item, replaced.cost)
    for request_id, completion in latest.items():
        count(request_id, completion)
    return stats
