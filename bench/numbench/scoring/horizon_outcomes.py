"""The outcomes of a horizon measurement, as its run folder has them, and their horizons."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from numbench.errors import BadInput
from numbench.horizon import Limits
from numbench.horizon.estimate import SizeOutcome, TaskHorizon, estimate_horizon
from numbench.horizon.items import ItemSequences, parse_id
from numbench.horizon.measurement import Outcome, TaskMeasurement, outcome_of
from numbench.horizon.sizes import task_sizes
from numbench.journal.run_folder import ROUNDS, Run, read_rounds, read_run
from numbench.records import HorizonInfo, request_id
from numbench.scoring.exact_protocol import is_correct
from numbench.tasks import TASKS


class TaskOutcomes(NamedTuple):
    """What is known of the items of a task, by id, in the order of their rounds.

    rounds: the items of each, also those without a result.
    """

    rounds: list[tuple[str, ...]]
    outcomes: dict[str, Outcome]

    @property
    def answered(self) -> list[SizeOutcome]:
        """The outcomes of the items that were answered."""
        return [each for each in self.outcomes.values() if isinstance(each, SizeOutcome)]


def read_outcomes(run_folder: Path) -> dict[str, list[SizeOutcome]]:
    """Return the answered items of each task of a measurement, in the order of their rounds.

    Raises BadInput if the folder holds no measurement.
    """
    return {task: of.answered for task, of in read_task_outcomes(read_run(run_folder)).items()}


def read_horizons(run_folder: Path) -> dict[str, TaskHorizon]:
    """Return the horizon of each task of a measurement, also of one that is not complete."""
    run = read_run(run_folder)
    info = measurement_info(run)
    items = ItemSequences(info.question_seed)
    return {task: _horizon(task, of, info, items) for task, of in read_task_outcomes(run).items()}


def _horizon(
    name: str, outcomes: TaskOutcomes, info: HorizonInfo, items: ItemSequences
) -> TaskHorizon:
    """Return the horizon of a task; why it is complete follows from all of its rounds."""
    task, largest = TASKS[name], info.largest[name]
    asked = {parse_id(item_id).size for each in outcomes.rounds for item_id in each}
    sizes = sorted({*task_sizes(task, largest), *asked})
    measurement = TaskMeasurement(task, sizes, items, Limits(info.precision, info.max_items))
    for item_id, outcome in outcomes.outcomes.items():
        measurement.record(item_id, outcome)
    for each in outcomes.rounds:
        measurement.add_round(each)
    # It is complete also if there is no further round.
    measurement.next_round()
    largest = measurement.design.largest or largest
    return estimate_horizon(task, outcomes.answered, largest, measurement.stop_reason)


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
    outcomes = {task: TaskOutcomes([], {}) for task in run.info.tasks}
    for round_ in read_rounds(run.path):
        of_task = outcomes.setdefault(round_.task, TaskOutcomes([], {}))
        of_task.rounds.append(round_.items)
        for item_id in round_.items:
            ids = [request_id(item_id, sample) for sample in range(run.info.samples)]
            if all(each in results for each in ids):
                try:
                    item, completions = items.by_id(item_id), [results[each] for each in ids]
                    of_task.outcomes[item_id] = outcome_of(item, completions, is_correct)
                except ValueError as error:
                    raise BadInput(f"{run.path / ROUNDS}: {error}") from error
    return outcomes
