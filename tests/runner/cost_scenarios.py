"""Simulated providers that bill slow, dropped, failed and heavy-tailed answers, with a ledger."""

import asyncio
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from numbench.errors import NumbenchError
from numbench.journal.run_folder import iter_responses
from numbench.journal.served_models import ServedModels
from numbench.journal.writer import Journal
from numbench.models.base import Message, Request, RequestSettings
from numbench.models.failures import (
    connection_failure,
    failed_completion,
    failure_from_status,
    timeout_failure,
)
from numbench.records import Completion, ItemSample
from numbench.runner.budget import Budget, RunCosts
from numbench.runner.progress import RunStats
from numbench.runner.request_source import DatasetRequests
from numbench.runner.retrying import RetryPolicy
from numbench.runner.run_state import RunState
from numbench.runner.workers import Workers
from tests.support.runs import INFO, questions

Knowledge = Literal["highest", "expected", "nothing"]
"""What is known of costs in advance: a bound, the mean, or nothing but what answers report."""

MEAN_COST, HIGHEST_COST = 0.05, 2.0


SENT_AS_IT_IS: Any = SimpleNamespace(
    settings=RequestSettings(),
    request=lambda requested: Request((), RequestSettings()),
    with_cost=lambda completion: completion,
    with_results=lambda requested, completion: completion,
    retry_token_limit=None,
)
"""A run whose requests are empty, and whose answers say what they cost."""


@dataclass
class Ledger:
    """What a provider has billed: with and without a report to the client, in US dollars."""

    reported: float = 0.0
    unreported: float = 0.0
    unreported_requests: int = 0

    @property
    def billed(self) -> float:
        return self.reported + self.unreported


@dataclass
class Provider:
    """A model whose answers cost random amounts; some are billed but never arrive."""

    rng: random.Random
    rates: dict[str, float]
    tail: float
    name: str = "simulated"
    ledger: Ledger = field(default_factory=Ledger)

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        for _ in range(self.rng.randrange(20)):
            await asyncio.sleep(0)
        fate = self.rng.choices(list(self.rates), list(self.rates.values()))[0]
        if fate == "limited":
            return failed_completion(failure_from_status(429, "slow down", retry_after=0.0))
        if fate == "overloaded":
            return failed_completion(failure_from_status(503, "overloaded"))
        cost = self._cost()
        if fate == "answered":
            self.ledger.reported += cost
            return Completion(text="1", finish_reason="stop", cost=cost)
        if fate == "reported_error":
            self.ledger.reported += cost
            return failed_completion(failure_from_status(500, "oops"), cost=cost)
        self.ledger.unreported += cost
        self.ledger.unreported_requests += 1
        lost = {
            "slow": timeout_failure(1.0),
            "dropped": connection_failure("reset"),
            "billed_error": failure_from_status(502, "bad gateway"),
        }
        return failed_completion(lost[fate])

    async def close(self) -> None:
        pass

    def _cost(self) -> float:
        """Return a cost with a Pareto tail, cut at the token limit."""
        scale = MEAN_COST * (self.tail - 1) / self.tail
        return min(scale * self.rng.paretovariate(self.tail), HIGHEST_COST)


@dataclass(frozen=True)
class Outcome:
    """What one simulated run has cost. journalled: known costs; lost: attempts of unknown cost."""

    limit: float
    ledger: Ledger
    journalled: float
    lost: int
    answered: int
    most_attempts: int


def random_rates(rng: random.Random) -> dict[str, float]:
    """Return the shares of the fates of requests; up to 60 % of them are no plain answers."""
    fates = ("slow", "dropped", "billed_error", "reported_error", "limited", "overloaded")
    weights = [rng.random() * rng.choice((0.0, 0.1, 0.3)) for _ in fates]
    scale = min(1.0, 0.6 / (sum(weights) or 1.0))
    rates = {fate: weight * scale for fate, weight in zip(fates, weights, strict=True)}
    return rates | {"answered": 1.0 - sum(rates.values())}


def simulate(seed: int, folder: Path, knowledge: Knowledge, calls: int = 3) -> Outcome:
    """Run up to 300 items under a random limit in several calls of one run folder."""
    rng = random.Random(seed)
    provider = Provider(rng, random_rates(rng), tail=rng.choice((1.3, 1.6, 2.5, 10.0)))
    limit = rng.uniform(3.0, 12.0)
    concurrency = rng.choice((1, 4, 16))
    for _ in range(calls):
        asyncio.run(_call(provider, folder, knowledge, Budget(limit), concurrency))
    responses = list(iter_responses(folder))
    return Outcome(
        limit=limit,
        ledger=provider.ledger,
        journalled=sum(response.cost or 0.0 for response in responses),
        lost=sum(each.possibly_billed_attempts for each in responses),
        answered=sum(response.error is None for response in responses),
        most_attempts=max((each.possibly_billed_attempts for each in responses), default=0),
    )


def share_over_limit(
    seeds: range, folder: Path, knowledge: Knowledge, most: float = HIGHEST_COST
) -> float:
    """Return the share of simulated runs that exceed their limit, by at most `most` dollars.

    What was billed is in the journal: as a cost, or as a request that may have been billed.
    """
    exceeded = 0
    for seed in seeds:
        outcome = simulate(seed, folder / str(seed), knowledge)
        assert math.isclose(outcome.journalled, outcome.ledger.reported, rel_tol=1e-6)
        assert outcome.lost >= outcome.ledger.unreported_requests
        excess = outcome.ledger.billed - outcome.limit * (1 + 1e-9)
        exceeded += excess > 0
        assert excess <= most
    return exceeded / len(seeds)


def suites_over_limit(seeds: range, folder: Path, knowledge: Knowledge) -> float:
    """Return the share of simulated suites of several providers that exceed their limit."""
    pairs = [simulate_suite(seed, folder / str(seed), knowledge) for seed in seeds]
    return sum(billed > limit * (1 + 1e-9) for limit, billed in pairs) / len(seeds)


def simulate_suite(seed: int, folder: Path, knowledge: Knowledge) -> tuple[float, float]:
    """Run three providers at the same time under one limit; return it and what all have billed."""
    rng = random.Random(seed)
    providers = [
        Provider(random.Random(rng.random()), random_rates(rng), tail=rng.choice((1.6, 2.5, 10.0)))
        for _ in range(3)
    ]
    limit = rng.uniform(3.0, 12.0)
    budget = Budget(limit)
    concurrency = rng.choice((1, 4, 16))

    async def run_all() -> None:
        calls = [
            _call(provider, folder / str(number), knowledge, budget, concurrency)
            for number, provider in enumerate(providers)
        ]
        await asyncio.gather(*calls)

    asyncio.run(run_all())
    return limit, sum(provider.ledger.billed for provider in providers)


async def _call(
    provider: Provider, folder: Path, knowledge: Knowledge, budget: Budget, concurrency: int
) -> None:
    items = [ItemSample(item) for items in questions(150).values() for item in items]
    earlier = list(iter_responses(folder)) if folder.exists() else []
    answered = {response.item_id for response in earlier if response.error is None}
    task_of = {requested.item.id: requested.task for requested in items}
    costs = RunCosts(
        dict.fromkeys(task_of.values(), MEAN_COST) if knowledge == "expected" else {},
        dict.fromkeys(task_of.values(), HIGHEST_COST) if knowledge == "highest" else {},
    )
    budget.add(folder, costs)
    for response in earlier:
        task = task_of[response.item_id]
        if response.cost is not None:
            costs.add_cost(task, response.cost)
        costs.add_possibly_billed(task, response.possibly_billed_attempts, is_earlier=True)
    open_requests = [each for each in items if each.item.id not in answered]
    with Journal(folder, INFO) as journal:
        scheduler = Workers(
            prepared=SENT_AS_IT_IS,
            client=provider,
            source=DatasetRequests(items, open_requests),
            requests=open_requests,
            journal=journal,
            policy=RetryPolicy(backoff=0.0, max_backoff=0.0),
            concurrency=concurrency,
            on_progress=lambda progress: None,
            state=RunState(ServedModels(INFO), costs),
            stats=RunStats(requested.item for requested in items),
        )
        try:
            await scheduler.send_all()
        except NumbenchError as error:
            assert "in a row failed" in str(error)
