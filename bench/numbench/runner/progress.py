"""Progress of a run: what is counted, for the whole run and for one call."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from numbench.records import Completion, Item, Response

SEPARATOR, NO_VALUE = " · ", "–"


class TaskProgress(NamedTuple):
    """Progress of one task, with the results of earlier calls of the same run.

    Counts are of requests: one per item, or per sample of an item. answered, errors: completed.
    scored, correct: answers that were scored, and how many of them match. generated_tokens: a sum
    over `answers_with_tokens` answers. cost: US dollars; both are None if nothing was reported.
    unknown_costs: number of answers of unknown cost.
    """

    task: str
    total: int = 0
    answered: int = 0
    errors: int = 0
    scored: int = 0
    correct: int = 0
    answers_with_tokens: int = 0
    generated_tokens: int | None = None
    cost: float | None = None
    unknown_costs: int = 0

    @property
    def done(self) -> int:
        """Number of completed requests."""
        return self.answered + self.errors

    @property
    def accuracy(self) -> float | None:
        """Share of the scored answers that are correct, None if there are none."""
        return self.correct / self.scored if self.scored else None

    @property
    def tokens_per_answer(self) -> float | None:
        """Mean generated tokens over the answers that report them, None if there are none."""
        if self.generated_tokens is None:
            return None
        return self.generated_tokens / self.answers_with_tokens

    def plus(self, other: TaskProgress) -> TaskProgress:
        """Return the sum of both, for the task of this one."""
        return TaskProgress(self.task, *map(_sum_of_known, self[1:], other[1:]))


class RunProgress(NamedTuple):
    """Progress of a run: of the whole run in `tasks`, of this call in the other fields.

    Counts are of requests: one per item, or per sample of an item. previously_done: requests that
    earlier calls completed. seconds: elapsed seconds. in_flight, concurrency_limit: requests in
    flight, and their present limit (0 if there is none to report). pause_seconds: seconds
    for which the provider still accepts no requests. note: a message for the user. last_failure:
    why the latest attempt failed, empty once a question is answered. horizons: of a measurement,
    what is known of each task. complete: number of its tasks that are.
    """

    tasks: tuple[TaskProgress, ...]
    previously_done: int = 0
    retries: int = 0
    seconds: float = 0.0
    in_flight: int = 0
    concurrency_limit: int = 0
    pause_seconds: float = 0.0
    note: str = ""
    last_failure: str = ""
    horizons: Mapping[str, str] = MappingProxyType({})
    complete: int = 0

    @property
    def overall(self) -> TaskProgress:
        """The sum of all tasks; its accuracy is that of all scored answers together."""
        return reduce(TaskProgress.plus, self.tasks, TaskProgress("all"))

    @property
    def total(self) -> int:
        """Number of requests of the whole run."""
        return sum(task.total for task in self.tasks)

    @property
    def done(self) -> int:
        """Number of completed requests of the whole run."""
        return sum(task.done for task in self.tasks)

    @property
    def rate(self) -> float:
        """Requests per second over the whole of this call."""
        return (self.done - self.previously_done) / self.seconds if self.seconds > 0 else 0.0

    @property
    def remaining_seconds(self) -> float | None:
        """Seconds to the end at this rate, None if there is no rate."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None


ProgressCallback = Callable[[RunProgress], None]
"""Receives the progress of a run after every change."""

ScoreCallback = Callable[[Item, Completion], bool | None]
"""Returns whether an answer is correct, None if it cannot be scored."""


def judged(item: Item, completion: Completion, judge: ScoreCallback | None) -> TaskProgress:
    """Return what a completed request adds to the progress of its task, except its cost."""
    failed = completion.error is not None
    correct = judge(item, completion) if judge else None
    generated = None if failed else completion.usage.generated
    return TaskProgress(
        item.task,
        answered=not failed,
        errors=failed,
        scored=correct is not None,
        correct=bool(correct),
        answers_with_tokens=generated is not None,
        generated_tokens=generated,
        unknown_costs=completion.cost is None and not failed,
    )


@dataclass(kw_only=True)
class RunReport:
    """The result of one call of `run`.

    Counts are of requests, one per item and sample.

    answered, errors: results stored by this call. skipped: requests that earlier calls completed.
    permanent_errors: errors that only `retry` requests again. last_error: message of the latest
    error. input_tokens, generated_tokens, cost (US dollars): sums over the reported values, None if
    none was reported. seconds: elapsed time of this call. interrupted: whether a signal ended it
    early; the same call resumes the run. possibly_billed_attempts: those without an answer, such as
    timeouts, that may have been billed and are not part of `cost`; possibly_billed_cost: US dollars
    for those of all calls, None if unknown. unanswered: requests of the run, those of earlier calls
    included, without an answer. warnings: what the user should know about the answers, of earlier
    calls too.
    """

    path: Path = Path()
    answered: int = 0
    skipped: int = 0
    errors: int = 0
    permanent_errors: int = 0
    last_error: str | None = None
    retries: int = 0
    input_tokens: int | None = None
    generated_tokens: int | None = None
    cost: float | None = None
    seconds: float = 0.0
    interrupted: bool = False
    possibly_billed_attempts: int = 0
    possibly_billed_cost: float | None = None
    unanswered: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def completed(self) -> int:
        """Results stored by this call."""
        return self.answered + self.errors

    @property
    def failure(self) -> str | None:
        """Why the call failed: no question of the run was ever answered; None if it did not."""
        if not self.errors or self.answered or self.skipped:
            return None
        return f"{self.path}: nothing was answered; last failure: {self.last_error}"

    @property
    def state(self) -> str:
        """What is on disk, what else may be billed, and how to continue."""
        return self.describe("the same command continues")

    def describe(self, continuation: str) -> str:
        """Return what is on disk, what else may be billed, and a sentence how to continue."""
        parts = [
            f"{self.answered:,} answered now, {self.unanswered:,} still open",
            f"saved in {self.path}",
        ]
        if self.possibly_billed_cost:
            parts.append(f"up to ${self.possibly_billed_cost:.4f} more may be billed")
        elif self.possibly_billed_attempts:
            answers = f"lost answer{'s' * (self.possibly_billed_attempts > 1)}"
            parts.append(f"{self.possibly_billed_attempts:,} {answers} may be billed")
        return "; ".join((", ".join(parts), continuation))


class RunStats:
    """Counts the results of a run, those of earlier calls included.

    report: counts of this call alone, and sums over the reported values. previously_done: requests
    that earlier calls completed.
    """

    def __init__(
        self,
        items: Iterable[Item],
        judge: ScoreCallback | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`items`: of all requests of the run. Without `judge` there is no accuracy."""
        self.report = RunReport()
        self._tasks: dict[str, TaskProgress] = {}
        self.expect(items)
        self._judge, self._clock = judge, clock
        self.previously_done = 0
        self._start = clock()

    def expect(self, items: Iterable[Item]) -> None:
        """Count requests for items that are going to be sent, or were in an earlier call."""
        for task, count in Counter(item.task for item in items).items():
            self.add(TaskProgress(task, count))

    def count(self, item: Item, response: Response, whole: Response) -> None:
        """Count the result of `item` in this call. whole: the response with its earlier turns."""
        result, report = judged(item, whole, self._judge), self.report
        self.add(result)
        report.answered += result.answered
        report.errors += result.errors
        if response.error is not None:
            report.permanent_errors += response.error.kind == "item"
            report.last_error = response.error.message
        self.count_reply(item.task, response)

    def count_reply(self, task: str, response: Response) -> None:
        """Count the tokens and cost of a reply in this call, even if its conversation continues."""
        report = self.report
        self.add(TaskProgress(task, cost=response.known_cost))
        report.input_tokens = _sum_of_known(report.input_tokens, response.usage.input)
        report.generated_tokens = _sum_of_known(report.generated_tokens, response.usage.generated)
        self.count_cost(response)

    def count_cost(self, response: Response) -> None:
        """Count the cost of a result, whether or not it is an answer."""
        self.report.possibly_billed_attempts += response.possibly_billed_attempts
        self.report.cost = _sum_of_known(self.report.cost, response.known_cost)

    def progress(self, **more: Any) -> RunProgress:
        """Return the progress, with the fields that only the workers or the jobs know."""
        return RunProgress(
            tasks=tuple(self._tasks.values()),
            previously_done=self.previously_done,
            retries=self.report.retries,
            seconds=self._clock() - self._start,
            **more,
        )

    def add(self, result: TaskProgress) -> None:
        """Count a result, or a part of one, for the whole run and not for this call."""
        task = result.task
        self._tasks[task] = self._tasks.get(task, TaskProgress(task)).plus(result)


def _sum_of_known(total: Any, value: Any) -> Any:
    """Return the sum of two numbers that may be None for unknown."""
    if value is None:
        return total
    return value if total is None else total + value
