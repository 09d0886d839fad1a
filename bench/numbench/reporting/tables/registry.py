"""The tables of a report, in the order in which they are shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from numbench import jsonl
from numbench.errors import BadInput
from numbench.plugins import load_plugins
from numbench.reporting.data import ReportData
from numbench.reporting.tables import (
    comparisons,
    coverage,
    findings,
    horizons,
    memory,
    price,
    render,
    samples,
    scores,
    variants,
)
from numbench.reporting.tables.model import BuiltTable, Table, build_table

TABLES = (
    scores.SUMMARY,
    *scores.TASK_TABLES,
    comparisons.TABLE,
    price.TABLE,
    samples.TABLE,
    variants.TABLE,
    findings.TABLE,
    memory.TABLE,
    horizons.TABLE,
    coverage.TABLE,
)

_NAME = re.compile("[a-z0-9][a-z0-9_-]{0,59}")


def all_tables() -> tuple[Table, ...]:
    """Return the tables of a report, and those of other packages (entry points `numbench.tables`).

    Raises BadInput for a name that is not suitable for a file, or is taken.
    """
    plugins = [table for _, table in load_plugins("numbench.tables", Table)]
    names = [table.name for table in (*TABLES, *plugins)]
    for table in plugins:
        if not _NAME.fullmatch(table.name) or names.count(table.name) > 1:
            raise BadInput(
                f"table {table.name!r} of a plugin: its name is taken, or not of lower-case "
                "letters, digits, '_' and '-'; rename or uninstall it"
            )
    return (*TABLES, *plugins)


def build_tables(data: ReportData) -> dict[str, BuiltTable]:
    """Return name → table, for the tables that apply to the data.

    A table of another package that fails is left out, with a warning.
    """
    tables: dict[str, BuiltTable] = {}
    for table in all_tables():
        try:
            built = build_table(table, data)
            if built is not None and table not in TABLES:
                render.csv(built)
                render.markdown(built)
        except Exception as error:
            if table in TABLES:
                raise
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            data.failures.append(f"Table {table.name} of a plugin is left out: {reason}")
            continue
        if built is not None:
            tables[table.name] = built
    return tables


def write_tables(tables: Sequence[BuiltTable], folder: Path) -> None:
    """Write each table as CSV and Markdown, and some as LaTeX; delete those of other reports."""
    files: dict[str, bytes] = {}
    for built in tables:
        name = built.table.name
        files[f"{name}.csv"] = render.csv(built)
        files[f"{name}.md"] = render.markdown(built).encode()
        if built.table.latex:
            files[f"{name}.tex"] = render.latex(built).encode()
    folder.mkdir(parents=True, exist_ok=True)
    for table in all_tables():
        for suffix in ("csv", "md", "tex"):
            if (name := f"{table.name}.{suffix}") not in files:
                (folder / name).unlink(missing_ok=True)
    for name, content in files.items():
        jsonl.write_atomically(folder / name, content)
