"""What runs would send and cost, computed before anything is sent. Needs no API key."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from numbench.horizon import Limits
from numbench.horizon.items import AskedItems
from numbench.horizon.sizes import answer_tokens, prompt_tokens
from numbench.models import missing_key
from numbench.models.facts import USER_CATALOGUE, today
from numbench.models.prices import Price, fee_parameters, load_model_map
from numbench.runner.budget import RunCosts
from numbench.runner.estimates import (
    CHARACTERS_PER_TOKEN,
    TaskPlan,
    cost_limit_note,
    length_note,
    plan_task,
    published_tokens,
)
from numbench.runner.prepare import prepare
from numbench.runner.progress import NO_VALUE
from numbench.runner.recorded_requests import parameters_of
from numbench.runner.resolution import PreparedRun, server_of
from numbench.runner.run_state import open_requests, read_state
from numbench.runner.spec import HorizonSpec, RunSpec
from numbench.tasks import TASKS

if TYPE_CHECKING:
    from rich.console import RenderableType

UNKNOWN = "unknown"

_ASSUMED_HORIZON = 100
"""The h50 for which a measurement is estimated."""

_TYPICAL_ITEMS = 110
"""Of a task, at the default precision: the mean of simulated measurements with a slope of 3."""


class Plan(NamedTuple):
    """What a run would do.

    items_in_jobs: number of requests that active batch jobs contain already. costs: of the run
    folder so far. notes: what else the estimates rest on.
    """

    resolved: PreparedRun
    tasks: tuple[TaskPlan, ...]
    items_in_jobs: int
    costs: RunCosts
    notes: tuple[str, ...] = ()

    @property
    def spec(self) -> RunSpec:
        """The run as the user specifies it."""
        return self.resolved.spec

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.resolved.folder

    @property
    def request(self) -> Mapping[str, object] | None:
        """The body of the first request without its messages, None if it is not known."""
        bodies = (parameters_of(each.body) for each in self.resolved.requests.values())
        return next(bodies, None)

    @property
    def title(self) -> str:
        """Model and reasoning level."""
        return f"{self.spec.model} {self.resolved.description.level}"

    @property
    def has_cost(self) -> bool:
        """Whether requests may cost money; those to one's own server are assumed to be free."""
        is_own_server = self.spec.base_url is not None and self.resolved.price is None
        return self.resolved.description.route is not None and not is_own_server

    @property
    def is_open(self) -> bool:
        """Whether the run has requests to send or to collect."""
        return self.requests > 0 or self.items_in_jobs > 0

    @property
    def total(self) -> TaskPlan:
        """The sum of all tasks; None where that of a task with requests is unknown."""
        return TaskPlan(
            "all",
            sum(row.requests for row in self.tasks),
            sum(row.input_tokens for row in self.tasks),
            _total(row.generated_tokens for row in self.tasks if row.requests),
            _total(row.cost for row in self.tasks if row.requests),
        )

    @property
    def requests(self) -> int:
        """Number of requests to send, without retries."""
        return self.total.requests

    @property
    def input_cost(self) -> float:
        """Expected US dollars for the input alone, 0 if the price is unknown."""
        return self.resolved.expected_cost(self.total.input_tokens, 0) or 0.0

    @property
    def cost(self) -> float | None:
        """Expected US dollars for all tasks with requests, None if unknown for one."""
        return self.total.cost


def plan(spec: RunSpec) -> Plan:
    """Return what `run` would do now. Raises BadInput wherever `run` would."""
    resolved = prepare(spec)
    stored = read_state(resolved)
    published = published_tokens(spec.model, resolved.description.level)
    if isinstance(spec, HorizonSpec):
        answered = sum(kind is None for kind in stored.outcomes.values())
        tasks, notes = _plan_measurement(resolved, spec, published, answered)
    else:
        # The paper's prompts allow no working; with it, or a tool, answers have other lengths.
        averages = {} if resolved.info.prompt.working or spec.tools else published
        notes = ["Generated tokens: the paper's published means, unknown for other models."]
        tasks = []
        for task, requests in resolved.requests_by_task.items():
            remaining = open_requests(resolved, requests, stored.outcomes, spec.retry)
            remaining = [each for each in remaining if each.id not in stored.in_progress]
            tasks.append(plan_task(resolved, task, remaining, averages))
    in_jobs = len(stored.in_progress)
    return Plan(resolved, tuple(tasks), in_jobs, stored.costs, tuple(notes))


def _plan_measurement(
    resolved: PreparedRun, spec: HorizonSpec, published: Mapping[str, float], answered: int
) -> tuple[list[TaskPlan], list[str]]:
    """Return what each task takes if its h50 is 100, and on what that is based.

    Most questions are of sizes around h50.
    """
    reasoning = sum(published.values()) / len(published) if published else 0.0
    items = min(spec.max_items, round(_TYPICAL_ITEMS * (Limits().precision / spec.precision) ** 2))
    requests = items * spec.samples
    assert isinstance(resolved.dataset, AskedItems)
    plans = []
    for name, sizes in resolved.sizes.items():
        task, size = TASKS[name], [min(max(_ASSUMED_HORIZON, sizes[0]), sizes[-1])]
        prefix = resolved.prefix_characters(name)
        (prompt,) = prompt_tokens(task, size, resolved.dataset.items, prefix)
        (answer,) = answer_tokens(task, size)
        tokens = requests * prompt, requests * (answer + reasoning)
        plans.append(TaskPlan(name, requests, *tokens, resolved.expected_cost(*tokens)))
    notes = [
        f"Assumed: half of the answers are correct at size {_ASSUMED_HORIZON}; the cost rises with "
        "it.",
        f"Requests: typical for this precision; at most {spec.max_items:,} questions per task.",
        "Generated tokens: those of the answers, and the paper's mean reasoning for this\n"
        "model and level, if it is published.",
    ]
    if not published:
        notes.append("Reasoning: unknown, and not included; it can be most of the cost.")
    notes += size_notes({name: sizes[-1] for name, sizes in resolved.sizes.items()})
    if answered:
        notes.append(f"Answered already: {answered:,} requests.")
    return plans, notes


def size_notes(largest: Mapping[str, int]) -> list[str]:
    """Return which sizes are not asked. largest: the one that is asked, by task."""
    names: dict[int, list[str]] = {}
    for name, size in largest.items():
        task = TASKS[name]
        if task.sizes and size < task.sizes.maximum:
            names.setdefault(size, []).append(task.display)
    return [
        f"Not asked, because of --max-size or a token limit: sizes above {size:,} of "
        f"{', '.join(of_size)}."
        for size, of_size in sorted(names.items())
    ]


def plan_table(plans: Sequence[Plan]) -> RenderableType:
    """Return what a run would send, per task, or several runs, one row each. Fits 80 columns."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    has_variants = any(plan.resolved.info.variant_label for plan in plans)
    is_single = len(plans) == 1
    for column in ["Task"] if is_single else ["Model", "Level", "Variant"][: 2 + has_variants]:
        table.add_column(column, overflow="fold" if has_variants else "ellipsis")
    for column in ("Requests", "Input", "Generated", "Cost"):
        table.add_column(column, justify="right")
    for plan in plans:
        variant = plan.resolved.info.variant_label.removeprefix("prompts ")
        level = plan.resolved.description.level
        names = [plan.spec.model, level, variant or "-"][: 2 + has_variants]
        for row in (*plan.tasks, plan.total) if is_single else (plan.total,):
            task = TASKS[row.task].display if row.task in TASKS else "All"
            table.add_row(
                *([task] if is_single else names),
                f"{row.requests:,}",
                _format_count(row.input_tokens),
                _format_count(row.generated_tokens),
                format_dollars(row.cost) if plan.has_cost else NO_VALUE,
            )
    notes = [f"Input: tokens, estimated at {CHARACTERS_PER_TOKEN} characters per token."]
    notes += _run_notes(*plans) if is_single else _suite_notes(plans)
    if plans[0].spec.max_cost is not None:
        notes.append(_cost_limit_note(plans, plans[0].spec.max_cost))
    heading = f"{plans[0].resolved.title}\n{plans[0].path}\n" if is_single else ""
    return Group(*([Text(heading)] if heading else []), table, Text("\n" + "\n".join(notes)))


def _suite_notes(plans: Sequence[Plan]) -> list[str]:
    """Return the total of several runs, and what their estimates are based on."""
    costs = [(plan.cost, plan.input_cost) for plan in plans if plan.has_cost]
    unknown = [least for cost, least in costs if cost is None]
    known = sum(least if cost is None else cost for cost, least in costs)
    dollars = f", {format_dollars(known)}" if costs else ""
    if unknown:
        runs = f"{len(unknown)} run{'s' * (len(unknown) > 1)} of unknown cost"
        dollars += f", with only the input of {runs}" if any(unknown) else f", plus {runs}"
    prices = [plan.resolved.price for plan in plans]
    sources = sorted({price.basis if price.date else price.source for price in prices if price})
    missing = sorted(missing_keys(plans))
    return [
        f"Total: {sum(plan.requests for plan in plans):,} requests{dollars}.",
        *dict.fromkeys(note for plan in plans for note in (*plan.notes, *_notices(plan))),
        *([f"Prices: {'; '.join(sources)}."] if sources else []),
        *([f"API keys not set: {'; '.join(missing)}."] if missing else []),
    ]


def missing_keys(plans: Sequence[Plan]) -> list[str]:
    """Return the environment variables that runs need and that are not set."""
    keys = (missing_key(plan.resolved.description, server_of(plan.spec)) for plan in plans)
    return [key for key in dict.fromkeys(keys) if key]


def _notices(plan: Plan) -> list[str]:
    """Return what to know of the model of a plan before it is asked, and how to ask it anyway."""
    description = plan.resolved.description
    way = " (--allow-retired asks it nevertheless)" if description.known.is_retired else ""
    return [f"Note: {notice}{way}." for notice in description.notices]


def _run_notes(plan: Plan) -> list[str]:
    """Return what the requests of a run contain, and what its estimates are based on."""
    resolved, notes = plan.resolved, [*plan.notes, *_notices(plan)]
    if plan.spec.samples > 1:
        notes.append(f"Samples per question: {plan.spec.samples}.")
    if resolved.info.shard:
        notes.append(f"Shard {resolved.info.shard} of each task; --max-cost is per shard.")
    if resolved.description.route is None:
        return [*notes, "Cost: none; the model runs in this process."]
    if names := fee_parameters(plan.spec.params):
        notes.append(f"Cost: unknown; {', '.join(names)} may have fees besides those for tokens.")
    elif resolved.price is not None:
        notes += _price_notes(plan, resolved.price)
    elif plan.has_cost:
        notes.append(f"Cost: unknown; add the price to {USER_CATALOGUE} to get an estimate.")
    server = resolved.description.identity.get("base_url")
    server = server or " or ".join(resolved.description.provider.hosts[:1])
    if server:
        notes.append(f"Server: {server}.")
    if note := length_note(resolved):
        notes.append(f"{note}.")
    facts = resolved.description.facts
    if facts and facts.context and facts.max_output:
        known = resolved.description.known
        source = load_model_map().source
        if known.context or known.max_output:
            source = f"catalogue, checked on {known.date}"
        notes.append(f"Limits: {facts.context:,} tokens in, {facts.max_output:,} out;\n{source}.")
    if checked := resolved.description.known.date:
        age = (today() - date.fromisoformat(checked)).days
        notes.append(f"Facts about the model: checked on {checked} ({age} days ago).")
    if plan.items_in_jobs:
        notes.append(
            f"{plan.items_in_jobs:,} further requests are in progress at the provider; the run "
            "collects them."
        )
    if plan.request is not None:
        notes.append(f"Sent: {json.dumps(_without_schema(plan.request), ensure_ascii=False)}")
    return notes


def _price_notes(plan: Plan, price: Price) -> list[str]:
    source = f"{price.basis}: {price.source}" if price.date else price.source
    if price.route != plan.resolved.description.route:
        source += f", of {price.route}"
    note = price.note or ("means over providers" if price.varies else "")
    notes = [
        f"Price: ${price.input:g} and ${price.output:g} per million tokens in and out;\n{source}."
        + (f" Note: {note}." if note else "")
    ]
    if plan.cost is None and plan.requests:
        read = format_dollars(plan.total.input_tokens * price.input / 1e6)
        generated = format_dollars(plan.requests * 1000 * price.output / 1e6)
        notes.append(
            f"Cost: about {read} for the input, and {generated} for each 1,000 tokens per answer."
        )
    if plan.resolved.discount:
        notes.append(f"Batch discount: {plan.resolved.discount:.0%}.")
    return notes


def _cost_limit_note(plans: Sequence[Plan], max_cost: float) -> str:
    """Return whether a cost limit suffices for plans, and what it does not promise."""
    costs, spent = [plan.cost for plan in plans], sum(plan.costs.spent for plan in plans)
    after = f" after the {format_dollars(spent)} already spent" if spent else ""
    note = f"--max-cost {max_cost:g}: suffices{after}, if the estimate is right."
    if spent + sum(cost or 0.0 for cost in costs) > max_cost:
        note = (
            f"--max-cost {max_cost:g}: does not suffice{after}, if the estimate is right; the run "
            "will stop early."
        )
    elif None in costs:
        note = f"--max-cost {max_cost:g}: it is unknown whether this suffices{after}."
    promises = [each for plan in plans if (each := cost_limit_note(plan.resolved))]
    return f"{note}\n{promises[0]}." if promises else note


def _without_schema(node: object) -> object:
    """Return a JSON value with `…` instead of the schema of the answer."""
    if not isinstance(node, Mapping):
        return node
    is_schema = "properties" in node
    return "…" if is_schema else {name: _without_schema(value) for name, value in node.items()}


def format_dollars(amount: float | None) -> str:
    """Return an amount in US dollars, `unknown` if it is None."""
    if amount is None:
        return UNKNOWN
    return f"${amount:,.2f}" if amount == 0 or amount >= 0.01 else f"${amount:.2g}"


def _format_count(tokens: float | None) -> str:
    return UNKNOWN if tokens is None else f"{tokens:,.0f}"


def _total(values: Iterable[float | None]) -> float | None:
    """Return the sum, None if a value is unknown."""
    known = list(values)
    return None if None in known else sum(value or 0.0 for value in known)
