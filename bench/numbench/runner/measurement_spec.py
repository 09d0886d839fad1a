"""What a horizon measurement asks for: precision, limits, and the sizes that a model can answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from numbench.errors import BadInput
from numbench.horizon.asked_items import DATASET_NAME, AskedItems
from numbench.horizon.items import GENERATOR_VERSION, ItemAddress, ItemSequences
from numbench.horizon.sizes import answer_tokens, prompt_tokens, task_sizes
from numbench.horizon.stopping import DESIGN_VERSION, Limits
from numbench.records import HorizonInfo
from numbench.runner.model_limits import TokenLimits
from numbench.tasks import SCALED_TASKS, TASKS, check_task_name

if TYPE_CHECKING:
    from numbench.horizon.measurement import TaskMeasurement

SMALLEST_MAX_SIZE = 8
"""With fewer sizes, there is hardly a curve."""

_PREVIEWED_SIZE = 4
"""The size of the question whose request is shown and recorded."""

Sizes = Mapping[str, tuple[int, ...]]
"""The sizes that may be asked, by task."""


class MeasurementSpec(NamedTuple):
    """How horizons are measured.

    precision: wanted posterior standard deviation of log₂ h50. max_items: per task. max_size: the
    largest size, None for that of each task. question_seed: of the items.
    """

    precision: float = Limits().precision
    max_items: int = Limits().max_items
    max_size: int | None = None
    question_seed: int = 1

    @property
    def limits(self) -> Limits:
        """When a task's measurement ends."""
        return Limits(self.precision, self.max_items)

    def info(self, sizes: Sizes) -> HorizonInfo:
        """Return the record for `run.json`."""
        return HorizonInfo(
            precision=self.precision,
            max_items=self.max_items,
            question_seed=self.question_seed,
            largest={task: permitted[-1] for task, permitted in sizes.items()},
            generator=GENERATOR_VERSION,
            design=DESIGN_VERSION,
        )


def check_measurement(spec: MeasurementSpec) -> None:
    """Raise BadInput if a number is out of range."""
    if not 0 < spec.precision < math.inf:
        raise BadInput(f"--precision {spec.precision:g}: give a number above 0, such as 0.15")
    if spec.max_items < 1:
        raise BadInput(f"--max-items {spec.max_items}: give 1 or more")
    if spec.max_size is not None and spec.max_size < SMALLEST_MAX_SIZE:
        raise BadInput(f"--max-size {spec.max_size}: give {SMALLEST_MAX_SIZE} or more")


def scaled_tasks(tasks: Sequence[str] | None) -> tuple[str, ...]:
    """Return the tasks of a measurement in registry order. Raises BadInput for one without sizes.

    None: all scaled tasks of this package.
    """
    if tasks is None:
        return tuple(SCALED_TASKS)
    for task in tasks:
        check_task_name(task)
        if TASKS[task].sizes is None:
            raise BadInput(f"task {task!r} has no sizes; use {', '.join(SCALED_TASKS)}")
    if not tasks:
        raise BadInput(f"no task given: use {', '.join(SCALED_TASKS)}")
    return tuple(task for task in TASKS if task in tasks)


def permitted_sizes(
    spec: MeasurementSpec, tasks: Sequence[str], items: ItemSequences, limits: TokenLimits
) -> Sizes:
    """Return the sizes of each task whose question and answer fit the limits of the model.

    Raises BadInput if the answers to a task do not fit at small sizes.
    """
    permitted = {}
    for name in tasks:
        task = TASKS[name]
        sizes = task_sizes(task, spec.max_size)
        answers, prompts = answer_tokens(task, sizes), prompt_tokens(task, sizes, items)
        fitting = tuple(
            size
            for size, answer, prompt in zip(sizes, answers, prompts, strict=True)
            if (limits.output is None or answer <= limits.output)
            and (limits.context is None or prompt + answer <= limits.context)
        )
        if not fitting or fitting[-1] < SMALLEST_MAX_SIZE:
            raise BadInput(
                f"the answers of {name} do not fit {limits.output:,} tokens "
                f"({limits.output_source}) even at size {SMALLEST_MAX_SIZE}: raise --max-tokens, "
                "or omit the task"
            )
        permitted[name] = fitting
    return permitted


def example_questions(sizes: Sizes, items: ItemSequences) -> AskedItems:
    """Return two questions of each task: the one whose request is recorded, and the longest."""
    ids = {
        task: [
            ItemAddress(task, size, 0).id
            for size in (min(permitted, key=lambda n: abs(n - _PREVIEWED_SIZE)), permitted[-1])
        ]
        for task, permitted in sizes.items()
    }
    return AskedItems(Path(DATASET_NAME), items, ids)


def open_measurements(
    spec: MeasurementSpec,
    sizes: Sizes,
    items: ItemSequences,
    prefix_characters: Callable[[str], int],
) -> dict[str, TaskMeasurement]:
    """Return the measurement of each task, before any answer.

    prefix_characters: of the messages before a question, by task.
    """
    # It imports NumPy, which runs on datasets do not need.
    from numbench.horizon.measurement import TaskMeasurement

    return {
        task: TaskMeasurement(TASKS[task], permitted, items, spec.limits, prefix_characters(task))
        for task, permitted in sizes.items()
    }
