"""The outcomes of a horizon measurement, as its run folder has them, and their horizons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from numbench.errors import BadInput
from numbench.horizon.adaptive import MAX_REJECTIONS
from numbench.horizon.estimate import SizeOutcome, TaskHorizon, estimate_horizon
from numbench.horizon.items import ItemSequences, parse_id
from numbench.horizon.measurement import Rejected, outcome_of
from numbench.horizon.psychometric import LOG2_HORIZONS
from numbench.horizon.sizes import task_sizes
from numbench.horizon.stopping import CERTAINTY, Limits
from numbench.journal import ROUNDS, Run, read_rounds, read_run
from numbench.records import Completion, HorizonInfo, request_id
from numbench.scoring.exact_protocol import is_correct
from numbench.tasks import TASKS


class TaskOutcomes(NamedTuple):
    """What is known of the items of a task.

    answered: in the order of their rounds. rejected: sizes of the items that can never be
    answered.
    """

    answered: list[SizeOutcome]
    rejected: list[int]


def read_outcomes(run_folder: Path) -> dict[str, list[SizeOutcome]]:
    """Return the answered items of each task of a measurement, in the order of their rounds.

    Raises BadInput if the folder holds no measurement.
    """
    return {task: of.answered for task, of in read_task_outcomes(read_run(run_folder)).items()}


def read_horizons(run_folder: Path) -> dict[str, TaskHorizon]:
    """Return the horizon of each task of a measurement, also of one that is not complete."""
    run = read_run(run_folder)
    info = measurement_info(run)
    return {task: _horizon(task, of, info) for task, of in read_task_outcomes(run).items()}


def _horizon(name: str, outcomes: TaskOutcomes, info: HorizonInfo) -> TaskHorizon:
    """Return the horizon of a task. It may be complete because larger sizes are rejected."""
    task, limits = TASKS[name], Limits(info.precision, info.max_items)
    answered, rejected = outcomes
    horizon = estimate_horizon(task, answered, limits, info.largest[name], len(rejected))
    largest_answered = max((outcome.size for outcome in answered), default=0)
    beyond = [size for size in rejected if size > largest_answered]
    if horizon.stop is not None or len(beyond) < MAX_REJECTIONS:
        return horizon
    available = [size for size in task_sizes(task) if size < min(beyond)]
    above = np.log2(max(available, default=1)) < LOG2_HORIZONS
    is_beyond = not available or float(above @ horizon.log2_h50_weights) >= CERTAINTY
    return replace(horizon, stop="exhausted") if is_beyond else horizon


def measurement_info(run: Run) -> HorizonInfo:
    """Return how a run measures horizons. Raises BadInput if it does not."""
    if run.info.horizon is None:
        raise BadInput(f"{run.path} holds a run on a dataset, not a horizon measurement")
    return run.info.horizon


def read_task_outcomes(run: Run) -> dict[str, TaskOutcomes]:
    """Return the outcomes of each task. An item counts once all of its samples have a result."""
    items = ItemSequences(measurement_info(run).question_seed)
    results = {
        response.request_id: response
        for response in run.responses.values()
        if response.error is None or response.error.kind == "item"
    }
    outcomes = {task: TaskOutcomes([], []) for task in run.info.tasks}
    for round_ in read_rounds(run.path):
        answered, rejected = outcomes.setdefault(round_.task, TaskOutcomes([], []))
        for item_id in round_.items:
            completions = _final_results(item_id, run.info.samples, results)
            if completions is None:
                continue
            try:
                outcome = outcome_of(items.by_id(item_id), completions, is_correct)
            except ValueError as error:
                raise BadInput(f"{run.path / ROUNDS}: {error}") from error
            if isinstance(outcome, Rejected):
                rejected.append(parse_id(item_id).size)
            else:
                answered.append(outcome)
    return outcomes


def _final_results(
    item_id: str, samples: int, results: Mapping[str, Completion]
) -> list[Completion] | None:
    """Return the results of all samples of an item, None if one has none."""
    ids = [request_id(item_id, sample) for sample in range(samples)]
    found = [results[id_] for id_ in ids if id_ in results]
    return found if len(found) == samples else None
