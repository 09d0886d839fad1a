"""What runs would send and cost, computed before anything is sent. Needs no API key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from numbench.core.texts import Sentences
from numbench.horizon import Limits
from numbench.horizon.items import AskedItems
from numbench.horizon.sizes import answer_tokens, prompt_tokens
from numbench.journal.conversations import sum_if_known
from numbench.journal.served_models import ServedModels
from numbench.models import missing_key
from numbench.runner.budget import RunCosts
from numbench.runner.estimates import (
    TaskPlan,
    estimated_costs,
    highest_costs,
    plan_task,
    published_tokens,
)
from numbench.runner.prepare import prepare
from numbench.runner.prepared_run import PreparedRun, server_of
from numbench.runner.recorded_requests import parameters_of
from numbench.runner.run_state import RunState, open_requests, read_state
from numbench.runner.spec import HorizonSpec, RunSpec
from numbench.tasks import TASKS

_text = Sentences(__file__)

_ASSUMED_HORIZON = 100
"""The h50 for which a measurement is estimated."""

_TYPICAL_ITEMS = 110
"""Of a task, at the default precision: the mean of simulated measurements with a slope of 3."""


class Plan(NamedTuple):
    """What a run would do.

    items_in_jobs: number of requests that active batch jobs contain already. costs: of the run
    folder so far. notes: what else the estimates rest on.
    """

    prepared: PreparedRun
    tasks: tuple[TaskPlan, ...]
    items_in_jobs: int
    costs: RunCosts
    notes: tuple[str, ...] = ()

    @property
    def spec(self) -> RunSpec:
        """The run as the user specifies it."""
        return self.prepared.spec

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.prepared.folder

    @property
    def request(self) -> Mapping[str, object] | None:
        """The body of the first request without its messages, None if it is not known."""
        bodies = (parameters_of(each.body) for each in self.prepared.requests.values())
        return next(bodies, None)

    @property
    def title(self) -> str:
        """Model and reasoning level."""
        return f"{self.spec.model} {self.prepared.description.level}"

    @property
    def has_cost(self) -> bool:
        """Whether requests may cost money; those to one's own server are assumed to be free."""
        is_own_server = self.spec.base_url is not None and self.prepared.price is None
        return self.prepared.description.route is not None and not is_own_server

    @property
    def is_open(self) -> bool:
        """Whether the run has requests to send or to collect."""
        return self.requests > 0 or self.items_in_jobs > 0

    @property
    def total(self) -> TaskPlan:
        """The sum of all tasks; None where that of a task with requests is unknown."""
        return TaskPlan(
            "all",
            sum(row.requests for row in self.tasks),
            sum(row.input_tokens for row in self.tasks),
            sum_if_known(row.generated_tokens for row in self.tasks if row.requests),
            sum_if_known(row.cost for row in self.tasks if row.requests),
        )

    @property
    def requests(self) -> int:
        """Number of requests to send, without retries."""
        return self.total.requests

    @property
    def input_cost(self) -> float:
        """Expected US dollars for the input alone, 0 if the price is unknown."""
        return self.prepared.expected_cost(self.total.input_tokens, 0) or 0.0

    @property
    def cost(self) -> float | None:
        """Expected US dollars for all tasks with requests, None if unknown for one."""
        return self.total.cost

    @property
    def highest_cost(self) -> float | None:
        """The most US dollars that the requests can cost, without repeated ones, if known."""
        highest = highest_costs(self.prepared)
        rows = [row for row in self.tasks if row.requests]
        is_bounded = not self.spec.tools and not isinstance(self.spec, HorizonSpec)
        if not is_bounded or any(row.task not in highest for row in rows):
            return None
        return sum(row.requests * highest[row.task] for row in rows)


def plan(spec: RunSpec, is_dry: bool = False) -> Plan:
    """Return what `run` would do now. Raises BadInput for the options for which `run` would.

    is_dry: if the folder holds another run, plan as for a new folder, and note it.
    """
    prepared = prepare(spec, is_dry)
    if prepared.refusal:
        stored = RunState(ServedModels(prepared.info), RunCosts(*estimated_costs(prepared)))
    else:
        stored = read_state(prepared)
    published = published_tokens(spec.model, prepared.description.level)
    if isinstance(spec, HorizonSpec):
        answered = sum(kind is None for kind in stored.outcomes.values())
        tasks, notes = _plan_measurement(prepared, spec, published, answered)
    else:
        # The paper's prompts allow no working; with it, or a tool, answers have other lengths.
        averages = {} if prepared.info.prompt.working or spec.tools else published
        notes = [_text("published")]
        tasks = []
        for task, requests in prepared.requests_by_task.items():
            remaining = open_requests(prepared, requests, stored.outcomes, spec.retry)
            remaining = [each for each in remaining if each.id not in stored.in_progress]
            tasks.append(plan_task(prepared, task, remaining, averages))
    if prepared.refusal:
        notes = [_text("other_run", reason=prepared.refusal), *notes]
    in_jobs = len(stored.in_progress)
    return Plan(prepared, tuple(tasks), in_jobs, stored.costs, tuple(notes))


def _plan_measurement(
    prepared: PreparedRun, spec: HorizonSpec, published: Mapping[str, float], answered: int
) -> tuple[list[TaskPlan], list[str]]:
    """Return what each task takes if its h50 is 100, and on what that is based.

    Most questions are of sizes around h50.
    """
    reasoning = sum(published.values()) / len(published) if published else 0.0
    items = min(spec.max_items, round(_TYPICAL_ITEMS * (Limits().precision / spec.precision) ** 2))
    requests = items * spec.samples
    assert isinstance(prepared.dataset, AskedItems)
    plans = []
    for name, sizes in prepared.sizes.items():
        task, size = TASKS[name], [min(max(_ASSUMED_HORIZON, sizes[0]), sizes[-1])]
        prefix = prepared.prefix_characters(name)
        (prompt,) = prompt_tokens(task, size, prepared.dataset.items, prefix)
        (answer,) = answer_tokens(task, size)
        tokens = requests * prompt, requests * (answer + reasoning)
        plans.append(TaskPlan(name, requests, *tokens, prepared.expected_cost(*tokens)))
    notes = [
        _text("horizon", size=_ASSUMED_HORIZON),
        _text("items", items=spec.max_items),
        _text("lengths"),
    ]
    if not published:
        notes.append(_text("no_reasoning"))
    notes += size_notes({name: sizes[-1] for name, sizes in prepared.sizes.items()})
    if answered:
        notes.append(_text("answered", count=answered))
    return plans, notes


def size_notes(largest: Mapping[str, int]) -> list[str]:
    """Return which sizes are not asked. largest: the one that is asked, by task."""
    names: dict[int, list[str]] = {}
    for name, size in largest.items():
        task = TASKS[name]
        if task.sizes and size < task.sizes.maximum:
            names.setdefault(size, []).append(task.display)
    return [
        _text("not_asked", size=size, tasks=", ".join(of_size))
        for size, of_size in sorted(names.items())
    ]


def missing_keys(plans: Sequence[Plan]) -> list[str]:
    """Return the environment variables that runs need and that are not set."""
    keys = (missing_key(plan.prepared.description, server_of(plan.spec)) for plan in plans)
    return [key for key in dict.fromkeys(keys) if key]
