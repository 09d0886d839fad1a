"""Suites: the paper's configurations as one plan, run one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from numbench.dataset.store import open_dataset
from numbench.errors import BadInput, NumbenchError
from numbench.journal import iter_responses
from numbench.models import ModelDescription
from numbench.models.base import DEFAULT_TIMEOUT_SECONDS
from numbench.runner.budget import check_cost_limit, recorded_costs
from numbench.runner.live import run_title, show_progress
from numbench.runner.planning import Plan, plan, published_configurations
from numbench.runner.progress import ScoreCallback
from numbench.runner.run import CostLimitReached, RunReport, run
from numbench.runner.spec import RunSpec, folder_name


class SuiteRun(NamedTuple):
    """One configuration of a suite, with its plan and the description of its model."""

    spec: RunSpec
    plan: Plan
    description: ModelDescription


def plan_suite(common: RunSpec, retry_errors: bool = False) -> tuple[SuiteRun, ...]:
    """Return the paper's 13 configurations in its order, each with the arguments of `common`.

    Their run folders are in `common.out`, by default `results`. Needs no API key and writes
    nothing. Raises BadInput for wrong arguments.
    """
    dataset, folder = open_dataset(common.dataset).name, common.out or Path("results")
    runs = []
    for model, level in published_configurations():
        out = folder / folder_name(model, level, dataset, common.few_shot)
        spec = replace(common, model=model, reasoning=level, out=out)
        runs.append(SuiteRun(spec, plan(spec, retry_errors), spec.describe()))
    return tuple(runs)


def run_suite(
    members: Sequence[SuiteRun],
    *,
    concurrency: int | None = None,
    retry_errors: bool = False,
    timeout: float = DEFAULT_TIMEOUT_SECONDS,
    time_limit: float | None = None,
    max_cost: float | None = None,
    judge: ScoreCallback | None = None,
    on_done: Callable[[RunReport], None] = lambda report: None,
) -> tuple[RunReport, ...]:
    """Run the members with open items, one after another, and return their reports.

    max_cost: US dollars for all run folders of `members` together. time_limit: seconds for all
    runs together. on_done: called after each run. The other arguments are those of `run`.

    Raises BadInput before any request if an API key is missing or a limit cannot be enforced, else
    what `run` raises.
    """
    pending = [member for member in members if member.plan.requests]
    _check_keys(pending)
    if max_cost is not None:
        for member in pending:
            route, price = member.description.route, member.plan.price
            check_cost_limit(member.plan.model, route, price, max_cost)
    start, reports = time.monotonic(), []
    for number, member in enumerate(pending, 1):
        elapsed = time.monotonic() - start
        remaining_cost = None if max_cost is None else max_cost - _spent_by_others(members, member)
        if remaining_cost is not None and remaining_cost <= 0:
            raise NumbenchError(_cost_limit_message(member, max_cost))
        try:
            with show_progress(f"{number} of {len(pending)}: {_title(member)}") as on_progress:
                report = run(
                    member.spec,
                    concurrency=concurrency,
                    retry_errors=retry_errors,
                    timeout=timeout,
                    time_limit=None if time_limit is None else max(time_limit - elapsed, 0.001),
                    max_cost=remaining_cost,
                    on_progress=on_progress,
                    judge=judge,
                )
        except CostLimitReached as error:
            message = _cost_limit_message(member, max_cost, error)
            raise CostLimitReached(error.report, message, error.cost_unknown) from None
        on_done(report)
        reports.append(report)
    return tuple(reports)


def _title(member: SuiteRun) -> str:
    return run_title(member.plan.model, member.plan.level, member.plan.dataset)


def _check_keys(members: Sequence[SuiteRun]) -> None:
    missing = {
        " or ".join(member.description.key_variables): None
        for member in members
        if member.spec.base_url is None and not member.description.key_is_set
    }
    if missing:
        raise BadInput(
            f"the suite needs more API keys: set {', '.join(missing)} in the environment "
            "(--dry-run shows the key status of each model)"
        )


def _spent_by_others(members: Sequence[SuiteRun], excluded: SuiteRun) -> float:
    """Return the US dollars that the run folders of all other members have cost."""
    dataset = open_dataset(excluded.spec.dataset)
    task_of = {item.id: task for task, items in dataset.by_task.items() for item in items}
    return sum(
        cost
        for member in members
        if member is not excluded
        for _, cost in recorded_costs(iter_responses(member.plan.path), task_of, member.plan.price)
    )


def _cost_limit_message(
    member: SuiteRun, max_cost: float | None, error: CostLimitReached | None = None
) -> str:
    prefix = f"the suite stopped at {member.plan.model} {member.plan.level}"
    if error is not None and error.cost_unknown:
        return f"{prefix}: {error}"
    return (
        f"{prefix} before exceeding --max-cost {max_cost:g}; run the same command with a larger "
        "--max-cost to continue"
    )
