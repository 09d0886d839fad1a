"""Progress of a run as values, and the statistics that they are computed from."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from numbench.horizon import StopReason
from numbench.records import Completion, Item, possibly_billed_attempts

if TYPE_CHECKING:
    from numbench.horizon.psychometric import Estimate

RATE_WINDOW_SECONDS = 60
RATE_MIN_ITEMS = 20
"""With fewer results in the window, the rate is that of the whole call."""


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
        """Number of completed items."""
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
        return TaskProgress(self.task, *map(_sum, self[1:], other[1:]))


class HorizonProgress(NamedTuple):
    """The measurement of the horizon of one task.

    h50: the estimate from the complete rounds, in units of the size. largest: the largest size
    that may be asked. stop: why the measurement is complete, None if it is not.
    """

    task: str
    h50: Estimate
    smallest: int
    largest: int
    stop: StopReason | None


class RunProgress(NamedTuple):
    """Progress of a run: of the whole run in `tasks`, of this call in the other fields.

    Counts are of requests: one per item, or per sample of an item. previously_done: requests that
    earlier calls completed. rate: recent requests per second. seconds:
    elapsed seconds. in_flight, concurrency_limit, max_concurrency: requests in flight, their
    present limit and the requested one (0 if there is no limit to report). pause_seconds: seconds
    for which the provider still accepts no requests. note: a message for the user. last_failure:
    why the latest attempt failed, empty once a question is answered. horizons: of a measurement,
    what is known of each task.
    """

    tasks: tuple[TaskProgress, ...]
    previously_done: int = 0
    retries: int = 0
    seconds: float = 0.0
    rate: float = 0.0
    in_flight: int = 0
    concurrency_limit: int = 0
    max_concurrency: int = 0
    pause_seconds: float = 0.0
    note: str = ""
    last_failure: str = ""
    horizons: tuple[HorizonProgress, ...] = ()

    @property
    def overall(self) -> TaskProgress:
        """The sum of all tasks; its accuracy is that of all scored answers together."""
        return reduce(TaskProgress.plus, self.tasks, TaskProgress("all"))

    @property
    def total(self) -> int:
        """Number of items of the whole run."""
        return sum(task.total for task in self.tasks)

    @property
    def done(self) -> int:
        """Number of completed items of the whole run."""
        return sum(task.done for task in self.tasks)

    @property
    def remaining_seconds(self) -> float | None:
        """Seconds to the end at the recent rate, None if there is no rate."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None

    @property
    def mean_rate(self) -> float:
        """Items per second over the whole of this call."""
        return (self.done - self.previously_done) / self.seconds if self.seconds > 0 else 0.0


ProgressCallback = Callable[[RunProgress], None]
"""Receives the progress of a run after every change."""

ScoreCallback = Callable[[Item, Completion], bool | None]
"""Returns whether an answer is correct, None if it cannot be scored."""


def judged(item: Item, completion: Completion, judge: ScoreCallback | None) -> TaskProgress:
    """Return what the completion of a request adds to the progress of its task, but for costs."""
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


class RunStats:
    """Counts the results of a run, those of earlier calls included.

    answered, errors, permanent_errors (errors that only --retry error repeats), last_error,
    possibly_billed (attempts of unknown cost that may have been billed), input_tokens,
    generated_tokens, cost (US dollars): of this call alone; sums over the reported values, None if
    none was reported. highest_cost: of an answer of this call, 0 if unknown.
    """

    def __init__(
        self,
        items: Iterable[Item],
        judge: ScoreCallback | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`items`: all of the run. Without `judge` there is no accuracy."""
        self._tasks: dict[str, TaskProgress] = {}
        self.expect(items)
        self._judge, self._clock = judge, clock
        self._previously_done = 0
        self.answered = self.errors = self.permanent_errors = self.possibly_billed = 0
        self.last_error: str | None = None
        self.input_tokens: int | None = None
        self.generated_tokens: int | None = None
        self.cost: float | None = None
        self.highest_cost = 0.0
        self._start = clock()
        self._counts: deque[tuple[float, int]] = deque(maxlen=RATE_WINDOW_SECONDS)

    def expect(self, items: Iterable[Item]) -> None:
        """Count items that are going to be requested, or were in an earlier call."""
        for task, count in Counter(item.task for item in items).items():
            self._add(TaskProgress(task, count))

    def count(self, item: Item, completion: Completion) -> None:
        """Count the result of `item` in this call."""
        result = judged(item, completion, self._judge)
        self._add(result._replace(cost=completion.cost))
        self.answered += result.answered
        self.errors += result.errors
        if completion.error is not None:
            self.permanent_errors += completion.error.kind == "item"
            self.last_error = completion.error.message
        self.input_tokens = _sum(self.input_tokens, completion.usage.input)
        self.generated_tokens = _sum(self.generated_tokens, completion.usage.generated)
        self.highest_cost = max(self.highest_cost, completion.cost or 0.0)
        self.count_abandoned(completion)

    def count_abandoned(self, completion: Completion) -> None:
        """Count the cost of a request, which the end of the run may have cut off."""
        self.possibly_billed += possibly_billed_attempts(completion)
        self.cost = _sum(self.cost, completion.cost)

    def count_previous(self, result: TaskProgress) -> None:
        """Count the result of a request in an earlier call, without its cost."""
        self._add(result)
        self._previously_done += 1

    def add_previous_cost(self, task: str, cost: float) -> None:
        """Add US dollars that an earlier call paid for an attempt at an item of `task`."""
        self.highest_cost = max(self.highest_cost, cost)
        self._add(TaskProgress(task, cost=cost))

    def progress(self, **of_scheduler: Any) -> RunProgress:
        """Return the progress, with the fields that only the scheduler knows."""
        return RunProgress(
            tasks=tuple(self._tasks.values()),
            previously_done=self._previously_done,
            seconds=self._clock() - self._start,
            rate=self._rate(),
            **of_scheduler,
        )

    def _rate(self) -> float:
        now, done = self._clock(), self.answered + self.errors
        if not self._counts or now - self._counts[-1][0] >= 1.0:
            self._counts.append((now, done))
        since, before = self._counts[0]
        if done - before < RATE_MIN_ITEMS:
            since, before = self._start, 0
        return (done - before) / (now - since) if now > since else 0.0

    def _add(self, result: TaskProgress) -> None:
        self._tasks[result.task] = self._tasks.get(result.task, TaskProgress(result.task)).plus(
            result
        )


def _sum(total: Any, value: Any) -> Any:
    """Return the sum of two numbers that may be None for unknown."""
    if value is None:
        return total
    return value if total is None else total + value
