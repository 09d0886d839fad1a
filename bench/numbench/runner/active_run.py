"""A run in execution, as far as workers and batch jobs share it: storing answers, and its end."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from numbench.core.texts import Sentences
from numbench.errors import BadInput, NumbenchError
from numbench.journal.conversations import joined
from numbench.journal.run_folder import timestamp
from numbench.journal.writer import Journal
from numbench.models import Model, ModelDescription
from numbench.models.facts import WAYS_OUT
from numbench.models.failures import Unreached
from numbench.records import Completion, Failure, ItemSample, Job, Response
from numbench.runner.budget import ROUNDING_TOLERANCE, Budget
from numbench.runner.prepared_run import PreparedRun
from numbench.runner.progress import ProgressCallback, RunReport, RunStats
from numbench.runner.request_source import RequestSource
from numbench.runner.retrying import Attempts, RetryPolicy
from numbench.runner.run_state import RunState
from numbench.runner.spec import RetryKind

if TYPE_CHECKING:
    from numbench.models.batch_client import BatchService


_text = Sentences(__file__)

_VERSION = re.compile(r"/v\d+\w*(?:/|$)")


class Refusal(NumbenchError):
    """No request of the run can be answered, because of `failure`."""

    def __init__(self, model: str, failure: Failure) -> None:
        self.reason = failure.text.rstrip(".")
        super().__init__(f"{model}: {self.reason}; no further requests were sent")
        self.model, self.failure = model, failure


def explain_refusal(
    refusal: Refusal, description: ModelDescription, has_answers: bool
) -> NumbenchError:
    """Return the error to show: a wrong server or model, with what to change, or `refusal`.

    has_answers: whether the server has answered a request of the run, before or since.
    """
    failure, url = refusal.failure, description.identity.get("base_url")
    base_url = None if url is None else str(url).rstrip("/")
    if failure.status in (400, 422):
        for pattern, way_out in WAYS_OUT.items():
            if re.search(pattern, refusal.reason, re.IGNORECASE):
                return NumbenchError(f"{refusal}; {way_out}")
    if has_answers:
        return refusal
    if isinstance(failure, Unreached):
        return _connection_error(refusal.model, base_url, failure.reason)
    if failure.status == 401 and base_url:
        return NumbenchError(_text("no_key", refusal=refusal, base_url=base_url))
    if failure.status != 404:
        return refusal
    name = "unknown_model"
    if base_url is not None:
        name = "unknown_at_version" if _VERSION.search(base_url) else "unknown_at_server"
    return BadInput(_text(name, model=refusal.model, reason=refusal.reason, base_url=base_url))


def _connection_error(model: str, base_url: str | None, reason: str) -> NumbenchError:
    if base_url is None:
        return NumbenchError(_text("unreached", model=model, reason=reason))
    name = "no_tls" if re.search("ssl|certificate", reason, re.IGNORECASE) else "no_server"
    cause = reason.rpartition(": ")[2]
    return BadInput(_text(name, base_url=base_url, reason=reason, cause=cause))


class _Stopped(BaseException):
    """The run stopped with open items; `report` describes what is on disk."""

    def __init__(self, message: str, report: RunReport) -> None:
        super().__init__(message)
        self.report = report


class RunInterrupted(_Stopped, KeyboardInterrupt):
    """A signal interrupted the run. Exit code 130."""


class LimitReached(_Stopped, NumbenchError):
    """The run stopped at a limit."""

    exit_code = 3


class CostLimitReached(LimitReached):
    """The run stopped because of `max_cost`."""


class TimeLimitReached(LimitReached):
    """The run stopped at `time_limit`."""


@dataclass(kw_only=True, eq=False)
class ActiveRun(ABC):
    """A run in execution, which `interrupt` and `cancel` end from any thread.

    client: answers the requests. source: where they come from; `requests` may be sent now.
    on_progress: called after every change. stats: counts the whole run. state: what earlier calls
    left; its costs and servers are also those of this call. time_limit: seconds after which no new
    request is sent.
    """

    prepared: PreparedRun
    client: Model | BatchService
    source: RequestSource
    requests: Sequence[ItemSample]
    journal: Journal
    policy: RetryPolicy
    time_limit: float | None = None
    on_progress: ProgressCallback
    stats: RunStats
    state: RunState
    reached_time_limit: bool = False

    _is_interrupted = False
    _task: asyncio.Task[None] | None = None

    @abstractmethod
    async def send_all(self) -> None:
        """Complete all items, or until stopped. Raises NumbenchError if none can be answered."""

    @abstractmethod
    def stop(self) -> None:
        """Send nothing more, and let `send_all` end soon."""

    @abstractmethod
    def progress_fields(self) -> dict[str, Any]:
        """Return the fields of RunProgress that only the workers or the jobs know."""

    async def run(self) -> None:
        """Execute the run, then close the client."""
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
        if self._task is not None:
            # The loop is closed if the run has just ended.
            with suppress(RuntimeError):
                self._task.get_loop().call_soon_threadsafe(function)

    def result(self) -> RunReport:
        """Return the report. Raises RunInterrupted, CostLimitReached or TimeLimitReached."""
        report, jobs = self._report(), ""
        if self.prepared.spec.batch:
            jobs = "; batch jobs continue at the provider, which bills them"
        if report.interrupted:
            raise RunInterrupted(f"interrupted{jobs}: {report.state}", report)
        if self.source.open_count:
            if any(map(self.state.costs.is_closed, self.prepared.info.tasks)):
                raise CostLimitReached(limit_message(self.state.costs.budget, report), report)
            if self.reached_time_limit:
                raise TimeLimitReached(f"stopped at --time-limit{jobs}: {report.state}", report)
        return report

    def _report(self) -> RunReport:
        progress = self.stats.progress()
        return replace(
            self.stats.report,
            path=self.prepared.folder,
            skipped=self.source.skipped,
            seconds=progress.seconds,
            interrupted=self._is_interrupted,
            possibly_billed_cost=self.state.costs.known_possibly_billed_cost,
            unanswered=progress.total - progress.overall.answered,
            warnings=(*self.prepared.description.notices, *self.state.served.warnings),
        )

    async def store(
        self, attempts: Attempts, completion: Completion, job: Job | None = None
    ) -> Response:
        """Return the result of a request, with the cost of all attempts, once it is on disk.

        Its cost is added to the budget. job: the batch job that the result is from. It may be of an
        earlier call, with another token limit.
        """
        about: dict[str, Any] = {"batch_job": job.id} if job else {}
        completion = self.prepared.with_results(attempts.requested, completion)
        outcome = self.state.outcomes.get(attempts.requested.id)
        if outcome in get_args(RetryKind):
            limit = job.max_tokens if job else self.prepared.retry_token_limit
            about |= {"retry_of": outcome, "max_tokens": limit}
        response = make_response(attempts, completion, **about)
        # The journal writes it even if this task is cancelled meanwhile.
        attempts.is_stored = True
        await self.journal.append(response)
        self.state.costs.count(attempts.requested, response, attempts.failed_cost)
        return response

    def record(self, requested: ItemSample, response: Response) -> list[ItemSample]:
        """Take a result into account, which is on disk; return the requests that it unlocks.

        A reply with calls that have results unlocks the next request of its conversation.
        """
        if response.is_continued:
            self.stats.count_reply(requested.task, response)
            return [requested._replace(turns=(*requested.turns, response))]
        whole = joined((*requested.turns, response))
        self.state.served.count(whole)
        unlocked = self.source.record(requested, whole)
        self.stats.expect(each.item for each in unlocked)
        self.stats.count(requested.item, response, whole)
        return unlocked

    def report_progress(self) -> None:
        """Show the progress of the run."""
        fields = self.source.progress_fields() | self.progress_fields()
        self.on_progress(self.stats.progress(**fields))


def limit_message(budget: Budget, report: RunReport) -> str:
    """Return why a run stopped at a cost limit, what it has cost, and how to continue."""
    advice, name = " with a larger --max-cost", "reached"
    if budget.cost_unknown:
        advice, name = " without --max-cost", "no_cost"
    elif budget.lost_before_any_cost:
        advice, name = "", "lost"
    elif budget.spent > budget.max_cost * ROUNDING_TOLERANCE:
        name = "exceeded" if report.completed else "spent_before"
    reason = _text(name, max_cost=budget.max_cost, lost=budget.lost_before_any_cost)
    state = report.describe(f"the same command{advice} continues")
    return f"{reason}: ${budget.spent:.4f} spent, {state}"


def make_response(attempts: Attempts, completion: Completion, **about: Any) -> Response:
    """Return the journal record of a result, with what all attempts cost and may have cost.

    It is stamped with the current time. about: further fields.
    """
    fields = about | {name: getattr(completion, name) for name in Completion.__struct_fields__}
    failed_cost = attempts.failed_cost
    if completion.error is not None:
        fields["cost"] = failed_cost or completion.cost
    elif failed_cost and completion.cost is not None:
        fields["cost"] = completion.cost + failed_cost
    return Response(
        item_id=attempts.requested.item.id,
        sample=attempts.requested.sample,
        turn=len(attempts.requested.turns),
        attempts=attempts.number,
        at=timestamp(),
        cost_of_failed_attempts=failed_cost or None,
        possibly_billed_attempts=attempts.possibly_billed_attempts,
        **fields,
    )
