"""Run the questions of a run: open the model and the run folder, send, and report what came."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from numbench.errors import BadInput
from numbench.horizon.items import AskedItems
from numbench.journal import Journal, read_jobs, resumed_info
from numbench.models import Model, open_batch, open_model
from numbench.models.catalogue import find_model_provider
from numbench.records import RecordedRequest
from numbench.runner.batch_scheduler import BatchScheduler
from numbench.runner.budget import Budget, check_cost_limit, cost_limit_note
from numbench.runner.progress import RunReport, ScoreCallback, show_progress
from numbench.runner.recorded_requests import record_requests, with_requests
from numbench.runner.request_source import DatasetRequests, HorizonRequests, RequestSource
from numbench.runner.resolution import ResolvedRun, describe, interleave, resolve, server_of
from numbench.runner.run_state import (
    RunState,
    open_costs,
    open_requests,
    read_state,
    with_stored_token_limit,
)
from numbench.runner.scheduler import RequestScheduler
from numbench.runner.scheduling import RetryPolicy, Scheduler
from numbench.runner.spec import HorizonSpec, RunSpec
from numbench.runner.throttle import RequestPacer
from numbench.signals import stop_on_signals
from numbench.transforms import store_prompts

if TYPE_CHECKING:
    from numbench.models.batch_client import BatchService

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
    with open_run(spec, judge) as scheduler:
        with stop_on_signals(scheduler.interrupt, scheduler.cancel):
            run_to_end(scheduler.run)
        return scheduler.result()


async def arun(spec: RunSpec, judge: ScoreCallback | None = None) -> RunReport:
    """Do what `run` does, in the running event loop.

    Signals interrupt the run only if the loop runs in the main thread. Cancelling the task stops
    the run at once; the answers of requests in flight are lost, and recorded as possibly billed.
    """
    with open_run(spec, judge) as scheduler:
        with stop_on_signals(scheduler.interrupt, scheduler.cancel):
            await scheduler.run()
        return scheduler.result()


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
    API, None without `--batch`. requests: the first one of each task.
    """

    model: Model | None
    service: BatchService | None
    resolved: ResolvedRun
    requests: Mapping[str, RecordedRequest]

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
    resumed_info(resolved.folder, resolved.info)
    if spec.max_cost is not None:
        check_cost_limit(resolved)
    return PreparedRun(model, service, resolved, requests)


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
) -> Iterator[Scheduler]:
    """Open model, run folder and display, and yield the run, ready to be executed.

    budget, pacer: those of several runs, None for one of this run alone.
    """
    model, service, resolved, recorded = prepare_run(spec)
    assert model is not None
    display: Any = nullcontext(spec.on_progress)
    if spec.on_progress is None:
        if note := cost_limit_note(resolved):
            print(note, file=sys.stderr)
        display = show_progress(resolved.title)
    policy = RetryPolicy(
        concurrency=spec.concurrency or resolved.description.provider.concurrency,
        timeout=spec.timeout,
        time_limit=spec.time_limit,
    )
    is_paid_per_request = service is None and resolved.description.route is not None
    max_in_flight = policy.concurrency if is_paid_per_request else 0
    with (
        Journal(resolved.folder, resolved.info, max_in_flight) as journal,
        display as on_progress,
    ):
        store_prompts(resolved.folder, resolved.variant.prompts)
        record_requests(resolved.folder, recorded)
        check_jobs(resolved)
        state = read_state(resolved, judge)
        costs = open_costs(budget or Budget(spec.max_cost), resolved, state)
        source = _open_source(resolved, judge, journal, state)
        requests = source.start()
        stats = state.statistics(source.requests_so_far(), requests, judge)
        stats.report.possibly_billed += journal.lost_attempts
        scheduler: type[Scheduler] = RequestScheduler if service is None else BatchScheduler
        yield scheduler(
            resolved=resolved,
            client=service or model,
            source=source,
            requests=requests,
            journal=journal,
            policy=policy,
            on_progress=on_progress,
            stats=stats,
            costs=costs,
            state=state,
            pacer=pacer or (RequestPacer(spec.rpm) if spec.rpm else None),
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
