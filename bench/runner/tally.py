"""Counting a run as it goes: per task, and how fast. Every call costs the same, however many."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from bench.records import Completion, Item
from bench.runner.progress import Progress, TaskProgress

_Number = TypeVar("_Number", int, float)

Clock = Callable[[], float]
Judge = Callable[[Item, Completion], bool | None]
"""Whether an answer is right; None where there is nothing to judge."""

_WINDOW = 60.0
_FEWEST = 20
_GRAIN = 0.5


class Rate:
    """Items per second of late: over the last minute, or as much longer as 20 items took.

    Time in which nothing came counts: a pause lowers the rate, and is forgotten a minute later.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        """Time counts from now."""
        self._clock = clock
        self._count = 0
        # Points (time, items until then), `_GRAIN` apart at least; the first begins the window.
        self._marks = deque([(clock(), 0)])

    def count(self) -> None:
        """One more item."""
        now = self._clock()
        if now - self._marks[-1][0] >= _GRAIN:
            self._marks.append((now, self._count))
        self._count += 1

    def now(self) -> float:
        """Items per second."""
        now = self._clock()
        while len(self._marks) > 1 and self._is_past(self._marks[1], now):
            self._marks.popleft()
        began, before = self._marks[0]
        if now - began > _WINDOW and len(self._marks) > 1:
            following, by_then = self._marks[1]
            if following > now - _WINDOW and self._count - by_then >= _FEWEST:
                # Nothing came between the two points: the window may begin anywhere between them.
                began, before = now - _WINDOW, by_then
        return (self._count - before) / (now - began) if now > began else 0.0

    def _is_past(self, mark: tuple[float, int], now: float) -> bool:
        return mark[0] <= now - _WINDOW and self._count - mark[1] >= _FEWEST


class Tally:
    """What has come of the items of a run, earlier calls included.

    answered, errors, final (errors that only --retry-errors asks again), last_error, input_tokens,
    generated_tokens, cost (US dollars): of this call alone; sums over what was reported, None
    where nothing was.
    """

    def __init__(
        self, items: Iterable[Item], judge: Judge | None = None, clock: Clock = time.monotonic
    ) -> None:
        """`items`: all of the run. Without a judge there is no accuracy."""
        totals = Counter(item.task for item in items)
        self._tasks = {task: TaskProgress(task, total) for task, total in totals.items()}
        self._judge, self._clock = judge, clock
        self._before = 0
        self.answered = self.errors = self.final = 0
        self.last_error: str | None = None
        self.input_tokens: int | None = None
        self.generated_tokens: int | None = None
        self.cost: float | None = None
        self._start = clock()
        self._rate = Rate(clock)

    def count(self, item: Item, completion: Completion) -> None:
        """Take down what came of `item` now."""
        self._add(item, completion)
        self._rate.count()
        self.answered += completion.error is None
        if completion.error is not None:
            self.errors += 1
            self.final += completion.error.kind == "item"
            self.last_error = completion.error.message
        self.input_tokens = _sum(self.input_tokens, completion.usage.input)
        self.generated_tokens = _sum(self.generated_tokens, completion.usage.generated)
        self.cost = _sum(self.cost, completion.cost)

    def count_before(self, item: Item, completion: Completion) -> None:
        """Take down what an earlier call brought for `item`."""
        self._add(item, completion)
        self._before += 1

    def pay_before(self, item: Item, cost: float) -> None:
        """Take down US dollars that an earlier call paid for `item` beside its answer."""
        old = self._tasks[item.task]
        self._tasks[item.task] = old._replace(cost=(old.cost or 0.0) + cost)

    def now(
        self,
        retries: int = 0,
        in_flight: int = 0,
        allowed: int = 0,
        asked_for: int = 0,
        held: float = 0.0,
        note: str = "",
    ) -> Progress:
        """Where the run stands, with what only its driver knows."""
        return Progress(
            tasks=tuple(self._tasks.values()),
            before=self._before,
            retries=retries,
            seconds=self._clock() - self._start,
            rate=self._rate.now(),
            in_flight=in_flight,
            allowed=allowed,
            asked_for=asked_for,
            held=held,
            judging=self._judge is not None,
            note=note,
        )

    def _add(self, item: Item, completion: Completion) -> None:
        old = self._tasks[item.task]
        failed = completion.error is not None
        right = self._judge(item, completion) if self._judge else None
        generated, cost = completion.usage.generated, completion.cost
        counts = generated is not None and not failed
        self._tasks[item.task] = TaskProgress(
            task=old.task,
            total=old.total,
            answered=old.answered + (not failed),
            errors=old.errors + failed,
            judged=old.judged + (right is not None),
            right=old.right + bool(right),
            counted=old.counted + counts,
            generated=(old.generated or 0) + (generated or 0) if counts else old.generated,
            cost=old.cost if cost is None else (old.cost or 0.0) + cost,
            unpriced=old.unpriced + (cost is None and not failed),
        )


def _sum(total: _Number | None, value: _Number | None) -> _Number | None:
    if value is None:
        return total
    return value if total is None else total + value
