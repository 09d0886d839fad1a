"""One execution of a run, which signals may end, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from numbench.journal import background_jobs, iter_responses
from numbench.models import Model
from numbench.models.base import BatchService
from numbench.runner.batch_scheduler import BatchScheduler
from numbench.runner.budget import Budget
from numbench.runner.refusal import Refusal, explain_refusal
from numbench.runner.run_context import RunContext
from numbench.runner.run_report import (
    CostLimitReached,
    RunInterrupted,
    RunReport,
    TimeLimitReached,
)
from numbench.runner.scheduler import RequestScheduler
from numbench.runner.spec import ResolvedRun
from numbench.served_models import drift_warnings


class Execution:
    """One execution of a scheduler, which `interrupt` and `cancel` end from any thread."""

    def __init__(
        self,
        scheduler: RequestScheduler | BatchScheduler,
        client: Model | BatchService,
        resolved: ResolvedRun,
        context: RunContext,
        batch: bool,
        cached: int,
    ) -> None:
        self._scheduler, self._client = scheduler, client
        self._resolved, self._context, self._batch = resolved, context, batch
        self._cached = cached
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
        except Refusal as refusal:
            self._context.journal.discard_if_empty()
            raise await explain_refusal(refusal, self._resolved.description, self._client) from None
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
            raise RunInterrupted(report)
        if budget is not None and budget.is_closed and open_count:
            message = _cost_limit_message(report, budget, open_count)
            raise CostLimitReached(report, message, budget.cost_unknown)
        if self._scheduler.reached_time_limit and open_count:
            raise TimeLimitReached(report, open_count, self._batch)
        return report

    def _report(self) -> RunReport:
        stats = self._scheduler.stats
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
            seconds=stats.progress().seconds,
            interrupted=self._interrupted,
            possibly_billed=stats.possibly_billed,
            warnings=tuple(drift_warnings(iter_responses(self._resolved.folder))),
            cached=self._cached,
            in_progress=len(background_jobs(self._resolved.folder)),
        )

    def _call_in_loop(self, function: Callable[[], object]) -> None:
        if self._loop is not None:
            # The loop is closed if the run has just ended.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function)


def _cost_limit_message(report: RunReport, budget: Budget, open_count: int) -> str:
    limit = f"--max-cost {budget.limit:g}"
    unknown = budget.possibly_billed
    spent = f"${budget.spent:.4f} spent" + (
        f", up to ${unknown:.4f} more billed" if unknown else ""
    )
    counts = f"{spent}, {report.answered:,} answered now, {open_count:,} still open"
    if budget.cost_unknown:
        return (
            f"{report.path}: stopped because the provider reported no cost for an answer, so "
            f"--max-cost cannot be enforced: {counts}; run the same command without --max-cost to "
            "continue"
        )
    if budget.lost_before_any_cost:
        return (
            f"{report.path}: stopped because {budget.lost_before_any_cost} lost answers may have "
            f"been billed, and no cost is known: {counts}; run the same command again to continue"
        )
    reason = (
        f"stopped after an unusually expensive answer exceeded {limit}"
        if budget.spent > budget.limit
        else f"stopped before exceeding {limit}"
    )
    return (
        f"{report.path}: {reason}: {counts}; run the same command with a larger --max-cost to "
        "continue"
    )
