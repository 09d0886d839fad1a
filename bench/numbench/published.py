"""The tables of the paper: the means that it published for thirteen configurations."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache

from numbench.core.installation import resource_folder
from numbench.errors import BadInput
from numbench.tasks import PAPER_TASKS

_FILES = {"score": "log_smape", "exact_match": "exact_match", "generated_tokens": "tokens"}


@cache
def published_means() -> Mapping[tuple[str, str], dict[str, dict[str, float]]]:
    """Return model and level → measure → task → the published mean."""
    displays = {task.display: name for name, task in PAPER_TASKS.items()} | {"Sort": "sorting"}
    known: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
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


@cache
def published_models() -> tuple[str, ...]:
    """Return the display names of the paper's models, in its order."""
    return tuple(dict.fromkeys(model for model, _ in published_means()))
