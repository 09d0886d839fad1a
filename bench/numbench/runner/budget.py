"""What requests are expected to cost, and cost limits.

Tokens are those of the paper's averages. No request is sent whose cost might exceed the limit of
its command.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from numbench.errors import BadInput
from numbench.models.catalogue import bundled_model, bundled_models
from numbench.models.facts import USER_CATALOGUE
from numbench.models.prices import fee_parameters
from numbench.models.providers import find_provider
from numbench.published import published_means
from numbench.records import Completion, ItemSample
from numbench.runner.resolution import ResolvedRun

CHARACTERS_PER_TOKEN = 3
"""A rough figure for prompts full of digits; no tokenizer is used."""

_ROUNDING_TOLERANCE = 1 + 1e-9
"""Sums of dollars are binary fractions: a limit of 1 allows ten times 0.1."""

_TAIL_FACTOR = 10.0
"""How far beyond the mean the next record may be, as a multiple of the distance of the present."""

_MIN_COSTS_FOR_TAIL = 5
"""Number of known costs of a task from which their spread is used."""

_MESSAGE_OVERHEAD_TOKENS = 100
"""An upper bound for the tokens of a message, or of the answer's schema, beyond its content."""

_MAX_UNPRICED_ATTEMPTS = 3
"""Attempts that may have been billed before any cost is known, in one call."""


class TaskPlan(NamedTuple):
    """What the open requests of one task take in total; None if unknown.

    input_tokens: estimated from the number of characters. generated_tokens: from the study's
    published average for this model and level. cost: of both, in US dollars.
    """

    task: str
    requests: int
    input_tokens: float
    generated_tokens: float | None
    cost: float | None


def plan_task(
    resolved: ResolvedRun,
    task: str,
    requests: Sequence[ItemSample],
    averages: Mapping[str, float],
) -> TaskPlan:
    """Return what `requests` of one task take. averages: generated tokens per request, by task."""
    prefix = resolved.prefix_characters(task)
    characters = sum(prefix + len(request.item.prompt) for request in requests)
    input_tokens = characters / CHARACTERS_PER_TOKEN
    generated = averages[task] * len(requests) if task in averages else None
    cost = None if generated is None else resolved.expected_cost(input_tokens, generated)
    return TaskPlan(task, len(requests), input_tokens, generated, cost)


def cost_limit_note(resolved: ResolvedRun) -> str:
    """Return what the cost limit of a run does not promise; empty if it cannot be exceeded."""
    missing = ["--max-tokens"] if resolved.settings.max_tokens is None else []
    if resolved.price is None or resolved.price.varies:
        missing.append(f"an exact price in {USER_CATALOGUE}")
    if resolved.spec.max_cost is None or not missing:
        return ""
    return (
        f"--max-cost {resolved.spec.max_cost:g} is best effort: the most that one answer can cost "
        f"is unknown without {' and '.join(missing)}"
    )


def published_tokens(model: str, level: str) -> dict[str, float]:
    """Return the mean generated tokens per task of a catalogue model; empty if unpublished.

    Levels that send the same request share their averages: GPT-5's high is its maximal.
    """
    entry = bundled_model(model)
    levels = entry.all_levels() if entry else {}
    if entry is None or level not in levels:
        return {}
    for other, request in levels.items():
        known = published_means().get((entry.display, other))
        if request == levels[level] and known:
            return known["generated_tokens"]
    return {}


def published_configurations() -> tuple[tuple[str, str], ...]:
    """Return the paper's configurations as catalogue names and levels, in the paper's order."""
    names = {entry.display: entry.name for entry in bundled_models()}
    return tuple((names[display], level) for display, level in published_means())


@dataclass
class TaskCosts:
    """What the requests of one task of a run have cost and may cost, in US dollars.

    expected, bound: of one request, and the most that it can cost; None if unknown. highest: of the
    costs so far. in_flight: requests whose cost is reserved. possibly_billed: attempts without an
    answer that may have been billed. is_closed: no request fits the limit any more.
    """

    expected: float | None = None
    bound: float | None = None
    highest: float | None = None
    count: int = 0
    total: float = 0.0
    in_flight: int = 0
    possibly_billed: int = 0
    is_closed: bool = False

    @property
    def estimate(self) -> float | None:
        """What to reserve for one request, None if nothing is known of its cost."""
        return max(
            (cost for cost in (self.expected, self.bound, self.highest) if cost is not None),
            default=None,
        )

    def tail_margin(self, reserved: float, is_alone: bool) -> float:
        """Return by how much one request may exceed what is reserved for it.

        As far as the costs so far vary; if few are known, by a multiple of what is reserved, unless
        the request is the only one in flight.
        """
        if self.bound is not None:
            return 0.0
        if self.highest is not None and self.count >= _MIN_COSTS_FOR_TAIL:
            mean = self.total / self.count
            return max(0.0, mean + _TAIL_FACTOR * (self.highest - mean) - reserved)
        return _TAIL_FACTOR * reserved if self.in_flight and not is_alone else 0.0


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

    def __init__(
        self, limit: float | None = None, recorded: Mapping[Path, float] | None = None
    ) -> None:
        """Without a limit, every request is admitted.

        recorded: US dollars that run folders have cost, or may have, before this command. They
        count until the folder's run is opened.
        """
        self.limit = math.inf if limit is None else limit
        self.recorded = dict(recorded or {})
        self.runs: list[RunCosts] = []
        self.cost_unknown = False
        self.unpriced_attempts = 0
        self.on_release: list[Callable[[], None]] = []
        """Called when a reservation became free, so that a waiting request may fit."""

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.limit < math.inf

    @property
    def spent(self) -> float:
        """US dollars that all runs have cost, as far as they are known."""
        return sum(self.recorded.values()) + sum(run.spent for run in self.runs)

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
        needed = sum(self.recorded.values())
        needed += sum(run.committed + run.tail_margin(is_alone) for run in self.runs)
        return needed <= self.limit * _ROUNDING_TOLERANCE

    @property
    def tasks(self) -> list[TaskCosts]:
        """The costs of every task of every run."""
        return [task for run in self.runs for task in run.tasks.values()]

    @property
    def in_flight(self) -> int:
        """Number of requests whose cost is reserved."""
        return sum(task.in_flight for task in self.tasks)


class RunCosts:
    """The share of one run in a budget, by task."""

    def __init__(
        self,
        budget: Budget,
        expected: Mapping[str, float],
        bounds: Mapping[str, float] | None = None,
    ) -> None:
        """`expected`, `bounds`: US dollars per request, by task, as far as known."""
        self.budget = budget
        self.spent = 0.0
        self.tasks = defaultdict(TaskCosts)
        bounds = bounds or {}
        for task in expected.keys() | bounds.keys():
            self.tasks[task] = TaskCosts(expected.get(task), bounds.get(task))
        self._in_flight: dict[str, str] = {}
        budget.runs.append(self)

    @property
    def possibly_billed(self) -> float:
        """US dollars that attempts without an answer may have cost, beyond `spent`."""
        return sum(each.possibly_billed * self._value(each) for each in self.tasks.values())

    @property
    def committed(self) -> float:
        """US dollars that are spent, may have been billed, or are reserved."""
        in_flight = sum(each.in_flight * self._value(each) for each in self.tasks.values())
        return self.spent + self.possibly_billed + in_flight

    def tail_margin(self, is_alone: bool) -> float:
        """Return by how much one request in flight may exceed its share, 0 if there is none."""
        if not self._in_flight:
            return 0.0
        return max(each.tail_margin(self._value(each), is_alone) for each in self.tasks.values())

    def admit(self, requested: ItemSample) -> bool:
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
        for send in list(self.budget.on_release):
            send()

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
        self.tasks[task].possibly_billed += attempts
        if not is_earlier and not self._value(self.tasks[task]):
            self.budget.unpriced_attempts += attempts

    def count(self, requested: ItemSample, completion: Completion, paid: float = 0.0) -> None:
        """Add the cost of a request less what has already been added for it (`paid`).

        An answer of unknown cost closes the budget; a failure without a cost counts as free.
        """
        if completion.cost is not None:
            self.add_cost(requested.task, completion.cost - paid)
        elif completion.error is None:
            self.budget.cost_unknown = True

    def _value(self, task: TaskCosts) -> float:
        """Return the estimate for a task, else the most expensive answer of the others."""
        estimate = task.estimate
        return self.budget.highest_cost if estimate is None else estimate


def check_cost_limit(resolved: ResolvedRun) -> None:
    """Raise BadInput if no cost limit can be enforced."""
    model, route = resolved.spec.model, resolved.description.route
    params, price = resolved.spec.params, resolved.price
    if route is None:
        raise BadInput(f"{model} runs in this process and costs nothing: omit --max-cost")
    provider = route.partition("/")[0]
    plugin = find_provider(provider)
    reports_cost = plugin is not None and plugin.reports_cost
    if not reports_cost and (names := fee_parameters(params)):
        raise BadInput(
            f"--param {', '.join(names)}: tools have fees that are not known, so --max-cost cannot "
            "be enforced; omit one of them"
        )
    if not reports_cost and (price is None or price.varies):
        raise BadInput(
            f"{model}: no price is known for {route} and {provider} reports no cost, so --max-cost "
            f"cannot be enforced; add the price to {USER_CATALOGUE}"
        )


def expected_costs(resolved: ResolvedRun) -> dict[str, float]:
    """Return the expected US dollars per request of each task, as far as they are known."""
    averages = published_tokens(resolved.spec.model, resolved.description.level)
    plans = [
        plan_task(resolved, task, requests, averages)
        for task, requests in resolved.requests_by_task.items()
    ]
    return {plan.task: plan.cost / plan.requests for plan in plans if plan.cost and plan.requests}


def highest_costs(resolved: ResolvedRun) -> dict[str, float]:
    """Return the most US dollars that a request of each task can cost, as far as they are known.

    That takes a token limit and a price. A token has at least one character.
    """
    limit, price = resolved.settings.max_tokens, resolved.price
    if limit is None or price is None or price.varies:
        return {}
    highest = {}
    for task, requests in resolved.requests_by_task.items():
        messages = resolved.prompt_prefix(task)
        prefix = sum(len(message.content) + _MESSAGE_OVERHEAD_TOKENS for message in messages)
        longest = max((len(request.item.prompt) for request in requests), default=0)
        input_tokens = prefix + longest + 2 * _MESSAGE_OVERHEAD_TOKENS
        if price.priced_up_to is None or input_tokens <= price.priced_up_to:
            highest[task] = resolved.expected_cost(input_tokens, limit) or 0.0
    return highest
