"""Suites: the paper's configurations as one plan, and run one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.dataset.store import open_dataset
from bench.errors import BadInput, NumbenchError
from bench.expected import published_configurations
from bench.journal import INFO, read_run
from bench.live import display, title
from bench.models import About, describe_model
from bench.plan import Plan, plan
from bench.runner import CostReached, RunReport, check_limit, run, spent
from bench.scoring import judge
from bench.selection import folder_name


class Member(NamedTuple):
    """One configuration of a suite: what it would ask, and whom."""

    plan: Plan
    about: About


def plan_suite(
    dataset: str | Path = "v1",
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
    out: Path | None = None,
    base_url: str | None = None,
    retry_errors: bool = False,
) -> tuple[Member, ...]:
    """The paper's 13 configurations, in its order. Runs lie in `out`, by default `results`.

    Needs no key and writes nothing. BadInput for wrong arguments.
    """
    name, folder = open_dataset(dataset).name, out or Path("results")
    return tuple(
        Member(
            plan(
                model,
                level,
                dataset,
                tasks,
                limit,
                folder / folder_name(model, level, name),
                base_url,
                retry_errors,
            ),
            describe_model(model, level, base_url),
        )
        for model, level in published_configurations()
    )


def run_suite(
    members: Sequence[Member],
    dataset: str | Path = "v1",
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
    base_url: str | None = None,
    retry_errors: bool = False,
    concurrency: int = 16,
    max_cost: float | None = None,
    on_done: Callable[[RunReport], None] = lambda done: None,
) -> tuple[RunReport, ...]:
    """Run what is still open of `members`, a plan with the same arguments, one after the other.

    `max_cost`, in US dollars, holds for all their run folders together. BadInput before anything
    is asked where a key is missing or a limit could not be kept; else what `run` raises.
    """
    pending = [member for member in members if member.plan.requests]
    _check_keys(pending, base_url)
    for member in pending if max_cost is not None else ():
        check_limit(member.plan.model, member.about.route, member.plan.price, max_cost or 0.0)
    done = []
    for place, member in enumerate(pending, 1):
        left = None if max_cost is None else max_cost - _spent(members, member, dataset)
        if left is not None and left <= 0:
            raise NumbenchError(_reached(member, max_cost))
        try:
            with display(f"{place} of {len(pending)}: {_title(member)}") as watch:
                report = run(
                    member.plan.model,
                    member.plan.level,
                    dataset,
                    tasks,
                    limit,
                    member.plan.path,
                    concurrency,
                    base_url,
                    retry_errors,
                    on_progress=watch,
                    max_cost=left,
                    judge=judge,
                )
        except CostReached as reached:
            raise CostReached(reached.report, _reached(member, max_cost, reached)) from None
        on_done(report)
        done.append(report)
    return tuple(done)


def _title(member: Member) -> str:
    return title(member.plan.model, member.plan.level, member.plan.dataset)


def _check_keys(members: Sequence[Member], base_url: str | None) -> None:
    if base_url is not None:
        return
    missing = {" or ".join(m.about.keys): None for m in members if not m.about.key_is_set}
    if missing:
        raise BadInput(
            f"the suite needs more keys: set {', '.join(missing)} in the environment "
            "(--dry-run shows who needs which)"
        )


def _spent(members: Sequence[Member], but: Member, dataset: str | Path) -> float:
    """US dollars that the run folders of all other members have cost."""
    source = open_dataset(dataset)
    return sum(
        amount
        for member in members
        if member is not but and (member.plan.path / INFO).is_file()
        for _, amount in spent(read_run(member.plan.path).responses, source, member.plan.price)
    )


def _reached(member: Member, max_cost: float | None, reached: CostReached | None = None) -> str:
    where = f"the suite stopped at {member.plan.model} {member.plan.level}"
    if reached is not None and reached.uncounted:
        return f"{where}: {reached}"
    return (
        f"{where} before --max-cost {max_cost:g} is exceeded; "
        "the same command with a larger --max-cost goes on"
    )
