"""A run in execution: what both schedulers share, how answers are stored, and how a run ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

from numbench.errors import BadInput, NumbenchError
from numbench.journal import Journal, timestamp
from numbench.models import Model
from numbench.models.base import DEFAULT_TIMEOUT_SECONDS
from numbench.records import Completion, Failure, ItemSample, Job, Response, Scalar
from numbench.runner.budget import Budget, RunCosts
from numbench.runner.progress import ProgressCallback, RunReport, RunStats
from numbench.runner.refusal import Refusal, explain_refusal
from numbench.runner.request_source import RequestSource
from numbench.runner.resolution import ResolvedRun
from numbench.runner.run_state import RunState
from numbench.runner.spec import RetryKind
from numbench.runner.throttle import RequestPacer

if TYPE_CHECKING:
    from numbench.models.batch_client import BatchService


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


class RunInterrupted(KeyboardInterrupt):
    """A signal interrupted the run; `report` describes what is on disk. Exit code 130."""

    def __init__(self, message: str, report: RunReport) -> None:
        super().__init__(message)
        self.report = report


class LimitReached(NumbenchError):
    """The run stopped at a limit with open items; `report` describes what is on disk."""

    exit_code = 3

    def __init__(self, message: str, report: RunReport) -> None:
        super().__init__(message)
        self.report = report


class CostLimitReached(LimitReached):
    """The run stopped because of `max_cost`."""


class TimeLimitReached(LimitReached):
    """The run stopped at `time_limit`."""


@dataclass(kw_only=True, eq=False)
class Scheduler:
    """A run in execution, which `interrupt` and `cancel` end from any thread.

    client: answers the requests. source: where they come from; `requests` may be sent now.
    on_progress: called after every change. stats: counts the whole run. state: what earlier calls
    left. pacer: the cap on requests per minute, None for no cap.
    """

    resolved: ResolvedRun
    client: Model | BatchService
    source: RequestSource
    requests: Sequence[ItemSample]
    journal: Journal
    policy: RetryPolicy
    on_progress: ProgressCallback
    stats: RunStats
    costs: RunCosts
    state: RunState = field(default_factory=RunState)
    pacer: RequestPacer | None = None
    reached_time_limit: bool = False

    _is_interrupted = False
    _loop: asyncio.AbstractEventLoop | None = None
    _task: asyncio.Task[None] | None = None

    async def send_all(self) -> None:
        """Complete all items, or until stopped. Raises NumbenchError if none can be answered."""
        raise NotImplementedError

    def stop(self) -> None:
        """Send nothing more, and let `send_all` end soon."""
        raise NotImplementedError

    def progress_fields(self) -> dict[str, Any]:
        """Return the fields of RunProgress that only a scheduler knows."""
        raise NotImplementedError

    async def run(self) -> None:
        """Execute the run, then close the client."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self.send_all())
        if self._is_interrupted:
            self.stop()
        try:
            await self._task
        except asyncio.CancelledError:
            if not self._is_interrupted:
                raise
        except NumbenchError as error:
            self.journal.discard_if_empty()
            if isinstance(error, Refusal):
                error = explain_refusal(error, self.resolved.description)
            report = self._report()
            has_state = report.possibly_billed_cost or not self.journal.is_empty
            if self.journal.failed or not has_state:
                raise error from None
            kind = BadInput if isinstance(error, BadInput) else NumbenchError
            raise kind(f"{error}; {report.state}") from None
        finally:
            await self.client.close()

    def interrupt(self) -> None:
        """Send nothing more, and end when the requests in flight have ended."""
        self._is_interrupted = True
        self._call_in_loop(self.stop)

    def cancel(self) -> None:
        """End at once."""
        self._is_interrupted = True
        if self._task is not None:
            self._call_in_loop(self._task.cancel)

    def _call_in_loop(self, function: Callable[[], object]) -> None:
        if self._loop is not None:
            # The loop is closed if the run has just ended.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function)

    def result(self) -> RunReport:
        """Return the report. Raises RunInterrupted, CostLimitReached or TimeLimitReached."""
        report, jobs = self._report(), ""
        if self.resolved.spec.batch:
            jobs = "; batch jobs continue at the provider, which bills them"
        if report.interrupted:
            raise RunInterrupted(f"interrupted{jobs}: {report.state}", report)
        if self.source.open_count:
            if any(map(self.costs.is_closed, self.resolved.tasks)):
                raise CostLimitReached(_cost_limit_message(report, self.costs.budget), report)
            if self.reached_time_limit:
                raise TimeLimitReached(f"stopped at --time-limit{jobs}: {report.state}", report)
        return report

    def _report(self) -> RunReport:
        progress = self.stats.progress()
        return replace(
            self.stats.report,
            path=self.resolved.folder,
            skipped=self.source.skipped,
            seconds=progress.seconds,
            interrupted=self._is_interrupted,
            possibly_billed_cost=self.costs.possibly_billed,
            unanswered=progress.total - progress.overall.answered,
            warnings=tuple(self.state.served.warnings),
        )

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
        that the result is from. It may be of an earlier call, with another token limit.
        """
        notes: dict[str, Scalar] = {} if job is None else {"batch_job": job.id}
        outcome = self.state.outcomes.get(requested.id)
        if outcome in get_args(RetryKind):
            limit = job.max_tokens if job else self.resolved.new_token_limit
            notes |= {"retry_of": outcome} | ({} if limit is None else {"max_tokens": limit})
        await self.journal.append(make_response(requested, completion, attempts, **notes))
        self.costs.count(requested, completion, paid)

    def count(self, requested: ItemSample, completion: Completion) -> list[ItemSample]:
        """Count a result that is on disk, and return the requests that it unlocks."""
        unlocked = self.source.record(requested, completion)
        self.stats.expect(each.item for each in unlocked)
        self.stats.count(requested.item, completion)
        self.state.served.count(completion)
        return unlocked

    def report_progress(self) -> None:
        """Show the progress of the run."""
        fields = self.source.progress_fields() | self.progress_fields()
        self.on_progress(self.stats.progress(**fields))


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


def is_retryable(failure: Failure | None) -> bool:
    """Return whether a further attempt may succeed."""
    return failure is not None and failure.kind in ("rate_limit", "transient")


def _cost_limit_message(report: RunReport, budget: Budget) -> str:
    limit, advice = f"--max-cost {budget.limit:g}", "with a larger --max-cost "
    if budget.cost_unknown:
        advice = "without --max-cost "
        reason = (
            "stopped because the provider reported no cost for an answer, so --max-cost cannot be "
            "enforced"
        )
    elif budget.lost_before_any_cost:
        advice = ""
        reason = (
            f"stopped because {budget.lost_before_any_cost} lost answers may have been billed, and "
            "no cost is known"
        )
    elif budget.spent > budget.limit:
        reason = f"stopped after an unusually expensive answer exceeded {limit}"
    else:
        reason = f"stopped before exceeding {limit}"
    state = report.state.replace(
        "the same command continues", f"the same command {advice}continues"
    )
    return f"{reason}: ${budget.spent:.4f} spent, {state}"
