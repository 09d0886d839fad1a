"""Tables of cases: files of JSON lines in the folder `cases` beside the tests that read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def each_case(module: str, table: str) -> pytest.MarkDecorator:
    """Run a test of a module (`__file__`) with every line of a table as its argument `case`."""
    path = Path(module).parent / "cases" / f"{table}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    cases = [
        pytest.param(json.loads(line), id=f"{table}:{number}")
        for number, line in enumerate(lines, 1)
    ]
    return pytest.mark.parametrize("case", cases)
