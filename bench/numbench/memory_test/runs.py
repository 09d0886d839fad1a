"""The runs of a memory test: registered first, then the frozen items, then the fresh ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from numbench.dataset.fresh_items import generator_settings
from numbench.dataset.store import Dataset, open_dataset
from numbench.errors import BadInput
from numbench.journal import run_lock
from numbench.memory_test.registration import (
    FRESH_ITEMS,
    FRESH_RUN,
    FROZEN_RUN,
    CertificateRequest,
    Registration,
    check_same,
    paired_design,
    read_registration,
    register,
    reveal,
)
from numbench.memory_test.rule import Rule, register_rule
from numbench.models import ModelDescription
from numbench.runner.execution import RunReport
from numbench.runner.planning import Plan, plan
from numbench.runner.progress import ScoreCallback
from numbench.runner.resolution import describe, folder_name, select_tasks
from numbench.runner.spec import RunSpec
from numbench.runner.suite import run_suite


class MemoryTestPlan(NamedTuple):
    """What a memory test would do: its folder, its rule, and the runs on both datasets."""

    folder: Path
    rule: Rule
    members: tuple[Plan, ...]


class _MemoryTest(NamedTuple):
    """A memory test as the user specifies it, with what that refers to."""

    spec: RunSpec
    description: ModelDescription
    frozen: Dataset
    request: CertificateRequest
    folder: Path


def plan_memory_test(spec: RunSpec, margin: float) -> MemoryTestPlan:
    """Return what `run_memory_test` with the same arguments would do now. Writes nothing.

    Before the fresh items exist, their run is planned with the frozen ones, which are as long.
    Raises BadInput if `run_memory_test` would, except for a missing key.
    """
    return _plan(_open(spec, margin))


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
    memory_test = _open(spec, margin)
    if read_registration(memory_test.folder) is None:
        # It refuses what is wrong before anything is written.
        _plan(memory_test)
    with run_lock(memory_test.folder):
        registration = register(memory_test.folder, memory_test.request, memory_test.frozen)
        on_registered(memory_test.folder, registration)
        run_suite(_plan(memory_test).members, judge, on_done, on_failed)
        again = _plan(memory_test._replace(spec=_without_limits(spec)))
        if not any(each.is_open for each in again.members):
            registration = reveal(memory_test.folder, registration)
    return registration


def _without_limits(spec: RunSpec) -> RunSpec:
    """Return a specification whose plan has only the questions without an answer."""
    return replace(spec, retry=(), max_cost=None, time_limit=None)


def _plan(memory_test: _MemoryTest) -> MemoryTestPlan:
    """Return the plan of a memory test. Raises BadInput if it cannot be continued."""
    folder, request = memory_test.folder, memory_test.request
    stored = read_registration(folder)
    members = _members(memory_test)
    if stored is None:
        design = paired_design(memory_test.frozen, request.tasks, request.limit)
        return MemoryTestPlan(folder, register_rule(design, request.margin), members)
    check_same(folder, stored, request, memory_test.frozen)
    if stored.seed is not None and any(each.is_open for each in members):
        raise BadInput(
            f"{folder}: the seed of the fresh items is revealed, so nothing more is asked; choose "
            "another --out for a new memory test"
        )
    return MemoryTestPlan(folder, stored.rule, members)


def _open(spec: RunSpec, margin: float) -> _MemoryTest:
    """Return the memory test of `spec`. Raises BadInput for arguments that it cannot have."""
    if not 0 < margin <= 100 or math.isnan(margin):
        raise BadInput(f"--margin {margin:g}: give a number of points above 0, at most 100")
    if spec.shard is not None:
        raise BadInput("a memory test has no shards: omit --shard")
    description = describe(spec)
    frozen = open_dataset(spec.dataset)
    generator_settings(frozen)
    tasks = select_tasks(frozen, spec.tasks)
    name = f"{folder_name(spec, description.level, frozen.name)}_certificate"
    request = CertificateRequest(
        spec.model, description.level, tasks, spec.limit, spec.samples, margin
    )
    folder = spec.folder or Path("results") / name
    return _MemoryTest(spec, description, frozen, request, folder)


def _members(memory_test: _MemoryTest) -> tuple[Plan, ...]:
    """Return the runs on the frozen and the fresh items with their plans."""
    spec, folder = memory_test.spec, memory_test.folder
    fresh = folder / FRESH_ITEMS
    is_registered = read_registration(folder) is not None
    specs = (
        replace(spec, out=folder / FROZEN_RUN),
        replace(spec, out=folder / FRESH_RUN, dataset=fresh if is_registered else spec.dataset),
    )
    return tuple(map(plan, specs))
