"""What requests are expected to take: tokens from the study's averages, and prices."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from numbench.models import ModelDescription
from numbench.models.catalogue import bundled_model, bundled_models
from numbench.models.facts import USER_CATALOGUE
from numbench.models.prices import NO_PARAMETERS, Price, find_price
from numbench.records import ItemSample
from numbench.resources import resource_folder
from numbench.runner.resolution import ResolvedRun
from numbench.tasks import PAPER_TASKS

CHARACTERS_PER_TOKEN = 3
"""A rough figure for prompts full of digits; no tokenizer is used."""


class TaskPlan(NamedTuple):
    """What the open requests of one task take in total; None if unknown.

    input_tokens: estimated from the number of characters. generated_tokens: from the study's
    published average for this model and level. cost: of both, in US dollars. case: what is assumed,
    such as `h50 10`; empty for a run on a dataset.
    """

    task: str
    requests: int
    input_tokens: float
    generated_tokens: float | None
    cost: float | None
    case: str = ""


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


def has_cost_bound(resolved: ResolvedRun, price: Price | None) -> bool:
    """Return whether the most that one answer can cost is known: by a token limit and a price."""
    return not missing_for_cost_bound(resolved, price)


def missing_for_cost_bound(resolved: ResolvedRun, price: Price | None) -> list[str]:
    """Return what the user has to give so that the most that one answer can cost is known."""
    missing = ["--max-tokens"] if resolved.settings.max_tokens is None else []
    if price is None or price.varies:
        missing.append(f"an exact price in {USER_CATALOGUE}")
    return missing


def discount_for(description: ModelDescription, batch: bool) -> float:
    """Return the share of the price that the requests of a run save."""
    return description.batch_discount or 0.0 if batch else 0.0


def published_tokens(model: str, level: str) -> dict[str, float]:
    """Return the mean generated tokens per task of a catalogue model; empty if unpublished.

    Levels that send the same request share their averages: GPT-5's high is its maximal.
    """
    entry = bundled_model(model)
    levels = entry.all_levels() if entry else {}
    if entry is None or level not in levels:
        return {}
    for other, request in levels.items():
        if request == levels[level] and (entry.display, other) in _published():
            return _published()[entry.display, other]
    return {}


def published_configurations() -> tuple[tuple[str, str], ...]:
    """Return the paper's configurations as catalogue names and levels, in the paper's order."""
    names = {entry.display: entry.name for entry in bundled_models()}
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
