"""How many items and samples a precision takes, with their tokens and cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from numbench.dataset.settings import POOL_SIZE, strata_share_per_item
from numbench.errors import BadInput
from numbench.records import ItemSample
from numbench.reporting.references import published_scores
from numbench.reporting.samples import run_variance
from numbench.reporting.values import run_values
from numbench.runner.estimates import discount_for, plan_task, price_for, published_tokens
from numbench.runner.live import NO_VALUE
from numbench.runner.planning import UNKNOWN, format_dollars
from numbench.runner.prices import Price
from numbench.runner.resolution import describe, resolve
from numbench.runner.spec import RunSpec
from numbench.scoring import ScoredRun, score_dataset_run
from numbench.scoring.scored_run import counted_rows, item_groups, token_counts
from numbench.stats.planning import (
    ItemVariance,
    items_for_difference,
    items_for_precision,
    largest_variance,
)
from numbench.tasks import TASKS

_ROUNDED = 0.05
"""Half a unit of a published score: one of 100.0 may have been 99.95."""

MIN_PILOT_ITEMS = 10
"""Fewer items say too little about the spread of scores."""


class TaskPrecision(NamedTuple):
    """What one task takes; None if unknown.

    score: the mean that the plan assumes, in percent. variance: of the scores, in squared points.
    is_published: whether both are derived from the paper's tables. items: for the half-width of
    the interval. difference_items: for the detectable difference, None if none was asked for.
    input_tokens, generated_tokens, cost (US dollars): of all samples of the larger number of items.
    """

    task: str
    score: float | None
    variance: ItemVariance | None
    is_published: bool
    items: int | None
    difference_items: int | None
    input_tokens: float | None
    generated_tokens: float | None
    cost: float | None

    @property
    def needed(self) -> int | None:
        """The larger number of items."""
        return max(self.items, self.difference_items or 0) if self.items is not None else None


class PrecisionPlan(NamedTuple):
    """Items and samples for a precision.

    precision: half-width of the 95 % interval of each task, in points. difference: to be detected
    with 80 % power, in points. samples: per item. items_available: of the dataset, per task.
    is_local: whether the model runs in this process.
    """

    model: str
    level: str
    dataset: str
    precision: float
    difference: float | None
    samples: int
    tasks: tuple[TaskPrecision, ...]
    items_available: int
    price: Price | None
    is_local: bool

    @property
    def cost(self) -> float | None:
        """US dollars for all tasks; None if unknown for one."""
        return _total([task.cost for task in self.tasks])


class _PlanningValues(NamedTuple):
    score: float
    variance: ItemVariance
    generated_tokens: float | None
    is_published: bool


def plan_precision(
    spec: RunSpec,
    precision: float = 1.0,
    difference: float | None = None,
    samples: int = 1,
    pilot: Path | None = None,
    batch: bool = False,
) -> PrecisionPlan:
    """Return how many items a precision takes. Requests nothing and needs no API key.

    Scores, their spread and tokens are those of the run `pilot`; for tasks without counted
    items there, those of the paper's tables for this model and level, with the largest spread
    that such a score allows. If the dataset is stratified by difficulty, so are the planned ones.
    Without a model in `spec`, it is the pilot's.

    Raises BadInput for numbers out of range, if there is neither a model nor a pilot, and for what
    `run` would not accept.
    """
    for name, value in (("--precision", precision), ("--difference", difference)):
        if value is not None and not 0 < value <= 50:
            raise BadInput(f"{name} {value:g}: give points above 0, up to 50")
    if samples < 1:
        raise BadInput(f"--samples {samples}: give 1 or more")
    scored = None if pilot is None else score_dataset_run(pilot)
    if not spec.model:
        if scored is None:
            raise BadInput("give --model NAME, or --pilot RUN")
        spec = replace(spec, model=scored.info.model, reasoning=scored.info.reasoning)
    description = describe(spec)
    resolved = resolve(spec, description)
    price, discount = price_for(description, batch), discount_for(description, batch)
    published = _published_values(spec.model, description.display, description.level)
    pool = POOL_SIZE if strata_share_per_item(resolved.dataset.manifest) else None
    tasks = []
    for task, items in resolved.items_by_task.items():
        values = (scored and _pilot_values(scored, task)) or published.get(task)
        tokens = {task: values.generated_tokens} if values and values.generated_tokens else {}
        requests = [ItemSample(item) for item in items]
        per_item = plan_task(resolved, task, requests, tokens, price, discount)
        tasks.append(_plan_task(task, values, precision, difference, samples, pool))
        needed = tasks[-1].needed
        if needed is not None:
            scale = needed * samples / len(items)
            tasks[-1] = tasks[-1]._replace(
                input_tokens=per_item.input_tokens * scale,
                generated_tokens=_scaled(per_item.generated_tokens, scale),
                cost=_scaled(per_item.cost, scale),
            )
    return PrecisionPlan(
        spec.model,
        description.level,
        resolved.dataset.name,
        precision,
        difference,
        samples,
        tuple(tasks),
        min(len(items) for items in resolved.items_by_task.values()),
        price,
        description.route is None,
    )


def _plan_task(
    task: str,
    values: _PlanningValues | None,
    precision: float,
    difference: float | None,
    samples: int,
    pool: int | None,
) -> TaskPrecision:
    if values is None:
        return TaskPrecision(task, None, None, False, *[None] * 5)
    variance = values.variance
    difference_items = None
    if difference is not None:
        # Two models whose errors have nothing to do with each other: the largest spread.
        of_pair = ItemVariance(2 * variance.between, 2 * variance.within)
        difference_items = items_for_difference(of_pair, difference, samples)
    return TaskPrecision(
        task,
        values.score,
        variance,
        values.is_published,
        items_for_precision(variance, precision, samples, pool, values.score),
        difference_items,
        *[None] * 3,
    )


def _pilot_values(run: ScoredRun, task: str) -> _PlanningValues | None:
    rows = counted_rows(run, task) if task in run.rows else []
    groups = item_groups(rows)
    if len(groups) < MIN_PILOT_ITEMS:
        return None
    mean = float(np.mean(run_values(run).tasks[task].score))
    tokens = token_counts(run, rows)
    return _PlanningValues(
        mean,
        run_variance(run, task).with_pseudo_items(len(groups), mean),
        sum(tokens) / len(tokens) if tokens else None,
        False,
    )


def _published_values(model: str, display: str, level: str) -> dict[str, _PlanningValues]:
    tokens = published_tokens(model, level)
    return {
        task: _PlanningValues(
            score,
            largest_variance(min(max(score, _ROUNDED), 100 - _ROUNDED)),
            tokens.get(task),
            True,
        )
        for task, score in published_scores(display, level).items()
    }


def precision_table(plan: PrecisionPlan) -> RenderableType:
    """Return a plan as a table with the basis of its numbers. Fits 80 columns."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Task")
    columns = ["Score", "SD", f"Items ±{plan.precision:g}"]
    columns += [f"Items Δ{plan.difference:g}"] if plan.difference is not None else []
    for column in (*columns, "Requests", "Tokens", "Cost"):
        table.add_column(column, justify="right")
    for task in plan.tasks:
        table.add_row(TASKS[task.task].display, *_cells(plan, task))
    needed = [task.needed for task in plan.tasks]
    requests = _total([None if n is None else n * plan.samples for n in needed])
    tokens = _total([_all_tokens(task) for task in plan.tasks])
    blank = [""] * len(columns)
    cost = NO_VALUE if plan.is_local else format_dollars(plan.cost)
    table.add_row("All", *blank, _count(requests), _count(tokens), cost)
    samples = "1 sample" if plan.samples == 1 else f"{plan.samples} samples"
    heading = f"{plan.model}, reasoning {plan.level}, dataset {plan.dataset}, {samples} per item\n"
    return Group(Text(heading), table, Text("\n" + "\n".join(_notes(plan))))


def _cells(plan: PrecisionPlan, task: TaskPrecision) -> list[str]:
    if task.score is None or task.variance is None or task.needed is None:
        extra = 6 + (plan.difference is not None)
        return [UNKNOWN, *[""] * (extra - 1)]
    deviation = math.sqrt(task.variance.between + task.variance.within)
    items = [task.items] + ([task.difference_items] if plan.difference is not None else [])
    return [
        f"{task.score:.1f}{'*' if task.is_published else ''}",
        f"{deviation:.1f}",
        *(_count(count) for count in items),
        f"{task.needed * plan.samples:,}",
        _count(_all_tokens(task)),
        NO_VALUE if plan.is_local else format_dollars(task.cost),
    ]


def _notes(plan: PrecisionPlan) -> list[str]:
    needed = [task.needed for task in plan.tasks if task.needed is not None]
    notes = [f"±{plan.precision:g}: half-width of each task's 95 % interval, in points."]
    if plan.difference is not None:
        notes.append(
            f"Δ{plan.difference:g}: difference detected with 80 % power at the 5 % level, for two "
            "models with\nthis spread whose errors are unrelated; related errors need fewer items."
        )
    if any(task.is_published for task in plan.tasks):
        notes.append("*: published score and tokens; the spread is the largest for that score.")
    if unknown := [TASKS[task.task].display for task in plan.tasks if task.score is None]:
        notes.append(
            f"No published or pilot scores: {', '.join(unknown)}. Give --pilot RUN, a run with at "
            f"least\n{MIN_PILOT_ITEMS} items per task (numbench run --limit 50)."
        )
    if plan.samples > 1 and not any(task.variance and task.variance.within for task in plan.tasks):
        notes.append(
            "More samples are not counted as a gain: how much answers to one item vary is\n"
            "unknown. Give --pilot a run with several samples per item."
        )
    if needed:
        notes.append(
            f"{plan.dataset} has {plan.items_available:,} items per task. The numbers are for "
            f"a dataset of their size:\nnumbench generate --name NAME --size {max(needed)}. The "
            f"first items of a larger one (--limit) give less."
        )
    return notes


def _all_tokens(task: TaskPrecision) -> float | None:
    return _total([task.input_tokens, task.generated_tokens])


def _count(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:,.0f}"


def _scaled(number: float | None, scale: float) -> float | None:
    return None if number is None else number * scale


def _total(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
