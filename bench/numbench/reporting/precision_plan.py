"""How many items and samples a precision takes, with their tokens and cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from numbench.dataset.settings import POOL_SIZE, strata_share_per_item
from numbench.errors import BadInput
from numbench.models.catalogue import ModelDescription
from numbench.records import ItemSample
from numbench.reporting.references import published_scores
from numbench.reporting.tables.samples import run_variance
from numbench.reporting.values import run_values
from numbench.runner.budget import plan_task, published_tokens
from numbench.runner.planning import UNKNOWN, format_dollars
from numbench.runner.progress import NO_VALUE
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
    answer_tokens: generated per answer. input_tokens, generated_tokens, cost (US dollars): of all
    samples of the larger number of items.
    """

    task: str
    score: float | None = None
    variance: ItemVariance | None = None
    is_published: bool = False
    answer_tokens: float | None = None
    items: int | None = None
    difference_items: int | None = None
    input_tokens: float | None = None
    generated_tokens: float | None = None
    cost: float | None = None

    @property
    def needed(self) -> int | None:
        """The larger number of items."""
        return max(self.items, self.difference_items or 0) if self.items is not None else None

    @property
    def tokens(self) -> float | None:
        """Input and generated tokens."""
        return _total([self.input_tokens, self.generated_tokens])


class PrecisionPlan(NamedTuple):
    """Items and samples for a precision.

    precision: half-width of the 95% interval of each task, in points. difference: to be detected
    with 80% power, in points. samples: per item. items_available: of the dataset, per task.
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
    is_local: bool

    @property
    def cost(self) -> float | None:
        """US dollars for all tasks; None if unknown for one."""
        return _total([task.cost for task in self.tasks])


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
    spec = replace(spec, batch=batch)
    description = describe(spec)
    resolved = resolve(spec, description)
    pool = POOL_SIZE if strata_share_per_item(resolved.dataset.manifest) else None
    known = {one.task: one for one in _published(spec.model, description)}
    known |= {one.task: one for one in _pilot(scored)} if scored else {}
    tasks = []
    for task, items in resolved.items_by_task.items():
        one = known.get(task)
        if one is None or one.score is None or one.variance is None:
            tasks.append(TaskPrecision(task))
            continue
        needed = [items_for_precision(one.variance, precision, samples, pool, one.score)]
        if difference is not None:
            # Two models whose errors have nothing to do with each other: the largest spread.
            of_pair = ItemVariance(2 * one.variance.between, 2 * one.variance.within)
            needed.append(items_for_difference(of_pair, difference, samples))
        tokens = {task: one.answer_tokens} if one.answer_tokens else {}
        planned = plan_task(resolved, task, list(map(ItemSample, items)), tokens)
        scale = max(needed) * samples / len(items)
        amounts = {
            name: amount and amount * scale
            for name in ("input_tokens", "generated_tokens", "cost")
            for amount in [getattr(planned, name)]
        }
        items_of_difference = needed[1] if difference is not None else None
        one = one._replace(items=needed[0], difference_items=items_of_difference, **amounts)
        tasks.append(one)
    return PrecisionPlan(
        spec.model,
        description.level,
        resolved.dataset.name,
        precision,
        difference,
        samples,
        tuple(tasks),
        min(len(items) for items in resolved.items_by_task.values()),
        description.route is None,
    )


def _pilot(run: ScoredRun) -> Iterator[TaskPrecision]:
    for task, values in run_values(run).tasks.items():
        rows = counted_rows(run, task)
        items = len(item_groups(rows))
        if items >= MIN_PILOT_ITEMS:
            mean, tokens = float(np.mean(values.score)), token_counts(run, rows)
            variance = run_variance(run, task).with_pseudo_items(items, mean)
            yield TaskPrecision(task, mean, variance, False, fmean(tokens) if tokens else None)


def _published(model: str, description: ModelDescription) -> Iterator[TaskPrecision]:
    tokens = published_tokens(model, description.level)
    for task, score in published_scores(description.display, description.level).items():
        variance = largest_variance(min(max(score, _ROUNDED), 100 - _ROUNDED))
        yield TaskPrecision(task, score, variance, True, tokens.get(task))


def precision_table(plan: PrecisionPlan) -> RenderableType:
    """Return a plan as a table with the basis of its numbers. Fits 80 columns."""
    columns = ["Score", "SD", f"Items ±{plan.precision:g}"]
    columns += [] if plan.difference is None else [f"Items Δ{plan.difference:g}"]
    table = Table("Task", box=None, pad_edge=False)
    for column in (*columns, "Requests", "Tokens", "Cost"):
        table.add_column(column, justify="right")
    for task in plan.tasks:
        row = [TASKS[task.task].display, UNKNOWN]
        if task.score is not None and task.variance is not None:
            deviation = math.sqrt(task.variance.between + task.variance.within)
            row[1:] = [f"{task.score:.1f}{'*' * task.is_published}", f"{deviation:.1f}"]
            row += map(_count, [task.items, task.difference_items][: len(columns) - 2])
            row += _amounts(plan, task.needed, task.tokens, task.cost)
        table.add_row(*row)
    needed, tokens = _total([task.needed for task in plan.tasks]), [t.tokens for t in plan.tasks]
    blank = [""] * len(columns)
    table.add_row("All", *blank, *_amounts(plan, needed, _total(tokens), plan.cost))
    samples = "1 sample" if plan.samples == 1 else f"{plan.samples} samples"
    heading = f"{plan.model}, reasoning {plan.level}, dataset {plan.dataset}, {samples} per item\n"
    return Group(Text(heading), table, Text("\n" + "\n".join(_notes(plan))))


def _amounts(
    plan: PrecisionPlan, items: float | None, tokens: float | None, cost: float | None
) -> list[str]:
    """Return requests, tokens and cost."""
    requests = None if items is None else items * plan.samples
    return [_count(requests), _count(tokens), NO_VALUE if plan.is_local else format_dollars(cost)]


def _notes(plan: PrecisionPlan) -> Iterator[str]:
    needed = [task.needed for task in plan.tasks if task.needed is not None]
    yield f"±{plan.precision:g}: half-width of each task's 95% interval, in points."
    if plan.difference is not None:
        yield (
            f"Δ{plan.difference:g}: difference detected with 80% power at the 5% level, for two "
            "models with\nthis spread whose errors are unrelated; related errors need fewer items."
        )
    if any(task.is_published for task in plan.tasks):
        yield "*: published score and tokens; the spread is the largest for that score."
    if unknown := [TASKS[task.task].display for task in plan.tasks if task.score is None]:
        yield (
            f"No published or pilot scores: {', '.join(unknown)}. Give --pilot RUN, a run with at "
            f"least\n{MIN_PILOT_ITEMS} items per task (numbench run --limit 50)."
        )
    if plan.samples > 1 and not any(task.variance and task.variance.within for task in plan.tasks):
        yield (
            "More samples are not counted as a gain: how much answers to one item vary is\n"
            "unknown. Give --pilot a run with several samples per item."
        )
    if needed:
        yield (
            f"{plan.dataset} has {plan.items_available:,} items per task. The numbers are for "
            f"a dataset of their size:\nnumbench generate --name NAME --size {max(needed)}. The "
            f"first items of a larger one (--limit) give less."
        )


def _count(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:,.0f}"


def _total(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
