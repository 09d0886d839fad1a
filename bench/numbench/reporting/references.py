"""The published configurations on the dataset `paper`: their scores by item, and cells without."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING

from numbench.dataset.store import RELEASED_DATASETS, Dataset
from numbench.errors import BadInput
from numbench.reporting.configurations import Configuration, Measure
from numbench.reporting.values import RunValues, TaskValues, task_values
from numbench.resources import resource_folder
from numbench.tasks import PAPER_TASKS

if TYPE_CHECKING:
    import pyarrow as pa

DATASET = "paper"
"""The dataset whose questions the references answer."""

_FILES: dict[Measure, str] = {
    "score": "log_smape",
    "exact_match": "exact_match",
    "generated_tokens": "tokens",
}
_COLUMNS = ("exact_match", "log_smape", "generated_tokens", "reasoning_tokens", "cost")


def has_references(dataset_sha256: str) -> bool:
    """Return whether there are references on the questions of a dataset."""
    return dataset_sha256 == RELEASED_DATASETS[DATASET]


@cache
def published_models() -> tuple[str, ...]:
    """Return the display names of the paper's models, in its order."""
    return tuple(dict.fromkeys(model for model, _ in published_means()))


def published_scores(model: str, level: str) -> Mapping[str, float]:
    """Return task → the published mean of a configuration; empty if it is not in the paper."""
    return published_means().get((model, level), {}).get("score", {})


def read_references(
    dataset: Dataset, label: str, tasks: Collection[str], without: Collection[tuple[str, str]] = ()
) -> list[Configuration]:
    """Return the references with the given tasks, except for those of pairs of model and level.

    dataset: `paper`, with its questions, and its label.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    path = resource_folder("datasets") / DATASET / "scores.parquet"
    if not path.is_file():
        raise BadInput(f"{path}: the scores of the references are missing; reinstall the package")
    table = pq.read_table(path, columns=["display", "level", "task", "item_id", *_COLUMNS])
    # A failed request has no score, and does not count.
    table = table.filter(pc.is_valid(table["exact_match"]))
    wanted = [task for task in PAPER_TASKS if task in tasks]
    references = []
    for (model, level), published in published_means().items():
        if (model, level) in without:
            continue
        own = table.filter(
            pc.and_(pc.equal(table["display"], model), pc.equal(table["level"], level))
        )
        rows = {task: own.filter(pc.equal(own["task"], task)) for task in wanted}
        values = {task: _values(dataset, task, of) for task, of in rows.items() if of.num_rows}
        cells = {
            measure: {task: known[task] for task in wanted if task in known and task not in values}
            for measure, known in published.items()
        }
        if values or any(cells.values()):
            run = RunValues(f"{model} ({level})", dataset.manifest.sha256, values)
            references.append(
                Configuration(model, level, "", "reference", label, run, published=cells)
            )
    return references


def _values(dataset: Dataset, task: str, rows: pa.Table) -> TaskValues:
    columns = rows.to_pydict()
    matches = [100.0 * match for match in columns["exact_match"]]
    is_number = PAPER_TASKS[task].metric == "log_smape"
    columns["score"] = [
        match if not is_number or score is None else 100 * score
        for score, match in zip(columns["log_smape"], matches, strict=True)
    ]
    columns["exact_match"] = matches
    return task_values(dataset, task, columns["item_id"], columns)


@cache
def published_means() -> Mapping[tuple[str, str], dict[Measure, dict[str, float]]]:
    """Return model and level → measure → task → the published mean."""
    displays = {task.display: name for name, task in PAPER_TASKS.items()} | {"Sort": "sorting"}
    known: dict[tuple[str, str], dict[Measure, dict[str, float]]] = {}
    for measure, name in _FILES.items():
        path = resource_folder("published") / f"frontier_{name}.csv"
        if not path.is_file():
            raise BadInput(f"{path}: the published table is missing; reinstall the package")
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                cells = known.setdefault((row["Model"], row["Reasoning"]), {})
                cells[measure] = {
                    displays[header]: float(text)
                    for header, text in row.items()
                    if header in displays and text
                }
    matches = {task for task, kind in PAPER_TASKS.items() if kind.metric == "exact_match"}
    for cells in known.values():
        scores = cells["score"]
        cells["exact_match"] |= {task: scores[task] for task in matches if task in scores}
    return known
