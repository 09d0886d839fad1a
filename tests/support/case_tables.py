"""Tables of cases: files of JSON lines in the folder `cases` beside the tests that read them."""

import json
from pathlib import Path
from typing import Any

import pytest


def each_case(module: str, table: str) -> pytest.MarkDecorator:
    """Run a test of a module (`__file__`) with every line of a table as its argument `case`."""
    cases = [
        pytest.param(case, id=f"{table}:{number}")
        for number, case in enumerate(read_lines(module, table), 1)
    ]
    return pytest.mark.parametrize("case", cases)


def each_row(module: str, table: str) -> pytest.MarkDecorator:
    """Run a test with every line of a table as its arguments, whose names are the first line.

    A list among the arguments becomes a tuple.
    """
    names, *rows = read_lines(module, table)
    if "," not in names:
        return pytest.mark.parametrize(names, rows)
    tuples = [[tuple(each) if isinstance(each, list) else each for each in row] for row in rows]
    return pytest.mark.parametrize(names, tuples)


def read_lines(module: str, table: str) -> list[Any]:
    """Return the values of the lines of a table."""
    path = Path(module).parent / "cases" / f"{table}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
