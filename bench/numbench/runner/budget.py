"""Cost limits: no request is sent whose expected cost would exceed the limit of its run."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator, Mapping

from numbench.errors import BadInput
from numbench.journal import iter_responses
from numbench.models.providers import find_provider
from numbench.records import Completion, ItemSample, Response
from numbench.runner.planning import plan_task, published_tokens
from numbench.runner.prices import USER_PRICE_TABLE, Price, with_cost
from numbench.runner.spec import ResolvedRun

_ROUNDING_TOLERANCE = 1 + 1e-9
"""Sums of dollars are binary fractions: a limit of 1 allows ten times 0.1."""


class Budget:
    """The US dollars that a run may cost, has cost, and has reserved for requests in flight.

    A request in flight counts at its task's expected cost or most expensive answer so far,
    whichever is larger. If a task has neither, only one such request is in flight at a time, and it
    counts at the most expensive answer of the other tasks. So the limit can only be exceeded by an
    answer that is more expensive than all before it.
    """

    def __init__(
        self,
        limit: float,
        expected: Mapping[str, float],
        spent: Iterable[tuple[str, float]] = (),
    ) -> None:
        """`expected`: US dollars per request, by task. `spent`: task and cost of each answer."""
        self.limit = limit
        self.spent = 0.0
        self.exhausted = False
        self.cost_unknown = False
        self._expected = expected
        self._highest_cost: dict[str, float] = {}
        self._in_flight: dict[str, ItemSample] = {}
        self._changed = asyncio.Event()
        for task, cost in spent:
            self.add_cost(task, cost)

    @property
    def is_closed(self) -> bool:
        """Whether no more requests may be sent."""
        return self.exhausted or self.cost_unknown

    async def admit(self, requested: ItemSample) -> bool:
        """Reserve the cost of a request, and wait for those in flight if that may make it fit.

        Returns False, then and for every later request, if it does not fit although no request is
        in flight.
        """
        while not self.is_closed:
            if self.try_admit(requested):
                return True
            if not self._in_flight:
                self.exhausted = True
                break
            await self._changed.wait()
        return False

    def add_cost(self, task: str, cost: float) -> None:
        """Add the cost, in US dollars, of an attempt at an item of `task`."""
        self.spent += cost
        self._highest_cost[task] = max(cost, self._highest_cost.get(task, 0.0))

    def count(self, requested: ItemSample, completion: Completion, paid: float = 0.0) -> None:
        """Add the cost of a request less what has already been added for it (`paid`).

        An answer of unknown cost closes the budget; a failure without a cost counts as free.
        """
        if completion.cost is not None:
            self.add_cost(requested.task, completion.cost - paid)
        elif completion.error is None:
            self.cost_unknown = True

    def try_admit(self, requested: ItemSample) -> bool:
        """Reserve the cost of a request if it fits, and return whether it does."""
        fits = self._fits(requested.task)
        if fits:
            self.reserve(requested)
        return fits

    def reserve(self, requested: ItemSample) -> None:
        """Count a request as in flight, whether or not it fits."""
        self._in_flight[requested.id] = requested

    def release(self, request_id: str) -> None:
        """Count the request as no longer in flight."""
        self._in_flight.pop(request_id, None)
        self._wake()

    def estimate(self, task: str) -> float | None:
        """Return the US dollars to reserve for one request of `task`, None if unknown."""
        estimates = (self._highest_cost.get(task), self._expected.get(task))
        known = [value for value in estimates if value is not None]
        return max(known) if known else None

    def _fits(self, task: str) -> bool:
        estimates = [self.estimate(request.task) for request in self._in_flight.values()]
        estimate = self.estimate(task)
        if estimate is None and None in estimates:
            return False
        if self.spent >= self.limit:
            return False
        fallback = max(self._highest_cost.values(), default=0.0)
        reserved = sum(fallback if value is None else value for value in (*estimates, estimate))
        return self.spent + reserved <= self.limit * _ROUNDING_TOLERANCE

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def open_budget(
    max_cost: float, resolved: ResolvedRun, price: Price | None, discount: float, batch: bool
) -> Budget:
    """Return the budget of a run, with the cost of its earlier calls.

    Raises BadInput if an earlier answer has no known cost, or if a batch job, whose requests are
    sent all at once, has a task of unknown cost.
    """
    expected = {
        task: cost * (1 - discount) for task, cost in _expected_costs(resolved, price).items()
    }
    spent = recorded_costs(iter_responses(resolved.folder), resolved.task_of, price)
    budget = Budget(max_cost, expected, spent)
    unknown = [task for task in resolved.tasks if budget.estimate(task) is None]
    if batch and unknown:
        raise BadInput(
            f"the cost per item of {', '.join(unknown)} is unknown for {resolved.spec.model}, so "
            "--max-cost cannot be enforced for a batch: omit --batch or --max-cost"
        )
    return budget


def check_cost_limit(model: str, route: str | None, price: Price | None, max_cost: float) -> None:
    """Raise BadInput if a cost limit is out of range or cannot be enforced."""
    if not math.isfinite(max_cost) or max_cost <= 0:
        raise BadInput(f"--max-cost {max_cost:g}: give an amount in US dollars above 0")
    if route is None:
        raise BadInput(f"{model} runs in this process and costs nothing: omit --max-cost")
    provider = route.partition("/")[0]
    plugin = find_provider(provider)
    reports_cost = plugin is not None and plugin.reports_cost
    if not reports_cost and (price is None or price.varies):
        raise BadInput(
            f"{model}: no price is known for {route} and {provider} reports no cost, so --max-cost "
            f"cannot be enforced; add the price to {USER_PRICE_TABLE}"
        )


def recorded_costs(
    responses: Iterable[Response], task_of: Mapping[str, str], price: Price | None
) -> Iterator[tuple[str, float]]:
    """Yield the task and US dollars of each recorded response.

    Raises BadInput for an answer of unknown cost.
    """
    for response in responses:
        cost = with_cost(response, price).cost
        if cost is not None:
            yield task_of[response.item_id], cost
        elif response.error is None:
            raise BadInput(
                f"the run contains an answer of unknown cost ({response.item_id}), so --max-cost "
                "cannot be enforced; choose another --out"
            )


def _expected_costs(resolved: ResolvedRun, price: Price | None) -> dict[str, float]:
    """Return the expected US dollars per request of each task, as far as they are known."""
    averages = published_tokens(resolved.spec.model, resolved.description.level)
    plans = [
        plan_task(resolved, task, requests, averages, price)
        for task, requests in resolved.requests_by_task.items()
    ]
    return {plan.task: plan.cost / plan.requests for plan in plans if plan.cost and plan.requests}
