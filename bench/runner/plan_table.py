"""A plan as people read it: tables that fit 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.runner.expected import CHARACTERS_PER_TOKEN
from bench.runner.planning import Plan
from bench.runner.suite import Member
from bench.tasks import TASKS

UNKNOWN = "unknown"


def plan_table(planned: Plan, max_cost: float | None = None) -> RenderableType:
    """What a run would ask, task by task, with the basis of every expectation."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Task")
    for column in ("Requests", "Input tokens", "Generated tokens", "Cost"):
        table.add_column(column, justify="right")
    for task in planned.tasks:
        table.add_row(
            TASKS[task.task].display,
            f"{task.requests:,}",
            _count(task.input_tokens),
            _count(task.generated_tokens),
            "–" if planned.local else dollars(task.cost),
        )
    table.add_section()
    table.add_row(
        "All",
        f"{planned.requests:,}",
        _count(planned.input_tokens),
        _count(planned.generated_tokens),
        "–" if planned.local else dollars(planned.cost),
    )
    heading = Text(f"{planned.model}, reasoning {planned.level}, dataset {planned.dataset}")
    said = [basis(planned)]
    if planned.in_jobs:
        said.append(
            f"{planned.in_jobs:,} more lie with batch jobs under way; --batch collects them."
        )
    if max_cost is not None and not planned.local:
        said.append(_against_limit(planned.cost, planned.spent, max_cost))
    return Group(heading, Text(f"{planned.path}\n"), table, Text("\n" + "\n".join(said)))


def suite_table(members: Sequence[Member], max_cost: float | None = None) -> RenderableType:
    """What the runs of a suite would ask, one a line."""
    table = Table(box=None, pad_edge=False)
    for column in ("Model", "Level"):
        table.add_column(column)
    for column in ("Requests", "Input", "Generated", "Cost"):
        table.add_column(column, justify="right")
    table.add_column("Key")
    for _, planned, about in members:
        table.add_row(
            planned.model,
            planned.level,
            f"{planned.requests:,}",
            _count(planned.input_tokens),
            _count(planned.generated_tokens),
            dollars(planned.cost),
            "set" if about.key_is_set else "not set",
        )
    costs = [member.plan.cost for member in members]
    known = sum(cost for cost in costs if cost is not None)
    unknown = sum(cost is None for cost in costs)
    rest = f" and {unknown} runs of unknown cost" if unknown else ""
    missing = sorted({" or ".join(a.keys) for _, _, a in members if not a.key_is_set})
    said = [
        f"In all {sum(member.plan.requests for member in members):,} requests, "
        f"{dollars(known)}{rest}.",
        f"Tokens: input is an estimate, {CHARACTERS_PER_TOKEN} characters a token;",
        "generated, the study's published averages. Cost: the price table.",
        *([f"Keys not set: {'; '.join(missing)}"] if missing else []),
    ]
    if max_cost is not None:
        spent = sum(member.plan.spent for member in members)
        said.append(_against_limit(None if unknown else known, spent, max_cost))
    return Group(table, Text("\n" + "\n".join(said)))


def basis(planned: Plan) -> str:
    """What the expectations of a plan rest on."""
    lines = [f"Input: an estimate, {CHARACTERS_PER_TOKEN} characters a token."]
    if any(task.generated_tokens is not None for task in planned.tasks):
        lines.append("Generated: the study's published averages for this model and level.")
    else:
        lines.append("Generated: unknown; the study published no averages for these.")
    if planned.local:
        lines.append("Cost: none; it runs in this process.")
    elif planned.price is None:
        lines.append("Cost: unknown; numbench-prices.toml may name the price.")
    else:
        price = planned.price
        mean = ", a mean over providers" if price.varies else ""
        lines.append(
            f"Cost: ${price.input:g} and ${price.output:g} per million tokens in and out{mean};\n"
            f"{price.basis}: {price.source}."
        )
        if planned.discount:
            lines.append(f"By batch, {planned.discount:.0%} off.")
    return "\n".join(lines)


def dollars(amount: float | None) -> str:
    """An amount in US dollars, or that it is not known."""
    if amount is None:
        return UNKNOWN
    return f"${amount:,.2f}" if amount == 0 or amount >= 0.01 else f"${amount:.2g}"


def _against_limit(cost: float | None, spent: float, max_cost: float) -> str:
    """What a limit on the cost means for what is planned, with what was spent before."""
    before = f" with the {dollars(spent)} spent before" if spent else ""
    if cost is None:
        return f"--max-cost {max_cost:g}: nobody knows whether that is enough{before}."
    enough = spent + cost <= max_cost
    verdict = "enough for all of it" if enough else "it will stop before the end"
    return f"--max-cost {max_cost:g}: {verdict}{before}, if the expectation holds."


def _count(tokens: float | None) -> str:
    return UNKNOWN if tokens is None else f"{tokens:,.0f}"
