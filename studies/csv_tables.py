"""Tables as CSV files: a page is written from its committed tables, so anyone can check it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd


def to_csv(tables: Mapping[str, pd.DataFrame]) -> dict[str, bytes]:
    """Return the CSV file of each table by file name."""
    return {
        f"{name}.csv": table.to_csv(index=False, float_format="%.10g").encode()
        for name, table in tables.items()
    }


def from_csv(files: Mapping[str, bytes]) -> dict[str, pd.DataFrame]:
    """Return the tables by name."""
    return {
        name.removesuffix(".csv"): pd.read_csv(io.BytesIO(data)) for name, data in files.items()
    }


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Return the tables in a folder by name."""
    return from_csv({path.name: path.read_bytes() for path in sorted(folder.glob("*.csv"))})


def each_row(table: pd.DataFrame) -> Iterator[Any]:
    """Yield the rows as named tuples."""
    return iter(table.itertuples(index=False))
