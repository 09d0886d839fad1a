"""What a command may cost: what is admitted, reserved, spent and possibly billed.

No request is sent whose cost, as far as it is known, might exceed the limit of its command.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from numbench.records import Completion, ItemSample

ROUNDING_TOLERANCE = 1 + 1e-9
"""Sums of dollars are binary fractions: a limit of 1 allows ten times 0.1."""

_TAIL_FACTOR = 10.0
"""How far beyond the mean the next record may be, as a multiple of the distance of the present."""

_MIN_COSTS_FOR_TAIL = 5
"""Number of known costs of a task from which their spread is used."""

_MAX_UNPRICED_ATTEMPTS = 3
"""Attempts that may have been billed before any cost is known, in one call."""


@dataclass
class TaskCosts:
    """What the requests of one task of a run have cost and may cost, in US dollars.

    expected, bound: of one request, and the most that it can cost; None if unknown. highest: of the
    costs so far. in_flight: requests whose cost is reserved. possibly_billed_attempts: those
    without an answer that may have been billed. is_closed: no request fits the limit any more.
    """

    expected: float | None = None
    bound: float | None = None
    highest: float | None = None
    count: int = 0
    total: float = 0.0
    in_flight: int = 0
    possibly_billed_attempts: int = 0
    is_closed: bool = False

    @property
    def estimate(self) -> float | None:
        """What to reserve for one request, None if nothing is known of its cost."""
        return max(
            (cost for cost in (self.expected, self.bound, self.highest) if cost is not None),
            default=None,
        )

    def tail_margin(self, reserved: float, is_alone: bool) -> float:
        """Return by how much one request in flight may exceed what is reserved for it.

        As far as the costs so far vary; if few are known, by a multiple of what is reserved, unless
        the request is the only one in flight.
        """
        if self.bound is not None or not self.in_flight:
            return 0.0
        if self.highest is not None and self.count >= _MIN_COSTS_FOR_TAIL:
            mean = self.total / self.count
            return max(0.0, mean + _TAIL_FACTOR * (self.highest - mean) - reserved)
        return 0.0 if is_alone else _TAIL_FACTOR * reserved


class Budget:
    """The US dollars that a command may cost: one run, or the runs of a suite together.

    A request in flight is reserved at the most that it can cost, if its token limit and price are
    known: then the limit is never exceeded. Otherwise it counts at its task's expected cost or most
    expensive answer so far, whichever is larger, and each run with requests in flight has a margin
    for one that is more expensive than all before it, as far as the costs so far vary. While few
    costs are known, requests that the limit covers only without a margin are sent one at a time. If
    a task has no known cost, only one such request is in flight at a time, and it counts at the
    most expensive answer of the other tasks and runs.

    The reservation of an attempt that may have been billed, but did not say what it cost, stays.
    """

    def __init__(self, max_cost: float | None = None) -> None:
        """Without a limit, which is infinite then, every request is admitted."""
        self.max_cost = math.inf if max_cost is None else max_cost
        self._runs: dict[Path, RunCosts] = {}
        self.cost_unknown = False
        self.unpriced_attempts = 0
        self.released = asyncio.Event()
        """Set when a reservation became free, so that a waiting request may fit."""

    def add(self, folder: Path, costs: RunCosts) -> None:
        """Count the costs of a run, in place of what was known of its folder before."""
        self._runs[folder], costs.budget = costs, self

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.max_cost < math.inf

    @property
    def spent(self) -> float:
        """US dollars that all runs have cost, as far as they are known."""
        return sum(run.spent for run in self._runs.values())

    @property
    def lost_before_any_cost(self) -> int:
        """Attempts of this command that may have been billed, if nothing is known of any cost."""
        return 0 if self.highest_cost else self.unpriced_attempts

    @property
    def highest_cost(self) -> float:
        """US dollars of the most expensive answer of all runs, 0 if none is known."""
        return max((task.highest or 0.0 for task in self.tasks), default=0.0)

    @property
    def covers_requests_in_flight(self) -> bool:
        """Whether the limit covers every request in flight, also if it is sent once more."""
        is_alone = self.in_flight <= 1
        needed = sum(run.committed + run.tail_margin(is_alone) for run in self._runs.values())
        return needed <= self.max_cost * ROUNDING_TOLERANCE

    @property
    def tasks(self) -> list[TaskCosts]:
        """The costs of every task of every run."""
        return [task for run in self._runs.values() for task in run.tasks.values()]

    @property
    def in_flight(self) -> int:
        """Number of requests whose cost is reserved."""
        return sum(task.in_flight for task in self.tasks)


class RunCosts:
    """The share of one run in a budget, by task. Without `Budget.add` it has one without limit."""

    def __init__(
        self, expected: Mapping[str, float] = {}, bounds: Mapping[str, float] = {}
    ) -> None:
        """`expected`, `bounds`: US dollars per request, by task, as far as known."""
        self.budget = Budget()
        self.spent = 0.0
        self.tasks = defaultdict(TaskCosts)
        for task in expected.keys() | bounds.keys():
            self.tasks[task] = TaskCosts(expected.get(task), bounds.get(task))
        self._in_flight: dict[str, str] = {}
        self._gate = asyncio.Lock()
        self.budget.add(Path(), self)

    @property
    def possibly_billed_cost(self) -> float:
        """US dollars that attempts without an answer may have cost, beyond `spent`."""
        return sum(
            each.possibly_billed_attempts * self._value(each) for each in self.tasks.values()
        )

    @property
    def known_possibly_billed_cost(self) -> float | None:
        """The same, None if no price or answer tells what such an attempt costs."""
        attempts = [each for each in self.tasks.values() if each.possibly_billed_attempts]
        is_known = all(each.estimate is not None or self._value(each) for each in attempts)
        return self.possibly_billed_cost if is_known else None

    @property
    def committed(self) -> float:
        """US dollars that are spent, may have been billed, or are reserved."""
        in_flight = sum(each.in_flight * self._value(each) for each in self.tasks.values())
        return self.spent + self.possibly_billed_cost + in_flight

    def tail_margin(self, is_alone: bool) -> float:
        """Return by how much one request in flight may exceed its share, 0 if there is none."""
        if not self._in_flight:
            return 0.0
        return max(each.tail_margin(self._value(each), is_alone) for each in self.tasks.values())

    async def admit(self, requested: ItemSample) -> bool:
        """Reserve the cost of a request once the budget covers it, in the order of the calls.

        Returns False if it never will.
        """
        async with self._gate:
            while not self.try_admit(requested):
                if self.is_closed(requested.task):
                    return False
                self.budget.released.clear()
                await self.budget.released.wait()
        return True

    def try_admit(self, requested: ItemSample) -> bool:
        """Reserve the cost of a request if the budget covers it, and return whether it does.

        If it does not although none is in flight, no later request of its task fits either.
        """
        budget = self.budget
        if self.is_closed(requested.task):
            return False
        if not budget.is_limited:
            self.reserve(requested)
            return True
        is_unpriced = self.tasks[requested.task].estimate is None
        has_lost_many = budget.lost_before_any_cost >= _MAX_UNPRICED_ATTEMPTS
        others = (each for each in budget.tasks if each.in_flight and each.estimate is None)
        if not (is_unpriced and (has_lost_many or any(others))):
            self.reserve(requested)
            if budget.covers_requests_in_flight:
                return True
            self.cancel(requested.id)
        self.tasks[requested.task].is_closed = not budget.in_flight
        return False

    def is_closed(self, task: str) -> bool:
        """Return whether no more requests of a task may be sent."""
        budget = self.budget
        return budget.is_limited and (budget.cost_unknown or self.tasks[task].is_closed)

    def reserve(self, requested: ItemSample) -> None:
        """Count a request as in flight, whether or not it fits."""
        if requested.id not in self._in_flight:
            self._in_flight[requested.id] = requested.task
            self.tasks[requested.task].in_flight += 1

    def cancel(self, request_id: str) -> None:
        """Count a request as not in flight after all."""
        if (task := self._in_flight.pop(request_id, None)) is not None:
            self.tasks[task].in_flight -= 1

    def release(self, request_id: str) -> None:
        """Count a request as no longer in flight, so that another may fit."""
        self.cancel(request_id)
        self.budget.released.set()

    def end(self, submitted: Collection[str]) -> None:
        """Count what is reserved for `submitted` requests as possibly billed: no more is learnt."""
        for request_id, task in list(self._in_flight.items()):
            if request_id in submitted:
                self.add_possibly_billed(task, is_earlier=True)
            self.release(request_id)

    def add_cost(self, task: str, cost: float) -> None:
        """Add the cost, in US dollars, of an attempt at an item of `task`."""
        costs = self.tasks[task]
        self.spent += cost
        costs.highest = max(cost, costs.highest or 0.0)
        costs.count += 1
        costs.total += cost

    def add_possibly_billed(self, task: str, attempts: int = 1, is_earlier: bool = False) -> None:
        """Reserve the cost of attempts at items of `task` that may have been billed, permanently.

        `is_earlier`: they were made by an earlier call.
        """
        self.tasks[task].possibly_billed_attempts += attempts
        if not is_earlier and not self._value(self.tasks[task]):
            self.budget.unpriced_attempts += attempts

    def count(self, requested: ItemSample, completion: Completion, paid: float = 0.0) -> None:
        """Add the cost of a request less what has already been added for it (`paid`).

        An answer of unknown cost closes the budget; a failure without a cost counts as free.
        """
        if completion.cost is not None:
            # A failure whose attempts are paid for is no further cost.
            if completion.error is None or completion.cost > paid:
                self.add_cost(requested.task, completion.cost - paid)
        elif completion.error is None:
            self.budget.cost_unknown = True

    def _value(self, task: TaskCosts) -> float:
        """Return the estimate for a task, else the most expensive answer of the others."""
        estimate = task.estimate
        return self.budget.highest_cost if estimate is None else estimate
