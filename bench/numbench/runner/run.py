"""Run the items of a dataset through a model, into a run folder that can be resumed."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from numbench.horizon.asked_items import AskedItems
from numbench.journal import Journal, background_jobs, read_jobs
from numbench.models.base import DEFAULT_TIMEOUT_SECONDS, Request
from numbench.records import ItemSample
from numbench.runner.batch_scheduler import BatchScheduler
from numbench.runner.budget import SharedLimit, open_budget
from numbench.runner.estimates import (
    CHARACTERS_PER_TOKEN,
    discount_for,
    missing_for_cost_bound,
    published_tokens,
)
from numbench.runner.event_loop import run_to_end
from numbench.runner.execution import Execution
from numbench.runner.live import run_title, show_progress
from numbench.runner.measurement_spec import open_measurements
from numbench.runner.preparation import (
    DEFAULT_MAX_ATTEMPTS,
    RunArguments,
    check_jobs,
    prepare_run,
)
from numbench.runner.prices import Price, with_cost
from numbench.runner.progress import ProgressCallback, RunStats, ScoreCallback
from numbench.runner.rate_caps import RateCaps
from numbench.runner.request_log import checked_model, record_requests
from numbench.runner.request_source import FixedRequests
from numbench.runner.response_cache import add_answers, copy_from_cache, keep_answers
from numbench.runner.run_context import RetryPolicy, RunContext
from numbench.runner.run_report import (
    RunReport,
)
from numbench.runner.scheduler import RequestScheduler
from numbench.runner.spec import (
    ResolvedRun,
    RunSpec,
    interleave,
)
from numbench.runner.stored_responses import (
    Stored,
    earlier_statistics,
    open_requests,
    read_stored,
    retry_kinds,
    retry_notes,
)
from numbench.signals import stop_on_signals
from numbench.transforms import store_prompts

if TYPE_CHECKING:
    from numbench.runner.measurement_requests import MeasurementRequests


def run(
    spec: RunSpec,
    *,
    concurrency: int | None = None,
    retry_errors: bool = False,
    retry: Collection[str] = (),
    max_attempts: int = DEFAULT_MAX_ATTEMPTS,
    timeout: float = DEFAULT_TIMEOUT_SECONDS,
    time_limit: float | None = None,
    max_cost: float | None = None,
    batch: bool = False,
    rpm: int | None = None,
    tpm: int | None = None,
    cache: bool = False,
    on_progress: ProgressCallback | None = None,
    judge: ScoreCallback | None = None,
) -> RunReport:
    """Send the items of a dataset to a model and store every response in a run folder.

    A further call with the same spec resumes the run: it sends only items without an answer, and
    items that failed permanently only with `retry_errors`.

    retry: kinds of responses to request again: "empty", "truncated" (also with another
    `max_tokens`, for these items only), "refused", and "error" (the same as `retry_errors`).
    concurrency: maximum number of requests in flight; None for the model's default.
    timeout: seconds that one request may take.
    time_limit: seconds after which no new requests are sent; requests in flight are awaited.
    max_cost: US dollars that the run folder may cost in total, earlier calls included; best
        effort unless there are a token limit and a price.
    batch: use the provider's batch API; its jobs continue if this call ends early.
    rpm, tpm: caps on the requests and tokens per minute of this call (see `RateCaps`).
    cache: take answers to equal requests of other runs from the response cache, and add those of
    this run.
    on_progress: receives the progress; None shows it on stderr.
    judge: decides whether an answer is correct, for the accuracy in the progress.

    In a running event loop (a notebook), the run uses a separate thread with its own event loop.
    `arun` is the version to await.

    Raises BadInput for wrong arguments, NumbenchError if no item can be answered or the disk is
    full, CostLimitReached or TimeLimitReached at a limit, RunInterrupted after a signal.
    """
    options = RunArguments(
        concurrency,
        retry_kinds(retry, retry_errors),
        max_attempts,
        timeout,
        time_limit,
        max_cost,
        batch,
        judge,
        rpm,
        tpm,
        cache,
    )
    with open_run(spec, options, on_progress) as execution:
        with stop_on_signals(execution.interrupt, execution.cancel):
            run_to_end(execution.run)
        return execution.result()


async def arun(
    spec: RunSpec,
    *,
    concurrency: int | None = None,
    retry_errors: bool = False,
    retry: Collection[str] = (),
    max_attempts: int = DEFAULT_MAX_ATTEMPTS,
    timeout: float = DEFAULT_TIMEOUT_SECONDS,
    time_limit: float | None = None,
    max_cost: float | None = None,
    batch: bool = False,
    rpm: int | None = None,
    tpm: int | None = None,
    cache: bool = False,
    on_progress: ProgressCallback | None = None,
    judge: ScoreCallback | None = None,
) -> RunReport:
    """Do what `run` does, in the running event loop.

    Signals interrupt the run only if the loop runs in the main thread. Cancelling the task stops
    the run at once; the answers of requests in flight are lost, and recorded as possibly billed.
    """
    options = RunArguments(
        concurrency,
        retry_kinds(retry, retry_errors),
        max_attempts,
        timeout,
        time_limit,
        max_cost,
        batch,
        judge,
        rpm,
        tpm,
        cache,
    )
    with open_run(spec, options, on_progress) as execution:
        with stop_on_signals(execution.interrupt, execution.cancel):
            await execution.run()
        return execution.result()


@contextmanager
def open_run(
    spec: RunSpec,
    options: RunArguments,
    on_progress: ProgressCallback | None,
    shared_limit: SharedLimit | None = None,
    rate_caps: RateCaps | None = None,
) -> Iterator[Execution]:
    """Open model, run folder and display, and yield the run, ready to be executed.

    shared_limit: that of several runs, to which `options.max_cost` then refers. rate_caps: those
    of several runs, None for caps of this run alone.
    """
    model, service, resolved, previews, shapes, price = prepare_run(spec, options)
    assert model is not None
    description = resolved.description
    title = run_title(
        spec.model, description.level, resolved.dataset.name, resolved.info.variant_label
    )
    if options.max_cost is not None and on_progress is None:
        _print_cost_limit_note(options.max_cost, resolved, price)
    display = show_progress(title) if on_progress is None else nullcontext(on_progress)
    in_flight = 0 if description.route is None else options.concurrency or description.concurrency
    journal_of_run = Journal(resolved.folder, resolved.info, 0 if service else in_flight)
    with journal_of_run as journal, display as callback:
        store_prompts(resolved.folder, resolved.variant.prompts)
        record_requests(resolved.folder, previews)
        check_jobs(resolved.folder, options.batch)
        cached = _copy_from_cache(resolved, journal) if options.cache else 0
        caps = rate_caps or options.rate_caps()
        stored = read_stored(resolved.folder, _by_id(_all_requests(resolved)))
        requests = _open_source(resolved, options, journal, stored)
        context = _run_context(resolved, options, price, journal, callback, caps, requests, stored)
        context.stats.possibly_billed += journal.lost_attempts
        scheduler: RequestScheduler | BatchScheduler
        if service is None:
            scheduler = RequestScheduler(checked_model(model, resolved, shapes), context)
        else:
            assert isinstance(requests, FixedRequests)
            scheduler = BatchScheduler(service, context, requests.requests)
        if shared_limit and context.budget:
            shared_limit.join(resolved.folder, context.budget)
        execution = Execution(scheduler, service or model, resolved, context, options.batch, cached)
        with keep_answers(resolved, _all_requests(resolved)) if options.cache else nullcontext():
            yield execution


def _print_cost_limit_note(max_cost: float, resolved: ResolvedRun, price: Price | None) -> None:
    """Print what a cost limit does not promise, if it can be exceeded."""
    if missing := missing_for_cost_bound(resolved, price):
        print(
            f"--max-cost {max_cost:g} is best effort: the most that one answer can cost is "
            f"unknown without {' and '.join(missing)}",
            file=sys.stderr,
        )


def _open_source(
    resolved: ResolvedRun, options: RunArguments, journal: Journal, stored: Stored
) -> FixedRequests | MeasurementRequests:
    """Return the requests of a run on a dataset, or of a measurement, that are open."""
    if resolved.spec.measurement is None:
        requests = _all_requests(resolved)
        in_progress = stored.in_progress
        unanswered = open_requests(resolved, requests, stored.outcomes, options.retry, in_progress)
        # Answers in progress at the provider are collected first: they are paid for.
        unanswered.sort(key=lambda each: each.id not in in_progress)
        return FixedRequests(unanswered, skipped=len(requests) - len(unanswered))
    if options.judge is None:
        raise ValueError("a measurement needs `judge`, to know which answers are right")
    # It imports NumPy, which runs on datasets do not need.
    from numbench.runner.measurement_requests import MeasurementRequests

    assert isinstance(resolved.dataset, AskedItems)
    items = resolved.dataset.items
    measurements = open_measurements(
        resolved.spec.measurement, resolved.sizes, items, resolved.prefix_characters
    )
    return MeasurementRequests(measurements, items, resolved.spec.samples, options.judge, journal)


def _run_context(
    resolved: ResolvedRun,
    options: RunArguments,
    price: Price | None,
    journal: Journal,
    on_progress: ProgressCallback,
    rate_caps: RateCaps | None,
    requests: FixedRequests | MeasurementRequests,
    stored: Stored,
) -> RunContext:
    """Return what the schedulers need: open items, requests, costs, statistics."""
    description, folder = resolved.description, resolved.folder
    discount = discount_for(description, options.batch)
    if isinstance(requests, FixedRequests):
        requests_so_far, unanswered = _all_requests(resolved), requests.requests
    else:
        requests_so_far, unanswered = requests.requests_so_far(), requests.all_open_requests()
    budget = None
    if options.max_cost is not None:
        budget = open_budget(options.max_cost, resolved, price, discount, options.batch)
        in_progress = background_jobs(folder)
        for each in unanswered:
            if each.id in in_progress:
                budget.reserve(each)
    add_cost = partial(with_cost, price=price, discount=discount)
    policy = RetryPolicy(
        concurrency=options.concurrency or description.concurrency,
        max_attempts=options.max_attempts,
        timeout=options.timeout,
        time_limit=options.time_limit,
    )
    stats = earlier_statistics(
        _by_id(requests_so_far), unanswered, folder, stored.repeated, add_cost, options.judge
    )
    outcomes = stored.outcomes
    to_replace = {each.id: outcomes[each.id] for each in unanswered if each.id in outcomes}
    new_limit = resolved.settings.max_tokens if resolved.has_new_token_limit else None
    if not isinstance(requests, FixedRequests):
        from numbench.runner.measurement_requests import with_horizons

        requests.start(on_round=lambda added: stats.expect(each.item for each in added))
        on_progress = with_horizons(on_progress, requests.measurements)
    has_published = rate_caps and not resolved.info.prompt.working
    published = published_tokens(resolved.spec.model, description.level) if has_published else {}
    return RunContext(
        requests=requests,
        build_request=partial(resolved.request, timeout=options.timeout),
        journal=journal,
        policy=policy,
        on_progress=on_progress,
        with_cost=add_cost,
        budget=budget,
        notes_on_retry=lambda request, job: retry_notes(to_replace.get(request.id), new_limit, job),
        new_token_limit=new_limit,
        stats=stats,
        rate_caps=rate_caps,
        expect_tokens=partial(_expected_tokens, stats=stats, published=published),
    )


def _all_requests(resolved: ResolvedRun) -> list[ItemSample]:
    return list(interleave(resolved.requests_by_task.values()))


def _by_id(requests: Iterable[ItemSample]) -> dict[str, ItemSample]:
    return {request.id: request for request in requests}


def _copy_from_cache(resolved: ResolvedRun, journal: Journal) -> int:
    """Store the cached answers to requests that are still open, and return their number.

    A request whose last response is a temporary failure is open. Those in an active batch job are
    left out: the provider bills their answers, which follow.
    """
    all_requests = _all_requests(resolved)
    outcomes = read_stored(resolved.folder, _by_id(all_requests)).outcomes
    jobs = [job for job in read_jobs(resolved.folder).values() if job.is_active]
    in_jobs = {request_id for job in jobs for request_id in job.items}
    still_open = open_requests(resolved, all_requests, outcomes, retry=())
    # A killed call could not add its answers.
    add_answers(resolved, all_requests)
    return copy_from_cache(resolved, [r for r in still_open if r.id not in in_jobs], journal)


def _expected_tokens(
    task: str, request: Request, stats: RunStats, published: Mapping[str, float]
) -> float | None:
    """Return the tokens that a request of `task` is expected to take; None if nothing is known."""
    generated = stats.expected_tokens(task)
    if generated is None:
        generated = published.get(task)
    if generated is None:
        return None
    characters = sum(len(message.content) for message in request.messages)
    return characters / CHARACTERS_PER_TOKEN + generated
