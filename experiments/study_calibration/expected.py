"""Expected scores of the study's configurations on other items, and their mean offset per task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.study_calibration.responses import Config, ItemScores, StudyScores
from numbench.calibration.cross_validation import CrossValidation, cross_validate
from numbench.calibration.expected_score import ExpectedScore, expected_scores
from numbench.records import Item
from numbench.reporting.table_model import EXACT_MATCH, LOG_SMAPE
from numbench.stats.bootstrap import percentile_bounds
from numbench.stats.intervals import Interval
from numbench.tasks import PAPER_TASKS, TASKS

Items = Mapping[str, Sequence[Item]]
"""Task → items of a dataset."""


class Cell(NamedTuple):
    """A score of a configuration on the published items, and what it is expected to be elsewhere.

    table: the score table that it belongs to. observed: percent, by exact answers. expected: by
    the name of the dataset.
    """

    table: str
    task: str
    config: Config
    answers: int
    observed: float
    expected: Mapping[str, ExpectedScore]
    check: CrossValidation


class MeanOffset(NamedTuple):
    """The mean offset over the configurations with one; bounds at 95 %. lowest, highest: of them.

    None where fewer than two configurations have enough errors.
    """

    table: str
    task: str
    dataset: str
    offset: float | None
    interval: Interval | None
    lowest: float | None
    highest: float | None
    configs: int


def compute_cells(scores: StudyScores, datasets: Mapping[str, Items]) -> list[Cell]:
    """Return every cell of the two score tables, task by task."""
    return [
        _cell(table, task, config, of_task[task], datasets)
        for table in (LOG_SMAPE.name, EXACT_MATCH.name)
        for task in PAPER_TASKS
        if table == LOG_SMAPE.name or TASKS[task].metric == "log_smape"
        for config, of_task in scores.items()
        if task in of_task
    ]


def _cell(
    table: str, task: str, config: Config, scored: ItemScores, datasets: Mapping[str, Items]
) -> Cell:
    is_exact = table == EXACT_MATCH.name or scored.log_smape is None
    values = scored.exact_match if is_exact else scored.log_smape
    assert values is not None
    expected = expected_scores(scored.items, values, [items[task] for items in datasets.values()])
    return Cell(
        table,
        task,
        config,
        len(values),
        100 * float(np.mean(values)),
        dict(zip(datasets, expected, strict=True)),
        cross_validate(scored.items, values),
    )


def mean_offsets(cells: Sequence[Cell]) -> list[MeanOffset]:
    """Return the mean offset of each table, task and dataset."""
    keys = dict.fromkeys((c.table, c.task, name) for c in cells for name in c.expected)
    return [
        _mean_offset(key, [c.expected[key[2]] for c in cells if (c.table, c.task) == key[:2]])
        for key in keys
    ]


def _mean_offset(key: tuple[str, str, str], of_configs: Sequence[ExpectedScore]) -> MeanOffset:
    known = [e for e in of_configs if e.offset is not None]
    if len(known) < 2:
        return MeanOffset(*key, None, None, None, None, len(known))
    offsets = [e.offset for e in known if e.offset is not None]
    draws = [e.resampled_offsets for e in known if e.resampled_offsets is not None]
    low, high = percentile_bounds(np.mean(draws, axis=0)[:, None])
    return MeanOffset(
        *key,
        float(np.mean(offsets)),
        Interval(float(low[0]), float(high[0])),
        min(offsets),
        max(offsets),
        len(known),
    )
