"""A limit on what a run may cost: nothing is asked that could be expected to exceed it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from bench.records import Completion, Item

_ROUNDING = 1 + 1e-9
"""Sums of dollars are binary fractions: ten times 0.1 may be spent under a limit of 1."""


class Budget:
    """US dollars that a run may spend, what it has spent, and what is under way.

    A request under way counts at the larger of what its task is expected to cost and the dearest
    answer of the task so far. Where neither is known, one such request is under way at a time, at
    the dearest answer of the other tasks. Only an answer dearer than all before it can exceed the
    limit.
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
        self._dearest: dict[str, float] = {}
        self._under_way: dict[str, Item] = {}
        self._changed = asyncio.Event()
        for task, cost in spent:
            self.pay(task, cost)

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

    def pay(self, task: str, cost: float) -> None:
        """Take down US dollars that an attempt at an item of `task` cost."""
        self.spent += cost
        self._dearest[task] = max(cost, self._dearest.get(task, 0.0))

    def count(self, item: Item, completion: Completion, paid: float = 0.0) -> None:
        """Take down what `item` cost beyond what is `paid`.

        An answer whose cost nobody knows ends the run; a failure without a cost counts as free.
        """
        if completion.cost is not None:
            self.pay(item.task, completion.cost - paid)
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
        figures = (self._dearest.get(task), self._expected.get(task))
        known = [value for value in figures if value is not None]
        return max(known) if known else None

    def _fits(self, task: str) -> bool:
        estimates = [self.estimate(item.task) for item in self._under_way.values()]
        own = self.estimate(task)
        if own is None and None in estimates:
            return False
        if self.spent >= self.limit:
            return False
        unknown = max(self._dearest.values(), default=0.0)
        reckoned = sum(unknown if value is None else value for value in (*estimates, own))
        return self.spent + reckoned <= self.limit * _ROUNDING

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
