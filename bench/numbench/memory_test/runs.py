"""The runs of a memory test: registered first, then the frozen items, then the fresh ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from numbench._version import __version__
from numbench.core import jsonl
from numbench.dataset.fresh_items import generator_settings
from numbench.dataset.settings import GENERATOR_VERSION
from numbench.dataset.store import Dataset, open_dataset
from numbench.errors import BadInput
from numbench.journal.run_folder import run_lock
from numbench.memory_test.registration import (
    CERTIFICATE,
    FRESH_ITEMS,
    FRESH_RUN,
    FROZEN_RUN,
    SECRET,
    Registration,
    check_same,
    read_registration,
    register,
    reveal,
)
from numbench.memory_test.rule import PairedDesign, register_rule, shared_weights
from numbench.runner.planning import Plan, plan
from numbench.runner.prepare import describe, folder_name, select_tasks
from numbench.runner.progress import RunReport, ScoreCallback
from numbench.runner.retrying import DEFAULT_POLICY, RetryPolicy
from numbench.runner.spec import MemoryTestSpec
from numbench.runner.suite import run_suite


class MemoryTestPlan(NamedTuple):
    """What a memory test would do: its folder, what is registered, and the runs on both datasets.

    registration: without a secret before the first call.
    """

    spec: MemoryTestSpec
    folder: Path
    frozen: Dataset
    registration: Registration
    plans: tuple[Plan, Plan]


def plan_memory_test(spec: MemoryTestSpec) -> MemoryTestPlan:
    """Return what `run_both` would do now. Writes nothing.

    Before the fresh items exist, their run is planned with the frozen ones, which are as long.
    Raises BadInput if `run_both` would, except for a missing key.
    """
    level, frozen = describe(spec).level, open_dataset(spec.dataset)
    generator_settings(frozen)
    tasks = select_tasks(frozen, spec.tasks)
    name = f"{folder_name(spec, level, frozen.name)}_memory-test"
    folder = spec.folder or Path("results") / name
    items = [frozen.by_task[task][: spec.limit] for task in tasks]
    weights = shared_weights([{item.operands for item in of_task} for of_task in items])
    draft = Registration(
        model=spec.model,
        reasoning=level,
        dataset=frozen.ref(folder),
        tasks=tasks,
        pairs=len(items[0]),
        samples=spec.samples,
        rule=register_rule(PairedDesign(len(items[0]), weights), spec.margin),
        versions={"numbench": __version__, "generator": GENERATOR_VERSION},
    )
    jsonl.check_output_folder(folder, CERTIFICATE, SECRET, FRESH_ITEMS)
    stored = read_registration(folder)
    if stored is not None:
        check_same(folder, draft, stored)
    plans = (
        plan(replace(spec, out=folder / FROZEN_RUN)),
        _plan_fresh(spec, folder, folder / FRESH_ITEMS if stored else spec.dataset),
    )
    _check_seed(folder, stored, plans)
    return MemoryTestPlan(spec, folder, frozen, stored or draft, plans)


def _check_seed(folder: Path, stored: Registration | None, plans: Iterable[Plan]) -> None:
    """Raise BadInput if questions would be asked that the model may know since a test's end."""
    if stored and stored.seed is not None and any(each.is_open for each in plans):
        raise BadInput(
            f"{folder}: the seed of the fresh questions is revealed, so nothing more is asked; "
            "choose another --out for a new memory test"
        )


def _plan_fresh(spec: MemoryTestSpec, folder: Path, dataset: str | Path) -> Plan:
    return plan(replace(spec, out=folder / FRESH_RUN, dataset=dataset))


def run_both(
    planned: MemoryTestPlan,
    judge: ScoreCallback | None = None,
    on_registered: Callable[[Path, Registration], None] = lambda folder, registration: None,
    on_done: Callable[[RunReport], None] = lambda report: None,
    on_failed: Callable[[str], None] = lambda message: None,
    policy: RetryPolicy = DEFAULT_POLICY,
) -> tuple[RunReport, ...]:
    """Register the memory test, run the model on both datasets, reveal the seed.

    A further call with the same arguments resumes it. The seed is revealed once no request is open.
    Limits of cost and time are for both runs together.
    on_registered: called before the first question. on_done, on_failed: as in `run_suite`.

    Raises what `run_suite` raises, and BadInput for a memory test that differs from the registered
    one.
    """
    folder, (frozen, fresh) = planned.folder, planned.plans
    with run_lock(folder):
        registration = register(folder, planned.frozen, planned.registration)
        # Another process may have registered it since the plan.
        check_same(folder, planned.registration, registration)
        on_registered(folder, registration)
        if fresh.spec.dataset != folder / FRESH_ITEMS:
            fresh = _plan_fresh(planned.spec, folder, folder / FRESH_ITEMS)
        _check_seed(folder, registration, (frozen, fresh))
        reports = run_suite((frozen, fresh), judge, on_done, on_failed, policy)
        # Temporary failures are asked again by the next call; all other requests are settled.
        if all(report.errors == report.permanent_errors for report in reports):
            reveal(folder, registration)
    return reports
