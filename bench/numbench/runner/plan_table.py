"""What runs would send and cost, as a table with notes on what the estimates rest on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from numbench.horizon.sizes import CHARACTERS_PER_TOKEN
from numbench.models.facts import USER_CATALOGUE, today
from numbench.models.prices import Price, fee_parameters, load_model_map
from numbench.runner.estimates import cost_limit_note, length_note
from numbench.runner.planning import Plan, missing_keys
from numbench.runner.prepared_run import priced_parameters
from numbench.runner.progress import NO_VALUE
from numbench.tasks import TASKS

if TYPE_CHECKING:
    from rich.console import RenderableType

UNKNOWN = "unknown"


def plan_table(plans: Sequence[Plan]) -> RenderableType:
    """Return what a run would send, per task, or several runs, one row each. Fits 80 columns."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    has_variants = any(plan.prepared.info.variant_label for plan in plans)
    is_single = len(plans) == 1
    for column in ["Task"] if is_single else ["Model", "Level", "Variant"][: 2 + has_variants]:
        table.add_column(column, overflow="fold" if has_variants else "ellipsis")
    for column in ("Requests", "Input", "Generated", "Cost"):
        table.add_column(column, justify="right")
    for plan in plans:
        variant = plan.prepared.info.variant_label.removeprefix("prompts ")
        level = plan.prepared.description.level
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
        notes.append(_sufficiency_note(plans, plans[0].spec.max_cost))
    heading = f"{plans[0].prepared.title}\n{plans[0].path}\n" if is_single else ""
    return Group(*([Text(heading)] if heading else []), table, Text("\n" + "\n".join(notes)))


def _suite_notes(plans: Sequence[Plan]) -> list[str]:
    """Return the total of several runs, and what their estimates are based on."""
    costs = [(plan.cost, plan.input_cost) for plan in plans if plan.has_cost]
    unknown = [least for cost, least in costs if cost is None]
    known = sum(least if cost is None else cost for cost, least in costs)
    dollars = f", {format_dollars(known)}" if len(costs) > len(unknown) or any(unknown) else ""
    if unknown:
        runs = f"{len(unknown)} run{'s' * (len(unknown) > 1)} of unknown cost"
        dollars += f", with only the input of {runs}" if any(unknown) else f", plus {runs}"
    prices = [plan.prepared.price for plan in plans]
    sources = sorted({price.basis if price.date else price.source for price in prices if price})
    missing = sorted(missing_keys(plans))
    return [
        f"Total: {sum(plan.requests for plan in plans):,} requests{dollars}.",
        *dict.fromkeys(note for plan in plans for note in (*plan.notes, *_notices(plan))),
        *([f"Prices: {'; '.join(sources)}."] if sources else []),
        *([f"API keys not set: {'; '.join(missing)}."] if missing else []),
    ]


def _notices(plan: Plan) -> list[str]:
    """Return what to know of the model of a plan before it is asked, and how to ask it anyway."""
    description = plan.prepared.description
    way = " (to use the retired model: --allow-retired)" if description.known.is_retired else ""
    return [f"Note: {notice}{way}." for notice in description.notices]


def _run_notes(plan: Plan) -> list[str]:
    """Return what the requests of a run contain, and what its estimates are based on."""
    prepared, notes = plan.prepared, [*plan.notes, *_notices(plan)]
    if plan.spec.samples > 1:
        notes.append(f"Samples per question: {plan.spec.samples}.")
    if prepared.info.shard:
        notes.append(f"Shard {prepared.info.shard} of each task; --max-cost is per shard.")
    if prepared.description.route is None:
        return [*notes, "Cost: none; the model runs in this process."]
    if names := fee_parameters(priced_parameters(plan.spec, prepared.description)):
        notes.append(f"Cost: unknown; {', '.join(names)} may have fees besides those for tokens.")
    elif prepared.price is not None:
        notes += _price_notes(plan, prepared.price)
    elif plan.has_cost:
        notes.append(f"Cost: unknown; add the price to {USER_CATALOGUE} to get an estimate.")
    own_server = prepared.description.identity.get("base_url")
    server = own_server or " or ".join(prepared.description.provider.hosts[:1])
    if server:
        notes.append(f"Server: {server}.")
    if note := length_note(prepared):
        notes.append(f"{note}.")
    facts = prepared.description.facts
    if facts and facts.context and facts.max_output:
        known = prepared.description.known
        source = load_model_map().source
        if known.context or known.max_output:
            source = f"catalogue, checked on {known.date}"
        notes.append(f"Limits: {facts.context:,} tokens in, {facts.max_output:,} out;\n{source}.")
    # Nothing is known about a model of one's own server, whatever its name.
    if (checked := prepared.description.known.date) and not own_server:
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
    if price.route != plan.prepared.description.route:
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
    if highest := plan.highest_cost:
        limit = plan.prepared.settings.max_tokens
        dollars = format_dollars(highest)
        notes.append(f"Cost: at most {dollars} with --max-tokens {limit}, if none is repeated.")
    if plan.prepared.discount:
        notes.append(f"Batch discount: {plan.prepared.discount:.0%}.")
    return notes


def _sufficiency_note(plans: Sequence[Plan], max_cost: float) -> str:
    """Return whether a cost limit suffices for plans, and what it does not promise."""
    costs, spent = [plan.cost for plan in plans], sum(plan.costs.spent for plan in plans)
    known = ((plan.cost, plan.highest_cost) for plan in plans)
    most = sum(next((c for c in each if c is not None), math.inf) for each in known)
    after = f" after the {format_dollars(spent)} already spent" if spent else ""
    note = f"--max-cost {max_cost:g} is enough{after} if the estimate is right."
    if spent + sum(cost or 0.0 for cost in costs) > max_cost:
        note = (
            f"--max-cost {max_cost:g} is not enough{after} if the estimate is right; the run will "
            "stop early."
        )
    elif spent + most > max_cost:
        note = f"--max-cost {max_cost:g} may not be enough{after}: the cost is unknown."
    promises = [each for plan in plans if (each := cost_limit_note(plan.prepared))]
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
