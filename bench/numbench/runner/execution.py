"""Run the questions of a run: open the model and the run folder, send, and report what came."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING

from numbench.errors import BadInput, NumbenchError
from numbench.horizon.asked_items import AskedItems
from numbench.journal import Journal
from numbench.models import Model
from numbench.models.base import BatchService
from numbench.records import ItemSample
from numbench.runner.batch_scheduler import BatchScheduler
from numbench.runner.budget import Budget, SharedLimit, open_budget
from numbench.runner.estimates import discount_for, missing_for_cost_bound
from numbench.runner.event_loop import run_to_end
from numbench.runner.live import show_progress
from numbench.runner.preparation import check_jobs, prepare_run
from numbench.runner.prices import Price, with_cost
from numbench.runner.progress import ProgressCallback, ScoreCallback
from numbench.runner.recorded_requests import record_requests
from numbench.runner.refusal import Refusal, explain_refusal
from numbench.runner.request_source import FixedRequests
from numbench.runner.resolution import ResolvedRun, interleave
from numbench.runner.run_context import RetryPolicy, RunContext
from numbench.runner.run_report import (
    CostLimitReached,
    RunInterrupted,
    RunReport,
    TimeLimitReached,
)
from numbench.runner.run_state import (
    RunState,
    open_requests,
    read_state,
    retry_notes,
)
from numbench.runner.scheduler import RequestScheduler
from numbench.runner.spec import HorizonSpec, RunSpec
from numbench.runner.throttle import RequestPacer
from numbench.signals import stop_on_signals
from numbench.transforms import store_prompts

if TYPE_CHECKING:
    from numbench.runner.measurement_requests import MeasurementRequests


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
            self._context.journal.discard_if_empty()
            if isinstance(error, Refusal):
                error = await explain_refusal(error, self._resolved.description, self._client)
            if self._context.journal.is_empty or self._context.journal.failed:
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
        report, budget = self._report(), self._context.budget
        open_count = self._context.requests.open_count
        if report.interrupted:
            raise RunInterrupted(report, has_jobs=self._resolved.spec.batch)
        if budget is not None and budget.is_closed and open_count:
            message = _cost_limit_message(report, budget)
            raise CostLimitReached(report, message, budget.cost_unknown)
        if self._scheduler.reached_time_limit and open_count:
            raise TimeLimitReached(report, has_jobs=self._resolved.spec.batch)
        return report

    def _report(self) -> RunReport:
        stats = self._scheduler.stats
        progress = stats.progress()
        overall = progress.overall
        return RunReport(
            path=self._resolved.folder,
            completed=stats.answered + stats.errors,
            answered=stats.answered,
            skipped=self._context.requests.skipped,
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
            possibly_billed_cost=self._context.budget.possibly_billed
            if self._context.budget
            else stats.possibly_billed * stats.highest_cost,
            unanswered=overall.total - overall.answered,
            warnings=tuple(self._context.served.warnings),
        )

    def _call_in_loop(self, function: Callable[[], object]) -> None:
        if self._loop is not None:
            # The loop is closed if the run has just ended.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function)


@contextmanager
def open_run(
    spec: RunSpec,
    judge: ScoreCallback | None = None,
    shared_limit: SharedLimit | None = None,
    pacer: RequestPacer | None = None,
) -> Iterator[Execution]:
    """Open model, run folder and display, and yield the run, ready to be executed.

    shared_limit: that of several runs, to which `spec.max_cost` then refers. pacer: that of several
    runs, None for one of this run alone.
    """
    model, service, resolved, recorded, price = prepare_run(spec)
    assert model is not None
    description = resolved.description
    if spec.max_cost is not None and spec.on_progress is None:
        _print_cost_limit_note(spec.max_cost, resolved, price)
    display = (
        show_progress(resolved.title) if spec.on_progress is None else nullcontext(spec.on_progress)
    )
    in_flight = 0 if description.route is None else spec.concurrency or description.concurrency
    journal_of_run = Journal(resolved.folder, resolved.info, 0 if service else in_flight)
    with journal_of_run as journal, display as callback:
        store_prompts(resolved.folder, resolved.variant.prompts)
        record_requests(resolved.folder, recorded)
        check_jobs(resolved.folder, spec.batch)
        pacer = pacer or (RequestPacer(spec.rpm) if spec.rpm else None)
        state = read_state(resolved, price, judge)
        requests = _open_source(resolved, judge, journal, state)
        context = _run_context(resolved, judge, price, journal, callback, pacer, requests, state)
        context.stats.possibly_billed += journal.lost_attempts
        scheduler: RequestScheduler | BatchScheduler
        if service is None:
            scheduler = RequestScheduler(model, context)
        else:
            assert isinstance(requests, FixedRequests)
            scheduler = BatchScheduler(service, context, requests.requests)
        if shared_limit and context.budget:
            shared_limit.join(resolved.folder, context.budget)
        yield Execution(scheduler, service or model, resolved, context)


def _print_cost_limit_note(max_cost: float, resolved: ResolvedRun, price: Price | None) -> None:
    """Print what a cost limit does not promise, if it can be exceeded."""
    if missing := missing_for_cost_bound(resolved, price):
        print(
            f"--max-cost {max_cost:g} is best effort: the most that one answer can cost is "
            f"unknown without {' and '.join(missing)}",
            file=sys.stderr,
        )


def _open_source(
    resolved: ResolvedRun, judge: ScoreCallback | None, journal: Journal, state: RunState
) -> FixedRequests | MeasurementRequests:
    """Return the requests of a run on a dataset, or of a measurement, that are open."""
    spec = resolved.spec
    if not isinstance(spec, HorizonSpec):
        requests = _all_requests(resolved)
        in_progress = state.in_progress
        unanswered = open_requests(resolved, requests, state.outcomes, spec.retry, in_progress)
        # Answers in progress at the provider are collected first: they are paid for.
        unanswered.sort(key=lambda each: each.id not in in_progress)
        return FixedRequests(unanswered, skipped=len(requests) - len(unanswered))
    if judge is None:
        raise ValueError("a measurement needs `judge`, to know which answers are right")
    # It imports NumPy, which runs on datasets do not need.
    from numbench.runner.measurement_requests import MeasurementRequests

    assert isinstance(resolved.dataset, AskedItems)
    items = resolved.dataset.items
    return MeasurementRequests(resolved.open_measurements(), items, spec.samples, judge, journal)


def _run_context(
    resolved: ResolvedRun,
    judge: ScoreCallback | None,
    price: Price | None,
    journal: Journal,
    on_progress: ProgressCallback,
    pacer: RequestPacer | None,
    requests: FixedRequests | MeasurementRequests,
    state: RunState,
) -> RunContext:
    """Return what the schedulers need: open items, requests, costs, statistics."""
    spec, description = resolved.spec, resolved.description
    discount = discount_for(description, spec.batch)
    if isinstance(requests, FixedRequests):
        requests_so_far, unanswered = _all_requests(resolved), requests.requests
    else:
        requests_so_far, unanswered = requests.requests_so_far(), requests.all_open_requests()
    budget = None
    if spec.max_cost is not None:
        budget = open_budget(spec.max_cost, resolved, price, spec.batch, state)
    add_cost = partial(with_cost, price=price, discount=discount)
    policy = RetryPolicy(
        concurrency=spec.concurrency or description.concurrency,
        timeout=spec.timeout,
        time_limit=spec.time_limit,
    )
    stats = state.statistics(_by_id(requests_so_far), unanswered, judge)
    outcomes = state.outcomes
    to_replace = {each.id: outcomes[each.id] for each in unanswered if each.id in outcomes}
    new_limit = resolved.settings.max_tokens if resolved.has_new_token_limit else None
    if not isinstance(requests, FixedRequests):
        from numbench.runner.measurement_requests import with_horizons

        requests.on_round = lambda added: stats.expect(each.item for each in added)
        on_progress = with_horizons(on_progress, requests.measurements)
    return RunContext(
        requests=requests,
        build_request=partial(resolved.request, timeout=spec.timeout),
        journal=journal,
        policy=policy,
        on_progress=on_progress,
        with_cost=add_cost,
        budget=budget,
        notes_on_retry=lambda request, job: retry_notes(to_replace.get(request.id), new_limit, job),
        new_token_limit=new_limit,
        stats=stats,
        served=state.served,
        pacer=pacer,
    )


def _all_requests(resolved: ResolvedRun) -> list[ItemSample]:
    return list(interleave(resolved.requests_by_task.values()))


def _by_id(requests: Iterable[ItemSample]) -> dict[str, ItemSample]:
    return {request.id: request for request in requests}


def _cost_limit_message(report: RunReport, budget: Budget) -> str:
    limit, spent = f"--max-cost {budget.limit:g}", f"${budget.spent:.4f} spent"
    advice = "with a larger --max-cost "
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
    return f"{reason}: {spent}, {state}"
