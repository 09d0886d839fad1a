"""How a run ended: its report, and the exceptions that carry one."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from numbench.errors import NumbenchError


class RunReport(NamedTuple):
    """The result of one call of `run`.

    Counts are of requests, one per item and sample.

    completed: results stored by this call: answered + errors. skipped: requests that earlier calls
    completed. permanent_errors: errors that only `retry_errors` retries. last_error:
    message of the latest error. input_tokens, generated_tokens, cost (US dollars): sums over the
    reported values, None if none was reported. seconds: elapsed time of this call. interrupted:
    whether a signal ended it early; the same call resumes the run. possibly_billed: attempts
    without an answer, such as timeouts, that may have been billed and are not part of `cost`.
    warnings: what the user should know about the answers, of earlier calls too.
    cached: how many of the skipped requests this call found in the response cache.
    in_progress: answers that the provider generates in the background; the next call collects them.
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
    warnings: tuple[str, ...] = ()
    cached: int = 0
    in_progress: int = 0


class RunInterrupted(KeyboardInterrupt):
    """A signal interrupted the run; `report` describes what is on disk. Exit code 130."""

    def __init__(self, report: RunReport) -> None:
        super().__init__(f"{report.path}: interrupted after {report.completed} items")
        self.report = report


class CostLimitReached(NumbenchError):
    """The run stopped because of `max_cost`; `report` describes what is on disk.

    cost_unknown: the reason was not the limit itself but an answer without a reported cost.
    """

    def __init__(self, report: RunReport, message: str, cost_unknown: bool = False) -> None:
        super().__init__(message)
        self.report = report
        self.cost_unknown = cost_unknown


class TimeLimitReached(NumbenchError):
    """The run stopped at `time_limit` with open items; `report` describes what is on disk."""

    def __init__(self, report: RunReport, open_count: int, batch: bool) -> None:
        jobs = "batch jobs continue at the provider; " if batch else ""
        super().__init__(
            f"{report.path}: stopped at --time-limit: {report.answered:,} answered now, "
            f"{open_count:,} still open; {jobs}run the same command again to continue"
        )
        self.report = report
