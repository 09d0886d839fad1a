"""The published configurations on the dataset `paper`: their scores by item, and cells without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from numbench.core.installation import resource_folder
from numbench.dataset.store import RELEASED_DATASETS, Dataset
from numbench.errors import BadInput
from numbench.published import published_means
from numbench.reporting.values import Configuration, RunValues, TaskValues, task_values
from numbench.tasks import PAPER_TASKS

DATASET = "paper"
"""The dataset whose questions the references answer."""

_COLUMNS = ("exact_match", "log_smape", "generated_tokens", "cost")


def has_references(dataset_sha256: str) -> bool:
    """Return whether there are references on the questions of a dataset."""
    return dataset_sha256 == RELEASED_DATASETS[DATASET]


def read_references(
    dataset: Dataset, label: str, tasks: Collection[str], without: Collection[tuple[str, str]] = ()
) -> list[Configuration]:
    """Return the references with the given tasks, except for those of pairs of model and level.

    dataset: `paper`, with its questions, and its label.
    """
    import pyarrow.parquet as pq

    path = resource_folder("datasets") / DATASET / "scores.parquet"
    if not path.is_file():
        raise BadInput(f"{path}: the scores of the references are missing; reinstall the package")
    # `read_table` would import pandas.
    table = pq.ParquetFile(path).read(["display", "level", "task", "item_id", *_COLUMNS])
    columns = table.to_pydict()
    rows: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    names = zip(columns["display"], columns["level"], columns["task"], strict=True)
    for row, (name, match) in enumerate(zip(names, columns["exact_match"], strict=True)):
        # A failed request has no score, and does not count.
        if match is not None:
            rows[name].append(row)
    wanted = [task for task in PAPER_TASKS if task in tasks]
    references = []
    for (model, level), published in published_means().items():
        if (model, level) in without:
            continue
        own = {task: rows[model, level, task] for task in wanted}
        values = {task: _values(dataset, task, columns, own[task]) for task in wanted if own[task]}
        cells = {
            measure: {task: known[task] for task in wanted if task in known and task not in values}
            for measure, known in published.items()
        }
        if values or any(cells.values()):
            run = RunValues(dataset.manifest.sha256, values)
            one = Configuration(model, level, "", "reference", label, run, published=cells)
            references.append(one)
    return references


def _values(
    dataset: Dataset, task: str, columns: Mapping[str, Sequence[Any]], rows: Sequence[int]
) -> TaskValues:
    own = {name: [columns[name][row] for row in rows] for name in ("item_id", *_COLUMNS)}
    own["exact_match"] = [100.0 * match for match in own["exact_match"]]
    is_number = PAPER_TASKS[task].metric == "log_smape"
    own["score"] = [
        match if not is_number or score is None else 100 * score
        for score, match in zip(own["log_smape"], own["exact_match"], strict=True)
    ]
    return task_values(dataset, task, own["item_id"], own)
