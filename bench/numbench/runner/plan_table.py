"""What runs would send and cost, as a table with notes on what the estimates rest on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from numbench.core.texts import text_template
from numbench.horizon.sizes import CHARACTERS_PER_TOKEN
from numbench.models.facts import USER_CATALOGUE, today
from numbench.models.prices import fee_parameters, load_model_map
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
    is_single = len(plans) == 1
    rows = [(each.spec.model, each.prepared.description.level) for each in plans]
    variants = [each.prepared.info.variant_label.removeprefix("prompts ") for each in plans]
    names: list[tuple[str, ...]] = [
        (*row, variant or "-") for row, variant in zip(rows, variants, strict=True)
    ]
    columns = ["Model", "Level", "Variant"]
    if len(set(names)) < len(plans):
        columns[2] = "Folder"
        names = [(*row, each.path.name) for row, each in zip(rows, plans, strict=True)]
    elif not any(variants):
        columns, names = columns[:2], list(rows)
    for column in ["Task"] if is_single else columns:
        table.add_column(column, overflow="fold" if len(columns) > 2 else "ellipsis")
    for column in ("Requests", "Input", "Generated", "Cost"):
        table.add_column(column, justify="right")
    for plan, name in zip(plans, names, strict=True):
        for row in (*plan.tasks, plan.total) if is_single else (plan.total,):
            task = TASKS[row.task].display if row.task in TASKS else "All"
            table.add_row(
                *((task,) if is_single else name),
                f"{row.requests:,}",
                _format_count(row.input_tokens),
                _format_count(row.generated_tokens),
                format_dollars(row.cost) if plan.has_cost else NO_VALUE,
            )
    heading = f"{plans[0].prepared.title}\n{plans[0].path}\n" if is_single else ""
    return Group(*([Text(heading)] if heading else []), table, Text(f"\n{_notes(plans)}"))


def _notes(plans: Sequence[Plan]) -> str:
    """Return what the requests of runs contain, and what their estimates are based on."""
    plan, prices = plans[0], [each.prepared.price for each in plans]
    known = ((each.cost, each.highest_cost) for each in plans)
    text = text_template(Path(__file__).with_suffix(".txt.j2")).render(
        is_single=len(plans) == 1,
        plan=plan,
        prepared=plan.prepared,
        spec=plan.spec,
        price=plan.prepared.price,
        fees=fee_parameters(priced_parameters(plan.spec, plan.prepared.description)),
        length=length_note(plan.prepared) if len(plans) == 1 else "",
        notes=dict.fromkeys(note for each in plans for note in (*each.notes, *_notices(each))),
        requests=sum(each.requests for each in plans),
        total_cost=_total_cost(plans),
        sources=sorted({each.basis if each.date else each.source for each in prices if each}),
        missing=sorted(missing_keys(plans)),
        spent=sum(each.costs.spent for each in plans),
        expected=sum(each.cost or 0.0 for each in plans),
        most=sum(next((c for c in each if c is not None), math.inf) for each in known),
        promises=list(filter(None, (cost_limit_note(each.prepared) for each in plans))),
        characters_per_token=CHARACTERS_PER_TOKEN,
        catalogue=USER_CATALOGUE,
        dollars=format_dollars,
        days_since=lambda day: (today() - date.fromisoformat(day)).days,
        json=partial(json.dumps, ensure_ascii=False),
        load_model_map=load_model_map,
        without_schema=_without_schema,
    )
    return text.rstrip("\n")


def _total_cost(plans: Sequence[Plan]) -> str:
    """Return what to add to the number of requests of several runs: what they cost together."""
    costs = [(plan.cost, plan.input_cost) for plan in plans if plan.has_cost]
    unknown = [least for cost, least in costs if cost is None]
    known = sum(least if cost is None else cost for cost, least in costs)
    dollars = f", {format_dollars(known)}" if len(costs) > len(unknown) or any(unknown) else ""
    if not unknown:
        return dollars
    runs = f"{len(unknown)} run{'s' * (len(unknown) > 1)} of unknown cost"
    return f"{dollars}, {'with only the input of' if any(unknown) else 'plus'} {runs}"


def _notices(plan: Plan) -> list[str]:
    """Return what to know of the model of a plan before it is asked, and how to ask it anyway."""
    description = plan.prepared.description
    way = " (to use the retired model: --allow-retired)" if description.known.is_retired else ""
    return [f"Note: {notice}{way}." for notice in description.notices]


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
