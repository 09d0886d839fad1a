"""What a run would ask and may cost, before anything is asked. Needs no key, writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.dataset.store import Dataset, open_dataset
from bench.errors import BadInput
from bench.expected import input_tokens, published_tokens
from bench.journal import INFO, read_run
from bench.models import describe_model
from bench.prices import Price, price_at
from bench.records import Item, Response
from bench.selection import PROMPTS, choose, default_folder, still_open


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
    """What a run would do. `price` is None where it is not known; `local`: in this process."""

    model: str
    display: str
    level: str
    dataset: str
    path: Path
    tasks: tuple[TaskPlan, ...]
    price: Price | None
    local: bool

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


def plan(
    model: str,
    reasoning: str | None = None,
    dataset: str | Path = "v1",
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
    out: Path | None = None,
    base_url: str | None = None,
    retry_errors: bool = False,
) -> Plan:
    """What `run` with the same arguments would ask now. BadInput for wrong arguments."""
    if limit is not None and limit < 1:
        raise BadInput(f"--limit {limit}: give 1 or more")
    source = open_dataset(dataset)
    chosen = choose(source, tasks)
    about = describe_model(model, reasoning, base_url)
    folder = out or default_folder(model, about.level, source.name)
    responses = _recorded(folder, model, about.level, source)
    price = price_at(about.route, base_url) if about.route else None
    averages = published_tokens(model, about.level)
    planned = []
    for task in chosen:
        items = still_open(source.by_task[task][:limit], responses, retry_errors)
        planned.append(plan_task(task, items, averages, price))
    return Plan(
        model=model,
        display=about.display,
        level=about.level,
        dataset=source.name,
        path=folder,
        tasks=tuple(planned),
        price=price,
        local=about.route is None,
    )


def plan_task(
    task: str, items: Sequence[Item], averages: Mapping[str, float], price: Price | None
) -> TaskPlan:
    """What `items` of one task may take, by generated tokens per request and price."""
    asked = sum(input_tokens(item, PROMPTS) for item in items)
    generated = averages[task] * len(items) if task in averages else None
    return TaskPlan(task, len(items), asked, generated, _cost(asked, generated, price))


def _recorded(folder: Path, model: str, level: str, source: Dataset) -> dict[str, Response]:
    """What the run folder already holds. BadInput where it is another run's."""
    if not (folder / INFO).is_file():
        return {}
    recorded = read_run(folder)
    pairs = {
        "model": (recorded.info.model, model),
        "reasoning": (recorded.info.reasoning, level),
        "dataset hash": (recorded.info.dataset.sha256, source.manifest.sha256),
    }
    for field, (there, here) in pairs.items():
        if there != here:
            raise BadInput(
                f"{folder} holds a run with {field} {there!r}, this one has {here!r}; "
                "choose another --out"
            )
    return recorded.responses


def _cost(asked: float, generated: float | None, price: Price | None) -> float | None:
    if generated is None or price is None:
        return None
    return (asked * price.input + generated * price.output) / 1e6


def _total(values: Iterable[float | None]) -> float | None:
    known = list(values)
    amounts = [value for value in known if value is not None]
    return sum(amounts) if len(amounts) == len(known) else None
