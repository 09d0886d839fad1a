"""A run: a dataset's items through a model into a run folder that can be resumed."""

from __future__ import annotations

import asyncio
import math
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.errors import BadInput, NumbenchError
from bench.journal import Journal, read_jobs, read_lines
from bench.models import Model, open_batch, open_model
from bench.models.base import TIMEOUT, BatchService
from bench.models.catalogue import load
from bench.records import Completion, Item, Response
from bench.runner.batch_drive import BatchDrive
from bench.runner.budget import Budget
from bench.runner.drive import Drive, Pace
from bench.runner.expected import published_tokens
from bench.runner.live import display, title
from bench.runner.planning import plan_task, price_for
from bench.runner.prices import OWN, Price, billed
from bench.runner.progress import Watch
from bench.runner.selection import interleaved, outcomes, still_open
from bench.runner.spec import Resolved, RunSpec, resolve
from bench.runner.tally import Judge, Tally


class RunReport(NamedTuple):
    """What one call of `run` did.

    final: errors that only `retry_errors` asks again; last_error: the message of the last one.
    asked: items for which this call has a result on disk: answered + errors. skipped: settled
    before. input_tokens, generated_tokens, cost (US dollars): sums over what was reported, None
    where nothing was. interrupted: a signal ended it early; the same call goes on.
    """

    path: Path
    asked: int
    answered: int
    skipped: int
    errors: int
    final: int
    last_error: str | None
    retries: int
    input_tokens: int | None
    generated_tokens: int | None
    cost: float | None
    seconds: float
    interrupted: bool


class Interrupted(KeyboardInterrupt):
    """A run was interrupted; `report` says what is on disk. Exit code 130."""

    def __init__(self, report: RunReport) -> None:
        super().__init__(f"{report.path}: interrupted after {report.asked} items")
        self.report = report


class CostReached(NumbenchError):
    """A run ended before its `--max-cost`; `report` says what is on disk.

    uncounted: not because the limit was near, but because an answer came without a cost.
    """

    def __init__(self, report: RunReport, message: str, uncounted: bool = False) -> None:
        super().__init__(message)
        self.report = report
        self.uncounted = uncounted


class TimeReached(NumbenchError):
    """A run ended at its `--time-limit` with items still open; `report` says what is on disk."""

    def __init__(self, report: RunReport, left: int, batch: bool) -> None:
        jobs = "the jobs go on at the provider, and " if batch else ""
        super().__init__(
            f"{report.path}: stopped at --time-limit: {report.answered} answered now, {left} still "
            f"open; {jobs}the same command goes on"
        )
        self.report = report


def run(
    spec: RunSpec,
    *,
    concurrency: int | None = None,
    retry_errors: bool = False,
    max_attempts: int = 6,
    timeout: float = TIMEOUT,
    time_limit: float | None = None,
    max_cost: float | None = None,
    batch: bool = False,
    on_progress: Watch | None = None,
    judge: Judge | None = None,
) -> RunReport:
    """Ask a model the items of a dataset and keep every response in a run folder.

    Called again it asks only what has no answer yet; items that can never be answered only with
    `retry_errors`. `timeout`, in seconds, is for one request; after `time_limit` seconds nothing
    new is asked, and what is under way is waited for. `max_cost`, in US dollars, counts all that
    the run folder has cost so far. `batch`: by the provider's batch jobs, which go on where this
    call ends early. Without `on_progress` progress is shown on stderr; `judge` tells right
    answers, for the accuracy in it.

    BadInput for wrong arguments, NumbenchError where no item can be answered or the disk is full,
    CostReached and TimeReached at a limit, Interrupted after a signal.
    """
    _check(concurrency, timeout, time_limit)
    whom = (spec.model, spec.reasoning, spec.base_url, spec.api)
    service = open_batch(*whom) if batch else None
    opened = open_model(*whom)
    resolved = resolve(spec, opened.about)
    concurrency = opened.about.concurrency if concurrency is None else concurrency
    folder, price = resolved.folder, price_for(opened.about)
    discount = opened.about.batch_discount or 0.0 if batch else 0.0
    if max_cost is not None:
        check_limit(spec.model, opened.about.route, price, max_cost)
    pace = Pace(
        concurrency=concurrency, max_attempts=max_attempts, timeout=timeout, time_limit=time_limit
    )
    name = title(spec.model, opened.about.level, resolved.source.name)
    shown = display(name) if on_progress is None else nullcontext(on_progress)
    with Journal(folder, resolved.info) as journal, shown as watch:
        if service is None:
            _check_no_job(folder)
        wanted = list(interleaved(resolved.asked.values()))
        items = still_open(wanted, outcomes(read_lines(folder)), retry_errors)
        budget = None
        if max_cost is not None:
            budget = _budget(max_cost, resolved, price, discount)
        bill = partial(billed, price=price, discount=discount)
        tally = _tally(wanted, items, folder, bill, judge)
        ask = partial(resolved.request, timeout=timeout)
        how = (items, ask, journal, pace, watch, bill, budget, tally)
        drive = BatchDrive(service, *how) if service else Drive(opened.model, *how)
        report = asyncio.run(
            _drive(drive, service or opened.model, folder, len(wanted) - len(items))
        )
    left = len(items) - report.asked
    if report.interrupted:
        raise Interrupted(report)
    if budget is not None and budget.over and left:
        raise CostReached(report, _why_stopped(report, budget, left), budget.uncounted)
    if drive.out_of_time and left:
        raise TimeReached(report, left, batch)
    return report


def _budget(max_cost: float, resolved: Resolved, price: Price | None, discount: float) -> Budget:
    """The limit, with what is spent. BadInput where a batch, sent at once, could not keep it."""
    expected = {task: cost * (1 - discount) for task, cost in _expected(resolved, price).items()}
    so_far = spent(read_lines(resolved.folder), resolved.task_of, price)
    budget = Budget(max_cost, expected, so_far)
    unknown = [task for task in resolved.tasks if budget.estimate(task) is None]
    if discount and unknown:
        raise BadInput(
            f"nobody knows what a question of {', '.join(unknown)} costs {resolved.spec.model}, so "
            "--max-cost cannot be kept by a batch: leave out --batch or --max-cost"
        )
    return budget


def _check_no_job(folder: Path) -> None:
    """BadInput where a batch job may still bring answers, which would be paid for twice."""
    if any(job.under_way for job in read_jobs(folder).values()):
        raise BadInput(
            f"{folder}: a batch job of this run is under way at the provider; the same command "
            "with --batch collects its answers"
        )


def _check(concurrency: int | None, timeout: float, time_limit: float | None) -> None:
    if concurrency is not None and concurrency < 1:
        raise BadInput(f"--concurrency {concurrency}: give 1 or more")
    for name, seconds in (("--timeout", timeout), ("--time-limit", time_limit)):
        if seconds is not None and not 0 < seconds < math.inf:
            raise BadInput(f"{name} {seconds:g}: give a time above 0")


def _tally(
    wanted: Sequence[Item],
    pending: Sequence[Item],
    folder: Path,
    bill: Callable[[Completion], Completion],
    judge: Judge | None,
) -> Tally:
    """A count of the run `wanted` that begins with what is on disk, all its lines paid for."""
    tally = Tally(wanted, judge)
    items = {item.id: item for item in wanted}
    settled = items.keys() - {item.id for item in pending}
    lost: dict[str, Completion] = {}
    for response in read_lines(folder):
        if (item := items.get(response.item_id)) is None:
            continue
        billed_ = bill(response)
        if response.error is None and item.id in settled:
            settled.discard(item.id)
            tally.count_before(item, billed_)
            continue
        if billed_.cost is not None:
            tally.pay_before(item, billed_.cost)
        lost[item.id] = msgspec.structs.replace(billed_, cost=None)
    for item_id in settled:
        tally.count_before(items[item_id], lost[item_id])
    return tally


async def _drive(
    drive: Drive | BatchDrive, asked: Model | BatchService, folder: Path, skipped: int
) -> RunReport:
    signalled = threading.Event()
    try:
        with _stopped_by_signals(drive, signalled):
            await drive.run()
    finally:
        await asked.close()
    tally = drive.tally
    return RunReport(
        path=folder,
        asked=tally.answered + tally.errors,
        answered=tally.answered,
        skipped=skipped,
        errors=tally.errors,
        final=tally.final,
        last_error=tally.last_error,
        retries=drive.retries,
        input_tokens=tally.input_tokens,
        generated_tokens=tally.generated_tokens,
        cost=tally.cost,
        seconds=drive.now.seconds,
        interrupted=signalled.is_set(),
    )


@contextmanager
def _stopped_by_signals(drive: Drive | BatchDrive, signalled: threading.Event) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP end the drive in order; a second one, at once."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread hears signals.
        yield
        return
    loop = asyncio.get_running_loop()
    running = asyncio.current_task()

    def on_signal() -> None:
        if signalled.is_set() and running is not None:
            running.cancel()
        signalled.set()
        drive.interrupt()

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in signals]
    for number in signals:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    except asyncio.CancelledError:
        if not signalled.is_set():
            raise
    finally:
        for number, handler in zip(signals, before, strict=True):
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def check_limit(model: str, route: str | None, price: Price | None, max_cost: float) -> None:
    """BadInput where a limit on the cost could not be kept, or is none."""
    if not math.isfinite(max_cost) or max_cost <= 0:
        raise BadInput(f"--max-cost {max_cost:g}: give US dollars above 0")
    if route is None:
        raise BadInput(f"{model} runs in this process and costs nothing: leave out --max-cost")
    provider = route.partition("/")[0]
    if not load().provider[provider].reports_cost and (price is None or price.varies):
        raise BadInput(
            f"{model}: no price is known for {route}, and {provider} reports no cost, so "
            f"--max-cost cannot be kept; name the price in {OWN}"
        )


def spent(
    responses: Iterable[Response], task_of: Mapping[str, str], price: Price | None
) -> Iterator[tuple[str, float]]:
    """Task and US dollars of each recorded response. BadInput for an answer of unknown cost."""
    for response in responses:
        amount = billed(response, price).cost
        if amount is not None:
            yield task_of[response.item_id], amount
        elif response.error is None:
            raise BadInput(
                f"the run holds an answer of unknown cost ({response.item_id}), so --max-cost "
                "cannot be kept; choose another --out"
            )


def _expected(resolved: Resolved, price: Price | None) -> dict[str, float]:
    """US dollars that one request of each task may cost, as far as anybody knows."""
    averages = published_tokens(resolved.spec.model, resolved.about.level)
    planned = [
        plan_task(resolved, task, items, averages, price) for task, items in resolved.asked.items()
    ]
    return {task.task: task.cost / task.requests for task in planned if task.cost and task.requests}


def _why_stopped(report: RunReport, budget: Budget, left: int) -> str:
    done = f"${budget.spent:.4f} spent, {report.answered} answered now, {left} still open"
    if budget.uncounted:
        return (
            f"{report.path}: stopped, the provider reported no cost for an answer, so --max-cost "
            f"cannot be kept: {done}; without --max-cost the same command goes on"
        )
    if budget.spent > budget.limit:
        return (
            f"{report.path}: stopped at --max-cost {budget.limit:g}, which answers dearer than all "
            f"before them exceeded: {done}; the same command with a larger --max-cost goes on"
        )
    return (
        f"{report.path}: stopped before --max-cost {budget.limit:g} is exceeded: {done}; "
        "the same command with a larger --max-cost goes on"
    )
