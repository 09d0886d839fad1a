"""Horizon measurements as their run folders have them, and the horizons of their tasks."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from numbench.errors import BadInput, bad_input_at
from numbench.horizon import Limits
from numbench.horizon.estimate import TaskHorizon, estimate_horizon
from numbench.horizon.items import ItemSequences, parse_id
from numbench.horizon.measurement import TaskMeasurement, item_outcome
from numbench.horizon.sizes import task_sizes
from numbench.journal.run_folder import ROUNDS, read_rounds, read_run
from numbench.scoring.exact_protocol import is_correct
from numbench.tasks import TASKS


def read_measurements(run_folder: Path) -> dict[str, TaskMeasurement]:
    """Return the measurement of each task with all of its rounds.

    Raises BadInput if the folder holds no measurement, or a round of unknown items.
    """
    run = read_run(run_folder)
    if (info := run.info.horizon) is None:
        raise BadInput(f"{run_folder} holds a run on a dataset, not a horizon measurement")
    items, limits = ItemSequences(info.question_seed), Limits(info.precision, info.max_items)
    results = {id_: each for id_, each in run.responses.items() if each.is_final}
    rounds: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for round_ in read_rounds(run_folder):
        rounds[round_.task].append(round_.items)
    measurements = {}
    with bad_input_at(run_folder / ROUNDS, ValueError):
        for task in run.info.tasks:
            asked = {parse_id(item_id).size for ids in rounds[task] for item_id in ids}
            sizes = sorted({*task_sizes(TASKS[task], info.largest[task]), *asked})
            measurement = TaskMeasurement(TASKS[task], sizes, items, limits)
            for ids in rounds[task]:
                for item_id in ids:
                    item = items.by_id(item_id)
                    outcome = item_outcome(item, run.info.samples, results, is_correct)
                    if outcome is not None:
                        measurement.record(item_id, outcome)
                measurement.add_round(ids)
            # It is complete also if there is no further round.
            measurement.next_round()
            measurements[task] = measurement
    return measurements


def read_horizons(run_folder: Path) -> dict[str, TaskHorizon]:
    """Return the horizon of each task of a measurement, also of one that is not complete."""
    horizons = {}
    for task, each in read_measurements(run_folder).items():
        largest = each.design.largest or each.design.sizes[-1]
        horizons[task] = estimate_horizon(TASKS[task], each.answered, largest, each.stop_reason)
    return horizons
