"""How hard fresh items are, next to the frozen ones: by arithmetic and by response models."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from experiments.study_calibration.responses import Config, StudyScores
from numbench.calibration.response_model import ResponseModel, fit_response_model
from numbench.certificate.outcome import PairedTask, paired_tasks
from numbench.dataset.fresh_items import fresh_items
from numbench.dataset.store import Dataset
from numbench.models.base import Message, RequestSettings
from numbench.models.baseline import FLOAT_FORMATS, BaselineModel
from numbench.models.providers import ModelTarget
from numbench.records import Item
from numbench.scoring import is_correct
from numbench.stats.design import Stratum

SEEDS = tuple(range(1, 11))

Items = Mapping[str, Sequence[Item]]
"""Task → items."""

Values = Mapping[str, npt.NDArray[np.float64]]
"""Task → percentage of right answers, expected or observed, of each item."""


class SeedDifference(NamedTuple):
    """What answers to the frozen items and to one fresh set differ by; the last row is the mean."""

    responder: str
    seed: int
    rows: tuple[PairedTask, ...]


def fresh_sets(frozen: Dataset) -> dict[int, Items]:
    """Return the fresh items of each seed."""
    return {seed: fresh_items(frozen, frozen.tasks, _full_seed(seed)) for seed in SEEDS}


def fit_models(scores: StudyScores) -> dict[Config, dict[str, ResponseModel]]:
    """Return a response model per configuration and task."""
    return {
        config: {
            task: fit_response_model(of_task.items, of_task.exact_match)
            for task, of_task in by_task.items()
        }
        for config, by_task in scores.items()
    }


def expected_values(models: Mapping[str, ResponseModel], items: Items) -> Values:
    """Return the expected percentage of right answers to each item."""
    return {task: 100 * models[task].predict(of_task) for task, of_task in items.items()}


def calculated_values(type_name: str, items: Items) -> Values:
    """Return 100 for each item that arithmetic in a floating-point type answers right, else 0."""
    model = BaselineModel(ModelTarget(f"baseline/{type_name}", type_name))

    async def answer() -> Values:
        return {
            task: np.array([100.0 * await _is_right(model, item) for item in of_task])
            for task, of_task in items.items()
        }

    return asyncio.run(answer())


def differences(
    responder: str, frozen: Dataset, of_frozen: Values, of_fresh: Mapping[int, Values]
) -> Iterator[SeedDifference]:
    """Yield the differences between the frozen items and each fresh set."""
    strata = [
        Stratum(
            task,
            np.column_stack([of_frozen[task], *(values[task] for values in of_fresh.values())]),
            clusters=[item.operands for item in frozen.by_task[task]],
        )
        for task in frozen.tasks
    ]
    pairs = [(0, column) for column in range(1, len(of_fresh) + 1)]
    for seed, rows in zip(of_fresh, paired_tasks(strata, pairs), strict=True):
        yield SeedDifference(responder, seed, rows)


def all_differences(
    frozen: Dataset,
    fresh: Mapping[int, Items],
    models: Mapping[Config, Mapping[str, ResponseModel]],
) -> list[SeedDifference]:
    """Return the differences of the arithmetic baselines, then of the configurations."""
    result: list[SeedDifference] = []
    for name in FLOAT_FORMATS:
        known = {seed: calculated_values(name, items) for seed, items in fresh.items()}
        own = calculated_values(name, frozen.by_task)
        result += differences(f"{name} arithmetic", frozen, own, known)
    for config, by_task in models.items():
        expected = {seed: expected_values(by_task, items) for seed, items in fresh.items()}
        own = expected_values(by_task, frozen.by_task)
        result += differences(" · ".join(config), frozen, own, expected)
    return result


async def _is_right(model: BaselineModel, item: Item) -> bool:
    completion = await model.answer([Message("user", item.prompt)], RequestSettings())
    return bool(is_correct(item, completion))


def _full_seed(seed: int) -> int:
    """Return 256 bits, as many as the secret of a certificate has."""
    return int(hashlib.sha256(f"certificate study {seed}".encode()).hexdigest(), 16)
