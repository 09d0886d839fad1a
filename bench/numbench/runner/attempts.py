"""The attempts at one request: what they cost, and what they may have cost."""

from __future__ import annotations

from msgspec.structs import replace

from numbench.records import POSSIBLY_BILLED, Completion, Failure, ItemSample
from numbench.runner.budget import Budget

MAX_LOST_RESPONSES = 3
"""How often a request is sent whose response does not arrive: each of them may be billed."""


class Attempts:
    """Counts the attempts at one request, and adds what they cost to a budget.

    number: attempts so far. failed_cost: US dollars that failed attempts cost. possibly_billed:
    failed attempts of unknown cost that the provider may have processed, such as timeouts.
    """

    def __init__(self, requested: ItemSample, budget: Budget | None) -> None:
        """Count no attempt yet. Without a `budget` only the counts are kept."""
        self.number = 0
        self.failed_cost = 0.0
        self.possibly_billed = 0
        self._lost_responses = 0
        self._is_in_flight = False
        self._requested, self._budget = requested, budget

    @property
    def has_lost_too_many(self) -> bool:
        """Whether so many responses were lost that the request is not sent again."""
        return self._lost_responses >= MAX_LOST_RESPONSES

    def start(self) -> None:
        """Count an attempt as sent."""
        self.number += 1
        self._is_in_flight = True

    def record(self, completion: Completion) -> bool:
        """Count the result of the attempt in flight, and return whether it may be billed."""
        self._is_in_flight = False
        error = completion.error
        if error is None:
            return True
        if completion.cost is not None:
            self.failed_cost += completion.cost
            if self._budget:
                self._budget.add_cost(self._requested.task, completion.cost)
        elif error.possibly_billed:
            self._lost_responses += error.status is None
            self._count_possibly_billed()
        return completion.cost is not None or error.possibly_billed

    def final(self, completion: Completion) -> Completion:
        """Return the last completion with what all attempts cost and may have cost."""
        cost, extra = completion.cost, dict(completion.extra)
        if completion.error is not None:
            cost = self.failed_cost or cost
        elif self.failed_cost:
            cost = None if cost is None else cost + self.failed_cost
            extra["cost_of_failed_attempts"] = self.failed_cost
        if self.possibly_billed:
            extra[POSSIBLY_BILLED] = self.possibly_billed
        return replace(completion, cost=cost, extra=extra)

    def abandoned(self, bills_in_flight: bool = True) -> Completion | None:
        """Return the record of a request that the end of the run cut off.

        None if no attempt cost anything or may have done so. bills_in_flight: whether the attempt
        in flight may have.
        """
        if self._is_in_flight and bills_in_flight:
            self._is_in_flight = False
            self._count_possibly_billed()
        if not self.possibly_billed and not self.failed_cost:
            return None
        message = "the run ended before the answer arrived"
        failure = Failure(kind="transient", message=message, possibly_billed=True)
        return self.final(Completion(error=failure))

    def _count_possibly_billed(self) -> None:
        self.possibly_billed += 1
        if self._budget:
            self._budget.add_possibly_billed(self._requested.task)
