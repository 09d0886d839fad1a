"""What a run would send and cost, computed before anything is sent. Needs no API key."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from numbench.journal import check_compatible, iter_responses, read_jobs
from numbench.models import ModelDescription, RequestSettings
from numbench.models.catalogue import bundled_model, load_catalogue
from numbench.models.litellm_map import ModelFacts
from numbench.models.model_map import find_facts, find_vendor_facts
from numbench.records import ItemSample
from numbench.resources import resource_folder
from numbench.runner.prices import NO_PARAMETERS, Price, find_price, with_cost
from numbench.runner.request_log import preview_without_key
from numbench.runner.request_shape import parameters_of
from numbench.runner.spec import (
    ResolvedRun,
    RunSpec,
    item_outcomes,
    open_requests,
    resolve,
    retry_kinds,
    with_stored_token_limit,
)
from numbench.tasks import PAPER_TASKS

CHARACTERS_PER_TOKEN = 3
"""A rough figure for prompts full of digits; no tokenizer is used."""


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


class Plan(NamedTuple):
    """What a run would do.

    price: None if unknown. is_local: whether the model runs in this process. items_in_jobs: number
    of requests that active batch jobs contain already. discount: the share of the price that a
    batch job saves. spent: US dollars that the run folder has cost so far, as far as they are
    known. samples: answers per item. settings: those of the requests. request: the body of the
    first one without its messages, None if it is not known. message_changes: how the route changes
    the messages. has_cost_bound: whether one answer can cost only so much. shard: the part of the
    items, None for all. facts: the limits of the model, None if unknown.
    """

    model: str
    display: str
    level: str
    dataset: str
    path: Path
    tasks: tuple[TaskPlan, ...]
    price: Price | None
    is_local: bool
    items_in_jobs: int
    discount: float
    spent: float
    samples: int = 1
    settings: RequestSettings = RequestSettings()
    request: Mapping[str, object] | None = None
    message_changes: tuple[str, ...] = ()
    has_cost_bound: bool = False
    shard: str | None = None
    facts: ModelFacts | None = None

    @property
    def requests(self) -> int:
        """Number of requests to send, without retries."""
        return sum(task.requests for task in self.tasks)

    @property
    def input_tokens(self) -> float:
        """Estimated input tokens of all tasks."""
        return sum(task.input_tokens for task in self.tasks)

    @property
    def generated_tokens(self) -> float | None:
        """Expected generated tokens of all tasks with requests, None if unknown for one."""
        return _total(task.generated_tokens for task in self.tasks if task.requests)

    @property
    def cost(self) -> float | None:
        """Expected US dollars for all tasks with requests, None if unknown for one."""
        return _total(task.cost for task in self.tasks if task.requests)


def plan(
    spec: RunSpec, retry_errors: bool = False, batch: bool = False, retry: Collection[str] = ()
) -> Plan:
    """Return what `run` with the same arguments would do now. Raises BadInput if `run` would."""
    description = spec.describe()
    kinds = retry_kinds(retry, retry_errors)
    resolved = with_stored_token_limit(resolve(spec, description), spec, kinds)
    check_compatible(resolved.folder, resolved.info)
    resolved, previews = preview_without_key(resolved)
    outcomes = item_outcomes(iter_responses(resolved.folder))
    jobs = [job for job in read_jobs(resolved.folder).values() if job.is_active]
    ids_in_jobs = {item_id for job in jobs for item_id in job.items}
    price = price_for(description, batch, spec.params)
    discount = discount_for(description, batch)
    averages = published_tokens(spec.model, description.level)
    tasks = []
    for task, requests in resolved.requests_by_task.items():
        remaining = open_requests(resolved, requests, outcomes, kinds)
        remaining = [request for request in remaining if request.id not in ids_in_jobs]
        tasks.append(plan_task(resolved, task, remaining, averages, price, discount))
    return Plan(
        model=spec.model,
        display=description.display,
        level=description.level,
        dataset=resolved.dataset.name,
        path=resolved.folder,
        tasks=tuple(tasks),
        price=price,
        is_local=description.route is None,
        items_in_jobs=len(ids_in_jobs - outcomes.keys()),
        discount=discount,
        spent=sum(with_cost(line, price).cost or 0.0 for line in iter_responses(resolved.folder)),
        samples=spec.samples,
        settings=resolved.settings,
        request=next((parameters_of(preview.body) for preview in previews.values()), None),
        message_changes=next((tuple(each.changes) for each in previews.values()), ()),
        has_cost_bound=has_cost_bound(resolved, price),
        shard=str(resolved.info.shard) if resolved.info.shard else None,
        facts=_facts_for(description),
    )


def plan_task(
    resolved: ResolvedRun,
    task: str,
    requests: Sequence[ItemSample],
    averages: Mapping[str, float],
    price: Price | None,
    discount: float = 0.0,
) -> TaskPlan:
    """Return what `requests` of one task take. averages: generated tokens per request, by task."""
    prefix = sum(len(message.content) for message in resolved.prompt_prefix(task))
    characters = sum(prefix + len(request.item.prompt) for request in requests)
    input_tokens = characters / CHARACTERS_PER_TOKEN
    generated = averages[task] * len(requests) if task in averages else None
    cost = None
    if generated is not None and price is not None:
        full_cost = (input_tokens * price.input + generated * price.output) / 1e6
        cost = full_cost * (1 - discount)
    return TaskPlan(task, len(requests), input_tokens, generated, cost)


def price_for(
    description: ModelDescription,
    batch: bool = False,
    params: Mapping[str, object] = NO_PARAMETERS,
) -> Price | None:
    """Return the price of the model's tokens, None if unknown or if it runs in this process."""
    if description.route is None:
        return None
    base_url = description.identity["base_url"]
    price = find_price(description.route, str(base_url) if base_url else None, params)
    return None if price and batch and not price.has_batch_price else price


def _facts_for(description: ModelDescription) -> ModelFacts | None:
    if description.route is None or description.identity["base_url"]:
        return None
    return find_facts(description.route) or find_vendor_facts(description.route)


def has_cost_bound(resolved: ResolvedRun, price: Price | None) -> bool:
    """Return whether the most that one answer can cost is known: by a token limit and a price."""
    return resolved.settings.max_tokens is not None and price is not None and not price.varies


def discount_for(description: ModelDescription, batch: bool) -> float:
    """Return the share of the price that the requests of a run save."""
    return description.batch_discount or 0.0 if batch else 0.0


def published_tokens(model: str, level: str) -> dict[str, float]:
    """Return the mean generated tokens per task of a catalogue model; empty if unpublished.

    Levels that send the same request share their averages: GPT-5's high is its maximal.
    """
    entry = bundled_model(model)
    if entry is None or level not in entry.levels:
        return {}
    for other, request in entry.levels.items():
        if request == entry.levels[level] and (entry.display, other) in _published():
            return _published()[entry.display, other]
    return {}


def published_configurations() -> tuple[tuple[str, str], ...]:
    """Return the paper's configurations as catalogue names and levels, in the paper's order."""
    names = {entry.display: entry.name for entry in load_catalogue().model}
    return tuple((names[display], level) for display, level in _published())


@cache
def _published() -> dict[tuple[str, str], dict[str, float]]:
    """Return mean generated tokens by (display name, level), then by task."""
    names = {task.display: task.name for task in PAPER_TASKS.values()}
    path = resource_folder("published") / "frontier_tokens.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (row.pop("Model"), row.pop("Reasoning")): {
                names[header]: float(value) for header, value in row.items() if value
            }
            for row in csv.DictReader(file)
        }


def _total(values: Iterable[float | None]) -> float | None:
    """Return the sum, None if a value is unknown."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total
