"""Run the questions of a run: open the model and the run folder, send, and report what came."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from numbench.errors import BadInput, NumbenchError
from numbench.horizon.items import AskedItems
from numbench.journal import Journal, check_compatible, read_jobs
from numbench.models import Model, open_batch, open_model
from numbench.models.base import BatchService
from numbench.models.catalogue import find_model_provider
from numbench.models.prices import Price, with_cost
from numbench.records import RecordedRequest
from numbench.runner.batch_scheduler import BatchScheduler
from numbench.runner.budget import Budget, check_cost_limit, open_costs
from numbench.runner.estimates import discount_for, missing_for_cost_bound, price_for
from numbench.runner.live import show_progress
from numbench.runner.progress import ScoreCallback
from numbench.runner.recorded_requests import record_requests, with_requests
from numbench.runner.refusal import Refusal, explain_refusal
from numbench.runner.request_source import DatasetRequests, HorizonRequests, RequestSource
from numbench.runner.resolution import ResolvedRun, describe, interleave, resolve, server_of
from numbench.runner.run_context import RetryPolicy, RunContext
from numbench.runner.run_state import (
    RunState,
    open_requests,
    read_state,
    retry_notes,
    with_stored_token_limit,
)
from numbench.runner.scheduler import RequestScheduler
from numbench.runner.spec import HorizonSpec, RunSpec
from numbench.runner.throttle import RequestPacer
from numbench.signals import stop_on_signals
from numbench.transforms import store_prompts

T = TypeVar("T")


def run(spec: RunSpec, judge: ScoreCallback | None = None) -> RunReport:
    """Send the questions of a run to its model and store every response in the run folder.

    A further call with the same specification resumes the run: it sends only questions without an
    answer, and those whose responses are of a kind in `spec.retry`. judge: decides whether an
    answer is correct, for the accuracy in the progress; a measurement needs it.

    In a running event loop (a notebook), the run uses a separate thread with its own event loop.
    `arun` is the version to await.

    Raises BadInput for wrong options, NumbenchError if no question can be answered or the disk is
    full, CostLimitReached or TimeLimitReached at a limit, RunInterrupted after a signal.
    """
    with open_run(spec, judge) as execution:
        with stop_on_signals(execution.interrupt, execution.cancel):
            run_to_end(execution.run)
        return execution.result()


async def arun(spec: RunSpec, judge: ScoreCallback | None = None) -> RunReport:
    """Do what `run` does, in the running event loop.

    Signals interrupt the run only if the loop runs in the main thread. Cancelling the task stops
    the run at once; the answers of requests in flight are lost, and recorded as possibly billed.
    """
    with open_run(spec, judge) as execution:
        with stop_on_signals(execution.interrupt, execution.cancel):
            await execution.run()
        return execution.result()


def run_to_end(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return the result of a coroutine function.

    It runs in a separate thread if this thread's event loop is running.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main())
    with ThreadPoolExecutor(1, thread_name_prefix="numbench-run") as pool:
        future = pool.submit(lambda: asyncio.run(main()))
        # On Windows a wait without a timeout delays signal handlers to its end.
        while not future.done():
            wait((future,), timeout=0.2)
        return future.result()


class PreparedRun(NamedTuple):
    """A run whose arguments are checked; nothing is sent or written.

    model: None in a plan of a run whose requests cannot be seen without a key. service: the batch
    API, None without `--batch`. requests: the first one of each task. price: None if unknown.
    """

    model: Model | None
    service: BatchService | None
    resolved: ResolvedRun
    requests: Mapping[str, RecordedRequest]
    price: Price | None

    async def close(self) -> None:
        """Close the model and the batch API."""
        for client in (self.model, self.service):
            if client is not None:
                await client.close()


def prepare_run(spec: RunSpec, needs_key: bool = True) -> PreparedRun:
    """Return a run, ready to be planned or executed. Without `needs_key` it need not have one.

    Raises BadInput for every option that does not suit the model or the run in the folder.
    """
    target = (spec.model, spec.reasoning, server_of(spec), needs_key)
    service = open_batch(*target) if spec.batch else None
    if spec.params and not getattr(service, "takes_parameters", True):
        raise BadInput(f"{spec.model}: its batch API takes no --param: omit --batch or --param")
    model, description = None, None
    provider = find_model_provider(spec.model, spec.base_url)
    if needs_key or provider.in_process or provider.inspects_requests:
        model, description = open_model(*target)
    description = description or describe(spec)
    resolved = with_stored_token_limit(resolve(spec, description))
    requests: Mapping[str, RecordedRequest] = {}
    if model is not None:
        resolved, requests = with_requests(model, resolved)
    check_compatible(resolved.folder, resolved.info)
    price = price_for(description, spec.batch, spec.params)
    if spec.max_cost is not None:
        check_cost_limit(spec.model, description.route, price, spec.params)
    return PreparedRun(model, service, resolved, requests, price)


def check_jobs(resolved: ResolvedRun) -> None:
    """Raise BadInput if answers in progress would be paid for twice: `--batch` collects them."""
    jobs = read_jobs(resolved.folder).values()
    if not resolved.spec.batch and any(job.is_active for job in jobs):
        raise BadInput(
            f"{resolved.folder}: a batch job of this run is still active at the provider; run the "
            "same command with --batch to collect its answers"
        )


@contextmanager
def open_run(
    spec: RunSpec,
    judge: ScoreCallback | None = None,
    budget: Budget | None = None,
    pacer: RequestPacer | None = None,
) -> Iterator[Execution]:
    """Open model, run folder and display, and yield the run, ready to be executed.

    budget, pacer: those of several runs, None for one of this run alone.
    """
    model, service, resolved, recorded, price = prepare_run(spec)
    assert model is not None
    description, info, folder = resolved.description, resolved.info, resolved.folder
    display: Any = nullcontext(spec.on_progress)
    if spec.on_progress is None:
        _print_cost_limit_note(resolved, price)
        display = show_progress(resolved.title)
    policy = RetryPolicy(
        concurrency=spec.concurrency or description.provider.concurrency,
        timeout=spec.timeout,
        time_limit=spec.time_limit,
    )
    is_paid_per_request = service is None and description.route is not None
    max_in_flight = policy.concurrency if is_paid_per_request else 0
    with Journal(folder, info, max_in_flight) as journal, display as on_progress:
        store_prompts(folder, resolved.variant.prompts)
        record_requests(folder, recorded)
        check_jobs(resolved)
        state = read_state(resolved, price, judge)
        costs = None
        if spec.max_cost is not None:
            costs = open_costs(budget or Budget(spec.max_cost), resolved, price, state)
        source = _open_source(resolved, judge, journal, state)
        requests = source.start()
        stats = state.statistics(source.requests_so_far(), requests, judge)
        stats.possibly_billed += journal.lost_attempts
        to_replace = {each.id: state.outcomes.get(each.id) for each in requests}
        new_limit = resolved.settings.max_tokens if resolved.has_new_token_limit else None
        context = RunContext(
            source=source,
            build_request=partial(resolved.request, timeout=spec.timeout),
            journal=journal,
            policy=policy,
            on_progress=on_progress,
            with_cost=partial(
                with_cost, price=price, discount=discount_for(description, spec.batch)
            ),
            costs=costs,
            stats=stats,
            served=state.served,
            notes_on_retry=lambda request, job: retry_notes(
                to_replace.get(request.id), new_limit, job
            ),
            new_token_limit=new_limit,
            pacer=pacer or (RequestPacer(spec.rpm) if spec.rpm else None),
        )
        if service is None:
            yield Execution(RequestScheduler(model, context, requests), model, resolved, context)
        else:
            yield Execution(BatchScheduler(service, context, requests), service, resolved, context)


def _print_cost_limit_note(resolved: ResolvedRun, price: Price | None) -> None:
    """Print what a cost limit does not promise, if it can be exceeded."""
    max_cost, missing = resolved.spec.max_cost, missing_for_cost_bound(resolved, price)
    if max_cost is not None and missing:
        print(
            f"--max-cost {max_cost:g} is best effort: the most that one answer can cost is "
            f"unknown without {' and '.join(missing)}",
            file=sys.stderr,
        )


def _open_source(
    resolved: ResolvedRun, judge: ScoreCallback | None, journal: Journal, state: RunState
) -> RequestSource:
    """Return the requests of a run on a dataset, or of a measurement."""
    spec = resolved.spec
    if isinstance(spec, HorizonSpec):
        if judge is None:
            raise ValueError("a measurement needs `judge`, to know which answers are right")
        assert isinstance(resolved.dataset, AskedItems)
        items = resolved.dataset.items
        return HorizonRequests(resolved.open_measurements(), items, spec.samples, judge, journal)
    requests = list(interleave(resolved.requests_by_task.values()))
    unanswered = open_requests(resolved, requests, state.outcomes, spec.retry, state.in_progress)
    # Answers in progress at the provider are collected first: they are paid for.
    unanswered.sort(key=lambda each: each.id not in state.in_progress)
    return DatasetRequests(requests, unanswered)


class Execution:
    """One execution of a scheduler, which `interrupt` and `cancel` end from any thread."""

    def __init__(
        self,
        scheduler: RequestScheduler | BatchScheduler,
        client: Model | BatchService,
        resolved: ResolvedRun,
        context: RunContext,
    ) -> None:
        self._scheduler, self._client = scheduler, client
        self._resolved, self._context = resolved, context
        self._interrupted = self._cancelled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Run the scheduler to its end, then close the client."""
        journal = self._context.journal
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._scheduler.run())
        if self._interrupted:
            self._scheduler.interrupt()
        try:
            await self._task
        except asyncio.CancelledError:
            if not self._cancelled:
                raise
        except NumbenchError as error:
            journal.discard_if_empty()
            if isinstance(error, Refusal):
                error = await explain_refusal(error, self._resolved.description, self._client)
            if journal.is_empty or journal.failed:
                raise error from None
            kind = BadInput if isinstance(error, BadInput) else NumbenchError
            raise kind(f"{error}; {self._report().state}") from None
        finally:
            await self._client.close()

    def interrupt(self) -> None:
        """Send nothing more, and end when the requests in flight have ended."""
        self._interrupted = True
        self._call_in_loop(self._scheduler.interrupt)

    def cancel(self) -> None:
        """End at once."""
        self._cancelled = True
        if self._task is not None:
            self._call_in_loop(self._task.cancel)

    def result(self) -> RunReport:
        """Return the report. Raises RunInterrupted, CostLimitReached or TimeLimitReached."""
        report, costs = self._report(), self._context.costs
        jobs = ""
        if self._resolved.spec.batch:
            jobs = "; batch jobs continue at the provider, which bills them"
        if report.interrupted:
            raise RunInterrupted(f"interrupted{jobs}: {report.state}", report)
        if self._context.source.open_count:
            if costs is not None and costs.budget.is_closed:
                raise CostLimitReached(_cost_limit_message(report, costs.budget), report)
            if self._scheduler.reached_time_limit:
                raise TimeLimitReached(f"stopped at --time-limit{jobs}: {report.state}", report)
        return report

    def _report(self) -> RunReport:
        stats, costs = self._scheduler.stats, self._context.costs
        progress = stats.progress()
        return RunReport(
            path=self._resolved.folder,
            completed=stats.answered + stats.errors,
            answered=stats.answered,
            skipped=self._context.source.skipped,
            errors=stats.errors,
            permanent_errors=stats.permanent_errors,
            last_error=stats.last_error,
            retries=self._scheduler.retries,
            input_tokens=stats.input_tokens,
            generated_tokens=stats.generated_tokens,
            cost=stats.cost,
            seconds=progress.seconds,
            interrupted=self._interrupted,
            possibly_billed=stats.possibly_billed,
            possibly_billed_cost=costs.possibly_billed
            if costs
            else stats.possibly_billed * stats.highest_cost,
            unanswered=progress.total - progress.overall.answered,
            warnings=tuple(self._context.served.warnings),
        )

    def _call_in_loop(self, function: Callable[[], object]) -> None:
        if self._loop is not None:
            # The loop is closed if the run has just ended.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function)


class RunReport(NamedTuple):
    """The result of one call of `run`.

    Counts are of requests, one per item and sample.

    completed: results stored by this call: answered + errors. skipped: requests that earlier calls
    completed. permanent_errors: errors that only `retry` requests again. last_error:
    message of the latest error. input_tokens, generated_tokens, cost (US dollars): sums over the
    reported values, None if none was reported. seconds: elapsed time of this call. interrupted:
    whether a signal ended it early; the same call resumes the run. possibly_billed: attempts
    without an answer, such as timeouts, that may have been billed and are not part of `cost`;
    possibly_billed_cost: US dollars for those of all calls, None if unknown. unanswered: requests
    of the run, those of earlier calls included, without an answer.
    warnings: what the user should know about the answers, of earlier calls too.
    """

    path: Path
    completed: int
    answered: int
    skipped: int
    errors: int
    permanent_errors: int
    last_error: str | None
    retries: int
    input_tokens: int | None
    generated_tokens: int | None
    cost: float | None
    seconds: float
    interrupted: bool
    possibly_billed: int = 0
    possibly_billed_cost: float | None = None
    unanswered: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """What is on disk, what else may be billed, and how to continue."""
        parts = [
            f"{self.answered:,} answered now, {self.unanswered:,} still open",
            f"saved in {self.path}",
        ]
        lost = f"{self.possibly_billed:,} lost answer{'s' * (self.possibly_billed > 1)}"
        if self.possibly_billed_cost:
            parts.append(f"up to ${self.possibly_billed_cost:.4f} more may be billed")
        elif self.possibly_billed:
            parts.append(f"{lost} may be billed")
        return "; ".join((", ".join(parts), "the same command continues"))


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
