"""A limit on what a run may cost: nothing is asked that could be expected to exceed it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping

from bench.records import Completion, Item

_ROUNDING = 1 + 1e-9
"""Sums of dollars are binary fractions: ten times 0.1 may be spent under a limit of 1."""


class Budget:
    """US dollars that a run may spend, what it has spent, and what is under way.

    A request under way counts at the larger of what its task is expected to cost and the mean of
    the task so far. Where neither is known, one such request is under way at a time, at the
    largest mean of the other tasks. An answer far above the mean may still exceed the limit.
    """

    def __init__(
        self,
        limit: float,
        expected: Mapping[str, float],
        spent: Iterable[tuple[str, float]] = (),
    ) -> None:
        """`expected`: US dollars a request, by task. `spent`: task and cost of each answer."""
        self.limit = limit
        self.spent = 0.0
        self.exhausted = False
        self.uncounted = False
        self._expected = expected
        self._sums: dict[str, float] = {}
        self._counts: Counter[str] = Counter()
        self._under_way: dict[str, Item] = {}
        self._changed = asyncio.Event()
        for task, cost in spent:
            self._count(task, cost)

    @property
    def over(self) -> bool:
        """Whether nothing more may be asked."""
        return self.exhausted or self.uncounted

    async def admit(self, item: Item) -> bool:
        """Whether `item` may be asked now; waits for requests under way where that may tell.

        False from then on for every item: nothing is under way, and there is no room for it.
        """
        while not self.over:
            if self.try_admit(item):
                return True
            if not self._under_way:
                self.exhausted = True
                break
            await self._changed.wait()
        return False

    def count(self, item: Item, completion: Completion) -> None:
        """Take down what `item` cost. An answer whose cost nobody knows ends the run.

        A failure without a cost counts as free.
        """
        if completion.cost is not None:
            self._count(item.task, completion.cost)
        elif completion.error is None:
            self.uncounted = True

    def try_admit(self, item: Item) -> bool:
        """Whether `item` may be asked now, beside all that is under way."""
        fits = self._fits(item.task)
        if fits:
            self.reserve(item)
        return fits

    def reserve(self, item: Item) -> None:
        """`item` is under way, asked for or not."""
        self._under_way[item.id] = item

    def release(self, item_id: str) -> None:
        """The item is no longer under way, whatever came of it."""
        self._under_way.pop(item_id, None)
        self._wake()

    def estimate(self, task: str) -> float | None:
        """US dollars to reckon with for one request of `task`, None without any basis."""
        mean = self._mean(task)
        known = [value for value in (mean, self._expected.get(task)) if value is not None]
        return max(known) if known else None

    def _fits(self, task: str) -> bool:
        estimates = [self.estimate(item.task) for item in self._under_way.values()]
        own = self.estimate(task)
        if own is None and None in estimates:
            return False
        if self.spent >= self.limit:
            return False
        unknown = max((mean for other in self._sums if (mean := self._mean(other))), default=0.0)
        reckoned = sum(unknown if value is None else value for value in (*estimates, own))
        return self.spent + reckoned <= self.limit * _ROUNDING

    def _mean(self, task: str) -> float | None:
        return self._sums[task] / self._counts[task] if self._counts[task] else None

    def _count(self, task: str, cost: float) -> None:
        self.spent += cost
        self._sums[task] = self._sums.get(task, 0.0) + cost
        self._counts[task] += 1

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
