"""Run the questions of a run: open the model and the run folder, send, and report what came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

from numbench.core.signals import stop_on_signals
from numbench.errors import BadInput
from numbench.horizon.items import AskedItems
from numbench.journal.writer import Journal
from numbench.runner.active_run import ActiveRun
from numbench.runner.batch_jobs import BatchJobs
from numbench.runner.budget import Budget
from numbench.runner.estimates import cost_limit_note, length_note
from numbench.runner.prepare import prepare
from numbench.runner.prepared_run import PreparedRun
from numbench.runner.progress import ProgressCallback, RunReport, ScoreCallback
from numbench.runner.progress_display import print_line, show_progress
from numbench.runner.recorded_requests import record_requests
from numbench.runner.request_source import (
    DatasetRequests,
    HorizonRequests,
    RequestSource,
    interleave,
)
from numbench.runner.retrying import DEFAULT_POLICY, RetryPolicy
from numbench.runner.run_state import RunState, open_requests, read_state
from numbench.runner.spec import HorizonSpec, RunSpec
from numbench.runner.throttle import RequestPacer
from numbench.runner.workers import Workers
from numbench.transforms import store_prompts

T = TypeVar("T")


def run(
    spec: RunSpec, judge: ScoreCallback | None = None, policy: RetryPolicy = DEFAULT_POLICY
) -> RunReport:
    """Send the questions of a run to its model and store every response in the run folder.

    A further call with the same specification resumes the run: it sends only questions without an
    answer, and those whose responses are of a kind in `spec.retry`. judge: decides whether an
    answer is correct, for the accuracy in the progress; a measurement needs it. policy: how failed
    requests are sent again.

    In a running event loop (a notebook), the run uses a separate thread with its own event loop.
    `arun` is the version to await.

    Raises BadInput for wrong options, NumbenchError if no question can be answered or the disk is
    full, CostLimitReached or TimeLimitReached at a limit, RunInterrupted after a signal.
    """
    with _open_alone(spec, judge, policy) as active:
        run_to_end(active.run)
        return active.result()


async def arun(
    spec: RunSpec, judge: ScoreCallback | None = None, policy: RetryPolicy = DEFAULT_POLICY
) -> RunReport:
    """Async version of `run`, in the running event loop.

    Signals interrupt the run only if the loop runs in the main thread. Cancelling the task stops
    the run at once; the answers of requests in flight are lost, and recorded as possibly billed.
    """
    with _open_alone(spec, judge, policy) as active:
        await active.run()
        return active.result()


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


@contextmanager
def _open_alone(
    spec: RunSpec, judge: ScoreCallback | None, policy: RetryPolicy
) -> Iterator[ActiveRun]:
    """Yield the only run of a command, which signals interrupt."""
    prepared, limit = prepare(spec), spec.time_limit
    budget, pacer = Budget(spec.max_cost), RequestPacer(spec.rpm)
    with (
        open_run(prepared, judge, policy, budget, pacer, limit, spec.on_progress) as active,
        stop_on_signals(active.interrupt, active.cancel),
    ):
        yield active


def check_retirement(prepared: PreparedRun) -> None:
    """Raise BadInput if the provider no longer serves the model, unless the user knows that."""
    known, name = prepared.description.known, prepared.spec.model
    if known.is_retired and not prepared.spec.allow_retired:
        raise BadInput(
            f"{name} {known.retirement}; choose another model, or add --allow-retired to use it "
            "anyway"
        )


@contextmanager
def open_run(
    prepared: PreparedRun,
    judge: ScoreCallback | None,
    policy: RetryPolicy,
    budget: Budget,
    pacer: RequestPacer,
    time_limit: float | None,
    on_progress: ProgressCallback | None,
) -> Iterator[ActiveRun]:
    """Open model and run folder, and yield the run, ready to be executed.

    budget, pacer, time_limit: those of the whole command. on_progress: None for a display.
    """
    spec = prepared.spec
    check_retirement(prepared)
    client = prepared.open_client()
    display: Any = nullcontext(on_progress)
    if on_progress is None:
        if note := cost_limit_note(prepared):
            print_line(note)
        display = show_progress(prepared.title)
    concurrency = spec.concurrency or prepared.description.provider.concurrency
    is_paid_per_request = not spec.batch and prepared.description.route is not None
    max_in_flight = concurrency if is_paid_per_request else 0
    with (
        Journal(prepared.folder, prepared.info, max_in_flight) as journal,
        display as watch,
    ):
        store_prompts(prepared.folder, prepared.variant.prompts)
        record_requests(prepared.folder, prepared.requests)
        # Only now, because another call may have added to it since the plan.
        state = read_state(prepared, judge)
        if on_progress is None and (note := length_note(prepared)):
            again = sum(kind == "failed" for kind in state.outcomes.values())
            asked = f"; {again:,} questions that had no answer yet are asked again" if again else ""
            print_line(f"{note}{asked}")
        budget.add(prepared.folder, state.costs)
        source = _open_source(prepared, judge, journal, state)
        requests = source.start()
        stats = state.statistics(source.requests_so_far(), requests, judge)
        stats.report.possibly_billed_attempts += journal.lost_attempts
        of_requests = {} if spec.batch else {"concurrency": concurrency, "pacer": pacer}
        kind: Any = BatchJobs if spec.batch else Workers
        yield kind(
            client=client,
            prepared=prepared,
            source=source,
            requests=requests,
            journal=journal,
            policy=policy,
            on_progress=watch,
            stats=stats,
            state=state,
            time_limit=time_limit,
            **of_requests,
        )


def _open_source(
    prepared: PreparedRun, judge: ScoreCallback | None, journal: Journal, state: RunState
) -> RequestSource:
    """Return the requests of a run on a dataset, or of a measurement."""
    spec = prepared.spec
    if isinstance(spec, HorizonSpec):
        if judge is None:
            raise ValueError("a measurement needs `judge`, to know which answers are right")
        assert isinstance(prepared.dataset, AskedItems)
        items = prepared.dataset.items
        return HorizonRequests(prepared.open_measurements(), items, spec.samples, judge, journal)
    requests = list(interleave(prepared.requests_by_task.values()))
    unanswered = open_requests(prepared, requests, state.outcomes, spec.retry, state.in_progress)
    if begun := state.conversations.open:
        unanswered = [each._replace(turns=begun.get(each.id, ())) for each in unanswered]
    # Answers in progress at the provider are collected first: they are paid for.
    unanswered.sort(key=lambda each: each.id not in state.in_progress)
    return DatasetRequests(requests, unanswered)
