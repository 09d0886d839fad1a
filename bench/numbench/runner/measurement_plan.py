"""What a horizon measurement would send and cost, if h50 were known. Sends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from numbench.horizon.asked_items import AskedItems
from numbench.horizon.sizes import CHARACTERS_PER_TOKEN, answer_tokens, prompt_tokens
from numbench.horizon.stopping import Limits
from numbench.journal import iter_responses
from numbench.models.user_catalogue import USER_CATALOGUE
from numbench.runner.estimates import published_tokens
from numbench.runner.event_loop import run_to_end
from numbench.runner.plan_table import format_dollars
from numbench.runner.preparation import PreparedRun, RunArguments, prepare_run
from numbench.runner.prices import Price, with_cost
from numbench.runner.spec import ResolvedRun, RunSpec
from numbench.tasks import TASKS

ASSUMED_HORIZONS = 10, 100
"""The h50 for which an estimate is shown."""

_TYPICAL_ITEMS = 110
"""Of a task, at the default precision: the mean of simulated measurements with a slope of 3."""


class AssumedCost(NamedTuple):
    """What one task takes if h50 is `horizon`; cost in US dollars, None if unknown."""

    horizon: int
    input_tokens: float
    generated_tokens: float
    cost: float | None


class TaskMeasurementPlan(NamedTuple):
    """A task of a measurement: the sizes that may be asked, and what it takes."""

    task: str
    smallest: int
    largest: int
    is_limited: bool
    assumed: tuple[AssumedCost, ...]


class MeasurementPlan(NamedTuple):
    """What a measurement would do.

    items: per task, expected. max_items: per task, at most. answered: requests of earlier calls,
    which cost `spent` US dollars as far as known. knows_reasoning: whether the generated tokens
    include the reasoning.
    """

    model: str
    level: str
    path: Path
    tasks: tuple[TaskMeasurementPlan, ...]
    items: int
    samples: int
    answered: int
    spent: float
    price: Price | None
    is_local: bool
    knows_reasoning: bool
    max_items: int


def plan_measurement(spec: RunSpec, arguments: RunArguments) -> MeasurementPlan:
    """Return what a measurement would do. Raises BadInput if the measurement would."""
    prepared = prepare_run(spec, arguments, needs_key=False)
    try:
        return _plan(prepared)
    finally:
        run_to_end(prepared.close)


def _plan(prepared: PreparedRun) -> MeasurementPlan:
    resolved, price = prepared.resolved, prepared.price
    description, spec = resolved.description, resolved.spec
    assert spec.measurement is not None
    published = published_tokens(spec.model, description.level)
    reasoning = sum(published.values()) / len(published) if published else 0.0
    precision, max_items = spec.measurement.limits
    items = min(max_items, round(_TYPICAL_ITEMS * (Limits().precision / precision) ** 2))
    requests = items * spec.samples
    responses = list(iter_responses(resolved.folder))
    return MeasurementPlan(
        model=spec.model,
        level=description.level,
        path=resolved.folder,
        tasks=tuple(
            _plan_task(resolved, task, requests, reasoning, price) for task in resolved.tasks
        ),
        items=items,
        samples=spec.samples,
        answered=sum(response.error is None for response in responses),
        spent=sum(with_cost(response, price).cost or 0.0 for response in responses),
        price=price,
        is_local=description.route is None,
        knows_reasoning=bool(published),
        max_items=max_items,
    )


def _plan_task(
    resolved: ResolvedRun, name: str, requests: int, reasoning: float, price: Price | None
) -> TaskMeasurementPlan:
    """Return the plan of one task, whose questions are mostly of sizes around h50.

    reasoning: expected tokens in addition to those of the answer itself.
    """
    task, sizes = TASKS[name], resolved.sizes[name]
    assert task.sizes is not None and isinstance(resolved.dataset, AskedItems)
    prefix = resolved.prefix_characters(name)
    assumed = []
    for horizon in ASSUMED_HORIZONS:
        size = [min(max(horizon, sizes[0]), sizes[-1])]
        (prompt,) = prompt_tokens(task, size, resolved.dataset.items, prefix)
        (answer,) = answer_tokens(task, size)
        read, generated = requests * prompt, requests * (answer + reasoning)
        cost = None if price is None else (read * price.input + generated * price.output) / 1e6
        assumed.append(AssumedCost(horizon, read, generated, cost))
    return TaskMeasurementPlan(
        name, sizes[0], sizes[-1], sizes[-1] < task.sizes.maximum, tuple(assumed)
    )


def measurement_table(plan: MeasurementPlan, max_cost: float | None = None) -> RenderableType:
    """Return what a measurement would send, per task, with the basis of every estimate."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("Task")
    for column in ("Sizes", "Items"):
        table.add_column(column, justify="right")
    for horizon in ASSUMED_HORIZONS:
        table.add_column(f"Tokens, h50 {horizon}", justify="right")
        if not plan.is_local:
            table.add_column("Cost", justify="right")
    for task in plan.tasks:
        cells = [f"{task.smallest}–{task.largest:,}", f"{plan.items:,}"]
        table.add_row(TASKS[task.task].display, *cells, *_assumed_cells(task.assumed, plan))
    totals = [_total(each) for each in zip(*(task.assumed for task in plan.tasks), strict=True)]
    cells = ["", f"{plan.items * len(plan.tasks):,}"]
    table.add_row("All", *cells, *_assumed_cells(totals, plan), style="bold")
    heading = f"{plan.model}, reasoning {plan.level}, horizon measurement\n{plan.path}\n"
    notes = _notes(plan)
    if max_cost is not None and not plan.is_local:
        notes.append(_cost_limit_note(plan, totals, max_cost))
    return Group(Text(heading), table, Text("\n" + "\n".join(notes)))


def _assumed_cells(assumed: Sequence[AssumedCost], plan: MeasurementPlan) -> list[str]:
    cells = []
    for each in assumed:
        cells.append(f"{each.input_tokens + each.generated_tokens:,.0f}")
        if not plan.is_local:
            cells.append(format_dollars(each.cost))
    return cells


def _total(assumed: Sequence[AssumedCost]) -> AssumedCost:
    costs = [each.cost for each in assumed if each.cost is not None]
    return AssumedCost(
        assumed[0].horizon,
        sum(each.input_tokens for each in assumed),
        sum(each.generated_tokens for each in assumed),
        sum(costs) if len(costs) == len(assumed) else None,
    )


def _notes(plan: MeasurementPlan) -> list[str]:
    samples = f", each with {plan.samples} samples" if plan.samples > 1 else ""
    notes = [
        f"Items: typical for this precision; at most {plan.max_items:,} per task{samples}.",
        f"Tokens: in and out, at {CHARACTERS_PER_TOKEN} characters each, if h50 is "
        f"{' or '.join(map(str, ASSUMED_HORIZONS))}.",
    ]
    if plan.knows_reasoning:
        notes.append("Reasoning: the paper's published mean for this model and level.")
    else:
        notes.append("Reasoning: unknown, and not included; it can be most of the cost.")
    if limited := [TASKS[task.task].display for task in plan.tasks if task.is_limited]:
        notes.append(f"Larger sizes do not fit --max-size or a token limit: {', '.join(limited)}.")
    if plan.is_local:
        notes.append("Cost: none; the model runs in this process.")
    elif plan.price is None:
        notes.append(f"Cost: unknown; add the price to {USER_CATALOGUE} to get an estimate.")
    else:
        price = plan.price
        notes.append(
            f"Price: ${price.input:g} and ${price.output:g} per million tokens in and out; "
            f"{price.source}."
        )
    if plan.answered:
        notes.append(
            f"Answered already: {plan.answered:,} requests, {format_dollars(plan.spent)} spent."
        )
    return notes


def _cost_limit_note(plan: MeasurementPlan, totals: Sequence[AssumedCost], max_cost: float) -> str:
    sufficient = [
        str(each.horizon)
        for each in totals
        if each.cost is not None and each.cost <= max_cost - plan.spent
    ]
    result = f"suffices if h50 is {' or '.join(sufficient)}" if sufficient else "may not suffice"
    return f"--max-cost {max_cost:g}: {result}, as far as the estimates are right."
