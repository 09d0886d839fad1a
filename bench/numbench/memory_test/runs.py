"""The runs of a memory test: registered first, then the frozen items, then the fresh ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from numbench.dataset.fresh_items import generator_settings
from numbench.dataset.store import open_dataset
from numbench.errors import BadInput
from numbench.journal import run_lock
from numbench.memory_test.registration import (
    FRESH_ITEMS,
    FRESH_RUN,
    FROZEN_RUN,
    MemoryTest,
    Registration,
    check_same,
    read_registration,
    register,
    reveal,
)
from numbench.memory_test.rule import Rule, register_rule
from numbench.runner.planning import Plan, plan
from numbench.runner.progress import RunReport, ScoreCallback
from numbench.runner.resolution import describe, folder_name, select_tasks
from numbench.runner.spec import RunSpec
from numbench.runner.suite import run_suite


class MemoryTestPlan(NamedTuple):
    """What a memory test would do: its folder, its rule, and the runs on both datasets."""

    folder: Path
    rule: Rule
    members: tuple[Plan, ...]


def plan_memory_test(spec: RunSpec, margin: float) -> MemoryTestPlan:
    """Return what `run_memory_test` with the same arguments would do now. Writes nothing.

    Before the fresh items exist, their run is planned with the frozen ones, which are as long.
    Raises BadInput if `run_memory_test` would, except for a missing key.
    """
    return _plan(spec, _memory_test(spec, margin))


def run_memory_test(
    spec: RunSpec,
    margin: float,
    judge: ScoreCallback | None = None,
    on_registered: Callable[[Path, Registration], None] = lambda folder, registration: None,
    on_done: Callable[[RunReport], None] = lambda report: None,
    on_failed: Callable[[str], None] = lambda message: None,
) -> Registration:
    """Register the memory test, run the model on both datasets, reveal the seed.

    A further call with the same arguments resumes it. The seed is revealed once no request is open;
    until then it is None in the result. Limits of cost and time are for both runs together.
    on_registered: called before the first question. on_done, on_failed: as in `run_suite`.

    Raises what `run_suite` raises, and BadInput for a memory test that differs from the registered
    one, or that has a revealed seed and open requests.
    """
    test = _memory_test(spec, margin)
    if read_registration(test.folder) is None:
        # It refuses what is wrong before anything is written.
        _plan(spec, test)
    with run_lock(test.folder):
        registration = register(test)
        on_registered(test.folder, registration)
        run_suite(_plan(spec, test).members, judge, on_done, on_failed)
        # Such a plan has only the questions without an answer.
        unlimited = replace(spec, retry=(), max_cost=None, time_limit=None)
        if not any(each.is_open for each in _plan(unlimited, test).members):
            registration = reveal(test.folder, registration)
    return registration


def _plan(spec: RunSpec, test: MemoryTest) -> MemoryTestPlan:
    """Return the plan of a memory test. Raises BadInput if it cannot be continued."""
    folder, stored = test.folder, read_registration(test.folder)
    specs = (
        replace(spec, out=folder / FROZEN_RUN),
        replace(
            spec, out=folder / FRESH_RUN, dataset=folder / FRESH_ITEMS if stored else spec.dataset
        ),
    )
    members = tuple(map(plan, specs))
    if stored is None:
        return MemoryTestPlan(folder, register_rule(test.design, test.margin), members)
    check_same(test, stored)
    if stored.seed is not None and any(each.is_open for each in members):
        raise BadInput(
            f"{folder}: the seed of the fresh questions is revealed, so nothing more is asked; "
            "choose another --out for a new memory test"
        )
    return MemoryTestPlan(folder, stored.rule, members)


def _memory_test(spec: RunSpec, margin: float) -> MemoryTest:
    """Return the memory test of `spec`. Raises BadInput for arguments that it cannot have."""
    if not 0 < margin <= 100:
        raise BadInput(f"--margin {margin:g}: give a number of points above 0, at most 100")
    if spec.shard is not None:
        raise BadInput("a memory test has no shards: omit --shard")
    level = describe(spec).level
    frozen = open_dataset(spec.dataset)
    generator_settings(frozen)
    tasks = select_tasks(frozen, spec.tasks)
    name = f"{folder_name(spec, level, frozen.name)}_certificate"
    folder = spec.folder or Path("results") / name
    return MemoryTest(folder, spec.model, level, frozen, tasks, spec.limit, spec.samples, margin)
