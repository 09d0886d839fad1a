"""What the schedulers share: their policy, what they need of a run, and how they record it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from numbench.journal import Journal
from numbench.models.base import DEFAULT_TIMEOUT_SECONDS, Request
from numbench.records import Completion, Failure, ItemSample, Job, Response, Scalar
from numbench.runner.budget import RunCosts
from numbench.runner.progress import ProgressCallback, RunProgress, RunStats
from numbench.runner.request_source import RequestSource
from numbench.runner.throttle import RequestPacer
from numbench.served_models import ServedModels


@dataclass(frozen=True)
class RetryPolicy:
    """Concurrency, retries and time limits of a run. Times are in seconds.

    backoff, max_backoff: scale and bound of the waits between attempts, unless the provider names
    one. max_retry_after: the longest wait that a Retry-After header may impose.
    interrupt_grace: how long requests in flight may take to finish after an interrupt.
    outage_timeout: how long no item may be answered, after some were or because of a rate limit,
    before the run gives up.
    timeout: how long one request may take. time_limit: when to stop sending new requests.
    job_lookup_timeout: how long to look for a batch job whose submission was cut off.
    poll_interval, max_poll_interval: first and longest wait between two looks at batch jobs.
    max_batch_attempts: number of batch jobs that may contain the same item.
    """

    concurrency: int = 16
    max_attempts: int = 6
    backoff: float = 1.0
    max_backoff: float = 60.0
    max_retry_after: float = 3600.0
    interrupt_grace: float = 20.0
    outage_timeout: float = 600.0
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    time_limit: float | None = None
    job_lookup_timeout: float = 60.0
    poll_interval: float = 5.0
    max_poll_interval: float = 60.0
    max_batch_attempts: int = 3


@dataclass(frozen=True)
class RunContext:
    """What a scheduler needs of a run.

    source: where the requests come from. build_request: returns the messages and settings of
    one. on_progress: called after every change. with_cost: adds the cost to a completion, as far as
    it is known. costs: None without a cost limit. stats: counts the whole run. served: which models
    answered, earlier calls included. notes_on_retry: returns what a response, which a job may have
    generated, records of an earlier one that it replaces. new_token_limit: of the requests of this
    call, None if it is that of the run. pacer: the cap on requests per minute, None for no cap.
    """

    source: RequestSource
    build_request: Callable[[ItemSample], Request]
    journal: Journal
    policy: RetryPolicy
    on_progress: ProgressCallback
    with_cost: Callable[[Completion], Completion]
    costs: RunCosts | None
    stats: RunStats
    served: ServedModels = field(default_factory=ServedModels)
    notes_on_retry: Callable[[ItemSample, Job | None], Mapping[str, Scalar]] = lambda *_: {}
    new_token_limit: int | None = None
    pacer: RequestPacer | None = None

    async def store(
        self,
        requested: ItemSample,
        completion: Completion,
        attempts: int,
        paid: float = 0.0,
        job: Job | None = None,
    ) -> None:
        """Return once the result of a request is on disk, and add its cost to the budget.

        paid: US dollars of failed attempts, which are in the budget already. job: the batch job
        that the result is from.
        """
        notes = dict(self.notes_on_retry(requested, job))
        if job is not None:
            notes = {"batch_job": job.id, **notes}
        await self.journal.append(make_response(requested, completion, attempts, **notes))
        if self.costs:
            self.costs.count(requested, completion, paid)

    def count(self, requested: ItemSample, completion: Completion) -> list[ItemSample]:
        """Count a result that is on disk, and return the requests that it unlocks."""
        unlocked = self.source.record(requested, completion)
        self.stats.expect(each.item for each in unlocked)
        self.stats.count(requested.item, completion)
        self.served.count(completion)
        return unlocked

    def report(self, progress: RunProgress) -> None:
        """Show the progress of the run."""
        self.on_progress(progress._replace(horizons=self.source.horizons()))


def make_response(
    requested: ItemSample, completion: Completion, attempts: int, **extra: Scalar
) -> Response:
    """Return the journal record of a completion, stamped with the current time."""
    fields = {name: getattr(completion, name) for name in Completion.__struct_fields__}
    fields["extra"] = completion.extra | extra
    return Response(
        item_id=requested.item.id,
        sample=requested.sample,
        attempts=attempts,
        at=timestamp(),
        **fields,
    )


def timestamp() -> str:
    """Return the current time in ISO format, in UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def is_retryable(failure: Failure | None) -> bool:
    """Return whether a further attempt may succeed."""
    return failure is not None and failure.kind in ("rate_limit", "transient")
