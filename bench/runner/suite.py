"""Suites: the paper's configurations as one plan, and run one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench.dataset.store import open_dataset
from bench.errors import BadInput, NumbenchError
from bench.journal import read_lines
from bench.models import About
from bench.models.base import TIMEOUT
from bench.runner.expected import published_configurations
from bench.runner.live import display, title
from bench.runner.planning import Plan, plan
from bench.runner.running import CostReached, RunReport, check_limit, run, spent
from bench.runner.selection import folder_name
from bench.runner.spec import RunSpec
from bench.runner.tally import Judge


class Member(NamedTuple):
    """One configuration of a suite: what it would ask, and whom."""

    spec: RunSpec
    plan: Plan
    about: About


def plan_suite(common: RunSpec, retry_errors: bool = False) -> tuple[Member, ...]:
    """The paper's 13 configurations, in its order, each asked as `common` says.

    Run folders lie in its `out`, by default `results`. Needs no key and writes nothing.
    BadInput for wrong arguments.
    """
    name, folder = open_dataset(common.dataset).name, common.out or Path("results")
    members = []
    for model, level in published_configurations():
        out = folder / folder_name(model, level, name, common.few_shot)
        spec = replace(common, model=model, reasoning=level, out=out)
        members.append(Member(spec, plan(spec, retry_errors), spec.describe()))
    return tuple(members)


def run_suite(
    members: Sequence[Member],
    *,
    concurrency: int | None = None,
    retry_errors: bool = False,
    timeout: float = TIMEOUT,
    time_limit: float | None = None,
    max_cost: float | None = None,
    judge: Judge | None = None,
    on_done: Callable[[RunReport], None] = lambda done: None,
) -> tuple[RunReport, ...]:
    """Run what is still open of `members`, one after the other.

    `max_cost`, in US dollars, holds for all their run folders together, and `time_limit`, in
    seconds, for all their runs. BadInput before anything is asked where a key is missing or a
    limit could not be kept; else what `run` raises.
    """
    pending = [member for member in members if member.plan.requests]
    _check_keys(pending)
    for member in pending if max_cost is not None else ():
        check_limit(member.plan.model, member.about.route, member.plan.price, max_cost or 0.0)
    start, done = time.monotonic(), []
    for place, member in enumerate(pending, 1):
        left = None if max_cost is None else max_cost - _spent(members, member)
        if left is not None and left <= 0:
            raise NumbenchError(_reached(member, max_cost))
        spent_time = time.monotonic() - start
        try:
            with display(f"{place} of {len(pending)}: {_title(member)}") as watch:
                report = run(
                    member.spec,
                    concurrency=concurrency,
                    retry_errors=retry_errors,
                    timeout=timeout,
                    time_limit=None if time_limit is None else max(time_limit - spent_time, 0.001),
                    max_cost=left,
                    on_progress=watch,
                    judge=judge,
                )
        except CostReached as reached:
            raise CostReached(reached.report, _reached(member, max_cost, reached)) from None
        on_done(report)
        done.append(report)
    return tuple(done)


def _title(member: Member) -> str:
    return title(member.plan.model, member.plan.level, member.plan.dataset)


def _check_keys(members: Sequence[Member]) -> None:
    missing = {
        " or ".join(member.about.keys): None
        for member in members
        if member.spec.base_url is None and not member.about.key_is_set
    }
    if missing:
        raise BadInput(
            f"the suite needs more keys: set {', '.join(missing)} in the environment "
            "(--dry-run shows who needs which)"
        )


def _spent(members: Sequence[Member], but: Member) -> float:
    """US dollars that the run folders of all other members have cost."""
    source = open_dataset(but.spec.dataset)
    task_of = {item.id: task for task, items in source.by_task.items() for item in items}
    return sum(
        amount
        for member in members
        if member is not but
        for _, amount in spent(read_lines(member.plan.path), task_of, member.plan.price)
    )


def _reached(member: Member, max_cost: float | None, reached: CostReached | None = None) -> str:
    where = f"the suite stopped at {member.plan.model} {member.plan.level}"
    if reached is not None and reached.uncounted:
        return f"{where}: {reached}"
    return (
        f"{where} before --max-cost {max_cost:g} is exceeded; "
        "the same command with a larger --max-cost goes on"
    )
