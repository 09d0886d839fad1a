"""What requests are expected to cost, by the paper's averages, and the most that they can cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from numbench.core.texts import Sentences
from numbench.horizon.sizes import CHARACTERS_PER_TOKEN
from numbench.models.catalogue import bundled_model, bundled_models
from numbench.models.facts import USER_CATALOGUE
from numbench.models.http_client import server_context
from numbench.published import published_means
from numbench.records import ItemSample
from numbench.runner.prepared_run import PreparedRun
from numbench.tasks import calculator

_text = Sentences(__file__)

_MESSAGE_OVERHEAD_TOKENS = 100
"""An upper bound for the tokens of a message, or of the answer's schema, beyond its content."""


_TOOL_TOKENS = 2000
"""An upper bound for the declaration of a tool and what providers add to explain it."""


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
    prepared: PreparedRun,
    task: str,
    requests: Sequence[ItemSample],
    averages: Mapping[str, float],
) -> TaskPlan:
    """Return what `requests` of one task take. averages: generated tokens per request, by task."""
    prefix = prepared.prefix_characters(task)
    characters = sum(prefix + len(request.item.prompt) for request in requests)
    input_tokens = characters / CHARACTERS_PER_TOKEN
    generated = averages[task] * len(requests) if task in averages else None
    cost = None if generated is None else prepared.expected_cost(input_tokens, generated)
    return TaskPlan(task, len(requests), input_tokens, generated, cost)


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


def cost_limit_note(prepared: PreparedRun) -> str:
    """Return what the cost limit of a run does not promise; empty if it cannot be exceeded."""
    missing = ["--max-tokens"] if prepared.settings.max_tokens is None else []
    if not missing and prepared.description.known.limit_excludes_reasoning:
        missing.append(_text("no_token_limit"))
    if prepared.price is None or prepared.price.varies:
        missing.append(f"an exact price in {USER_CATALOGUE}")
    if prepared.spec.max_cost is None or not missing:
        return ""
    return _text("best_effort", max_cost=prepared.spec.max_cost, missing=" and ".join(missing))


def has_unlimited_answers(prepared: PreparedRun) -> bool:
    """Return whether only the context of one's own server bounds an answer."""
    is_own_server = bool(prepared.description.identity.get("base_url"))
    return is_own_server and prepared.settings.max_tokens is None


def length_note(prepared: PreparedRun) -> str:
    """Return what bounds an answer if there is no token limit, as far as the server tells."""
    if not has_unlimited_answers(prepared):
        return ""
    server, model = prepared.description.identity["base_url"], prepared.description.route or ""
    context = server_context(str(server), model.partition("/")[2])
    tokens = f" ({context:,} tokens with the prompt)" if context else ""
    return _text("length", tokens=tokens)


def estimated_costs(prepared: PreparedRun) -> tuple[dict[str, float], dict[str, float]]:
    """Return the expected and the highest US dollars per request of each task, as far as known.

    They matter for a cost limit only; without one there are none.
    """
    if prepared.spec.max_cost is None:
        return {}, {}
    averages = published_tokens(prepared.spec.model, prepared.description.level)
    plans = [plan_task(prepared, *each, averages) for each in prepared.requests_by_task.items()]
    expected = {each.task: each.cost / each.requests for each in plans if each.cost}
    return expected, highest_costs(prepared)


def highest_costs(prepared: PreparedRun) -> dict[str, float]:
    """Return the most US dollars that a request of each task can cost, as far as they are known.

    That takes a price and a token limit that bounds all that is billed. A token has at least one
    character. With a tool, the last request of a conversation repeats all replies and results.
    """
    limit, price = prepared.settings.max_tokens, prepared.price
    is_limit = limit is not None and not prepared.description.known.limit_excludes_reasoning
    if not is_limit or price is None or price.varies:
        return {}
    assert limit is not None
    write = max(0.0, (price.cache_write or 0.0) - price.input) / 1e6
    factor = max((1.0, *(prepared.description.known.surcharges or {}).values()))
    earlier = 0
    if prepared.spec.tools:
        result_tokens = calculator.MAX_RESULT_CHARACTERS + _MESSAGE_OVERHEAD_TOKENS
        turn_tokens = limit + calculator.MAX_CALLS * result_tokens
        earlier = _TOOL_TOKENS + (prepared.spec.max_turns - 1) * turn_tokens
    highest = {}
    for task, requests in prepared.requests_by_task.items():
        messages = prepared.prompt_prefix(task)
        prefix = sum(len(message.content) + _MESSAGE_OVERHEAD_TOKENS for message in messages)
        longest = max((len(request.item.prompt) for request in requests), default=0)
        input_tokens = prefix + longest + 2 * _MESSAGE_OVERHEAD_TOKENS + earlier
        if price.priced_up_to is None or input_tokens <= price.priced_up_to:
            expected = prepared.expected_cost(input_tokens, limit) or 0.0
            highest[task] = factor * (expected + input_tokens * write)
    return highest
