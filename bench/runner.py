"""A run: a dataset's items through a model into a run folder that can be resumed."""

from __future__ import annotations

import asyncio
import math
import platform
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from bench import __version__
from bench.budget import Budget
from bench.dataset.store import Dataset, open_dataset
from bench.drive import Drive, Pace, Request
from bench.errors import BadInput, NumbenchError
from bench.expected import published_tokens
from bench.journal import Journal
from bench.live import display, title
from bench.models import Message, Model, Opened, open_model
from bench.models.base import TIMEOUT
from bench.models.catalogue import load
from bench.plan import plan_task
from bench.prices import OWN, Price, billed, price_at
from bench.progress import Watch
from bench.records import Completion, Item, Response, RunInfo
from bench.selection import PROMPTS, choose, default_folder, interleaved, still_open
from bench.tally import Judge, Tally
from bench.tasks import TASKS
from bench.tasks.phrasing import prompts


class RunReport(NamedTuple):
    """What one call of `run` did.

    asked: items for which this call has a result on disk: answered + errors. skipped: settled
    before. input_tokens, generated_tokens, cost (US dollars): sums over what was reported, None
    where nothing was. interrupted: a signal ended it early; the same call goes on.
    """

    path: Path
    asked: int
    answered: int
    skipped: int
    errors: int
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


def run(
    model: str,
    reasoning: str | None = None,
    dataset: str | Path = "v1",
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
    out: Path | None = None,
    concurrency: int = 16,
    base_url: str | None = None,
    retry_errors: bool = False,
    max_attempts: int = 6,
    timeout: float = TIMEOUT,
    on_progress: Watch | None = None,
    max_cost: float | None = None,
    judge: Judge | None = None,
) -> RunReport:
    """Ask `model` the items of `dataset` and keep every response in a run folder.

    `limit` is a number of items per task, `timeout` seconds per request. Called again it asks
    only what has no answer yet; items that can never be answered only with `retry_errors`.
    Without `on_progress` progress is shown on stderr. `max_cost`, in US dollars, counts all that
    the run folder has cost so far. `judge` tells right answers, for the accuracy in the progress.
    BadInput for wrong arguments, NumbenchError where no item can be answered or the disk is full,
    CostReached at the limit, Interrupted after a signal.
    """
    for name, number in (("--limit", limit), ("--concurrency", concurrency)):
        if number is not None and number < 1:
            raise BadInput(f"{name} {number}: give 1 or more")
    source = open_dataset(dataset)
    chosen = choose(source, tasks)
    opened = open_model(model, reasoning, base_url)
    folder = out or default_folder(model, opened.level, source.name)
    info = _describe(opened, model, source, chosen, limit, folder)
    price = _price(opened)
    if max_cost is not None:
        check_limit(model, opened.identity.get("route"), price, max_cost)
    pace = Pace(concurrency=concurrency, max_attempts=max_attempts)
    name = title(model, opened.level, source.name)
    shown = display(name) if on_progress is None else nullcontext(on_progress)
    with Journal(folder, info) as journal, shown as watch:
        wanted = list(interleaved(source.by_task[task][:limit] for task in chosen))
        items = still_open(wanted, journal.responses, retry_errors)
        budget = None
        if max_cost is not None:
            asked = {task: source.by_task[task][:limit] for task in chosen}
            expected = _expected(asked, published_tokens(model, opened.level), price)
            budget = Budget(max_cost, expected, spent(journal.responses, source, price))
        bill, ask = partial(billed, price=price), _asker(opened, timeout)
        tally = _tally(wanted, items, journal.responses, bill, judge)
        drive = Drive(opened.model, items, ask, journal, pace, watch, bill, budget, tally)
        report = asyncio.run(_drive(drive, opened.model, folder, len(wanted) - len(items)))
    if report.interrupted:
        raise Interrupted(report)
    if budget is not None and budget.over and report.asked < len(items):
        why = _why_stopped(report, budget, len(items) - report.asked)
        raise CostReached(report, why, budget.uncounted)
    return report


def _tally(
    wanted: Sequence[Item],
    still_open: Sequence[Item],
    responses: Mapping[str, Response],
    bill: Callable[[Completion], Completion],
    judge: Judge | None,
) -> Tally:
    """A count of the run `wanted` that begins with what is on disk."""
    tally = Tally(wanted, judge)
    pending = {item.id for item in still_open}
    for item in wanted:
        if item.id not in pending:
            tally.count_before(item, bill(responses[item.id]))
    return tally


async def _drive(drive: Drive, model: Model, folder: Path, skipped: int) -> RunReport:
    signalled = threading.Event()
    try:
        with _stopped_by_signals(drive, signalled):
            await drive.run()
    finally:
        await model.close()
    return RunReport(
        path=folder,
        asked=drive.answered + drive.errors,
        answered=drive.answered,
        skipped=skipped,
        errors=drive.errors,
        retries=drive.retries,
        input_tokens=drive.input_tokens,
        generated_tokens=drive.generated_tokens,
        cost=drive.cost,
        seconds=drive.now.seconds,
        interrupted=signalled.is_set(),
    )


@contextmanager
def _stopped_by_signals(drive: Drive, signalled: threading.Event) -> Iterator[None]:
    """SIGINT and SIGTERM end the drive in order; a second one, at once."""
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
        drive.stop.set()

    signals = (signal.SIGINT, signal.SIGTERM)
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


def _describe(
    opened: Opened,
    model: str,
    source: Dataset,
    tasks: tuple[str, ...],
    limit: int | None,
    folder: Path,
) -> RunInfo:
    settings = asdict(opened.settings)
    for of_one_request in ("answer_kind", "timeout"):
        del settings[of_one_request]
    versions = {"numbench": __version__, "python": platform.python_version()}
    if opened.sdk is not None:
        versions[opened.sdk] = version(opened.sdk)
    return RunInfo(
        model=model,
        display=opened.display,
        reasoning=opened.level,
        dataset=source.ref(folder),
        prompt=prompts(PROMPTS).ref,
        tasks=tasks,
        limit=limit,
        settings=settings | opened.identity,
        versions=versions,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _price(opened: Opened) -> Price | None:
    """What the model's tokens cost, None where nobody knows or it runs in this process."""
    if "route" not in opened.identity:
        return None
    base_url = opened.identity["base_url"]
    return price_at(str(opened.identity["route"]), str(base_url) if base_url else None)


def check_limit(model: str, route: object, price: Price | None, max_cost: float) -> None:
    """BadInput where a limit on the cost could not be kept, or is none."""
    if not math.isfinite(max_cost) or max_cost <= 0:
        raise BadInput(f"--max-cost {max_cost:g}: give US dollars above 0")
    if route is None:
        raise BadInput(f"{model} runs in this process and costs nothing: leave out --max-cost")
    provider = str(route).partition("/")[0]
    if not load().provider[provider].reports_cost and (price is None or price.varies):
        raise BadInput(
            f"{model}: no price is known for {route}, and {provider} reports no cost, so "
            f"--max-cost cannot be kept; name the price in {OWN}"
        )


def spent(
    responses: Mapping[str, Response], source: Dataset, price: Price | None
) -> Iterator[tuple[str, float]]:
    """Task and US dollars of each recorded response. BadInput for an answer of unknown cost."""
    for item_id, response in responses.items():
        amount = billed(response, price).cost
        if amount is not None:
            yield source.by_id[item_id].task, amount
        elif response.error is None:
            raise BadInput(
                f"the run holds an answer of unknown cost ({item_id}), so --max-cost cannot be "
                "kept; choose another --out"
            )


def _expected(
    asked: Mapping[str, Sequence[Item]], averages: Mapping[str, float], price: Price | None
) -> dict[str, float]:
    """US dollars that one request of each task may cost, as far as anybody knows."""
    planned = [plan_task(task, items, averages, price) for task, items in asked.items()]
    return {task.task: task.cost / task.requests for task in planned if task.cost and task.requests}


def _why_stopped(report: RunReport, budget: Budget, left: int) -> str:
    done = f"${budget.spent:.4f} spent, {report.answered} answered now, {left} still open"
    if budget.uncounted:
        return (
            f"{report.path}: stopped, the provider reported no cost for an answer, so --max-cost "
            f"cannot be kept: {done}; without --max-cost the same command goes on"
        )
    return (
        f"{report.path}: stopped before --max-cost {budget.limit:g} is exceeded: {done}; "
        "the same command with a larger --max-cost goes on"
    )


def _asker(opened: Opened, timeout: float) -> Callable[[Item], Request]:
    """The function that phrases an item: its task's system prompt, then the question."""
    known = prompts(PROMPTS)
    asks = {
        task.name: (
            Message("system", known.system(task.system_prompt)),
            replace(opened.settings, answer_kind=task.answer_kind, timeout=timeout),
        )
        for task in TASKS.values()
    }

    def ask(item: Item) -> Request:
        system, settings = asks[item.task]
        return Request((system, Message("user", item.prompt)), settings)

    return ask
