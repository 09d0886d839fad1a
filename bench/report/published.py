"""The paper's own tables of frontier models, read from the files that came with this package."""

from __future__ import annotations

import csv
from functools import cache

from bench.errors import BadInput
from bench.paths import resource
from bench.report.layout import TABLES, Entry, Estimate


@cache
def published_entries() -> tuple[Entry, ...]:
    """One entry per model and level, in the paper's order, with values and no bounds."""
    values: dict[tuple[str, str], dict[str, dict[str, Estimate]]] = {}
    for table in TABLES:
        path = resource("published") / f"frontier_{table.name}.csv"
        if not path.is_file():
            raise BadInput(f"{path}: the published table is missing; reinstall the package")
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                tables = values.setdefault((row["Model"], row["Reasoning"]), {})
                tables[table.name] = {
                    task: Estimate(float(row[header]))
                    for header, task in table.columns
                    if row.get(header)
                }
    return tuple(
        Entry(model=model, reasoning=reasoning, tables=tables, published=True)
        for (model, reasoning), tables in values.items()
    )


def published_models() -> tuple[str, ...]:
    """The display names of the paper's models, in its order."""
    return tuple(dict.fromkeys(entry.model for entry in published_entries()))
