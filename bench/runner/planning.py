"""What a run would ask and may cost, before anything is asked. Needs no key, writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.journal import check_same, read_jobs, read_lines
from bench.models import About
from bench.records import Item
from bench.runner.expected import CHARACTERS_PER_TOKEN, published_tokens
from bench.runner.prices import Price, billed, price_at
from bench.runner.selection import outcomes, still_open
from bench.runner.spec import Resolved, RunSpec, resolve


class TaskPlan(NamedTuple):
    """What one task still takes: totals over its open requests, None where nobody knows.

    input_tokens: estimated from the characters. generated_tokens: the study's published average
    for this model and level. cost: both at the price, in US dollars.
    """

    task: str
    requests: int
    input_tokens: float
    generated_tokens: float | None
    cost: float | None


class Plan(NamedTuple):
    """What a run would do. `price` is None where it is not known; `local`: in this process.

    in_jobs: items that batch jobs under way ask already. discount: the share of the price that a
    batch job takes off. spent: US dollars that the run folder has cost so far, as far as anybody
    knows.
    """

    model: str
    display: str
    level: str
    dataset: str
    path: Path
    tasks: tuple[TaskPlan, ...]
    price: Price | None
    local: bool
    in_jobs: int
    discount: float
    spent: float

    @property
    def requests(self) -> int:
        """Requests still to be made, retries apart."""
        return sum(task.requests for task in self.tasks)

    @property
    def input_tokens(self) -> float:
        """The estimate over all tasks."""
        return sum(task.input_tokens for task in self.tasks)

    @property
    def generated_tokens(self) -> float | None:
        """The expectation over all tasks that still ask, None where one has none."""
        return _total(task.generated_tokens for task in self.tasks if task.requests)

    @property
    def cost(self) -> float | None:
        """The expectation over all tasks that still ask, None where one has none."""
        return _total(task.cost for task in self.tasks if task.requests)


def plan(spec: RunSpec, retry_errors: bool = False, batch: bool = False) -> Plan:
    """What `run` with the same arguments would ask now. BadInput where `run` would refuse."""
    about = spec.describe()
    resolved = resolve(spec, about)
    check_same(resolved.folder, resolved.info)
    settled = outcomes(read_lines(resolved.folder))
    jobs = [job for job in read_jobs(resolved.folder).values() if job.under_way]
    asked_already = {item for job in jobs for item in job.items}
    price = price_for(about)
    discount = about.batch_discount or 0.0 if batch else 0.0
    averages = published_tokens(spec.model, about.level)
    planned = []
    for task, items in resolved.asked.items():
        left = still_open(items, settled, retry_errors)
        left = [item for item in left if item.id not in asked_already]
        planned.append(plan_task(resolved, task, left, averages, price, discount))
    return Plan(
        model=spec.model,
        display=about.display,
        level=about.level,
        dataset=resolved.source.name,
        path=resolved.folder,
        tasks=tuple(planned),
        price=price,
        local=about.route is None,
        in_jobs=len(asked_already - settled.keys()),
        discount=discount,
        spent=sum(billed(line, price).cost or 0.0 for line in read_lines(resolved.folder)),
    )


def plan_task(
    resolved: Resolved,
    task: str,
    items: Sequence[Item],
    averages: Mapping[str, float],
    price: Price | None,
    discount: float = 0.0,
) -> TaskPlan:
    """What `items` of one task may take, by generated tokens per request and price."""
    before = sum(len(message.content) for message in resolved.before(task))
    asked = sum(before + len(item.prompt) for item in items) / CHARACTERS_PER_TOKEN
    generated = averages[task] * len(items) if task in averages else None
    cost = _cost(asked, generated, price)
    return TaskPlan(
        task, len(items), asked, generated, None if cost is None else cost * (1 - discount)
    )


def price_for(about: About) -> Price | None:
    """What the model's tokens cost, None where nobody knows or it runs in this process."""
    if about.route is None:
        return None
    base_url = about.identity["base_url"]
    return price_at(about.route, str(base_url) if base_url else None)


def _cost(asked: float, generated: float | None, price: Price | None) -> float | None:
    if generated is None or price is None:
        return None
    return (asked * price.input + generated * price.output) / 1e6


def _total(values: Iterable[float | None]) -> float | None:
    known = list(values)
    amounts = [value for value in known if value is not None]
    return sum(amounts) if len(amounts) == len(known) else None
