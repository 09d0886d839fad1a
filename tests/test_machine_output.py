"""Output for other programs: JSON of commands, and CSV that spreadsheets open and read back."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs._build.reference import RESULTS
from numbench.core.csv_files import encode_csv, read_csv
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.tasks import TASKS
from tests.support.case_tables import each_row, read_lines
from tests.support.command_line import Call
from tests.tasks.gcd_task import GCD


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("json")
    generate(DatasetSettings("mine", ("mean",), size=2), folder / "datasets" / "mine")
    return folder


@each_row(__file__, "json_outputs")
@pytest.mark.usefixtures("without_figures")
def test_stdout_is_the_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: Call,
    command: str, code: int, known: dict[str, Any],
) -> None:  # fmt: skip
    monkeypatch.chdir(folder)
    monkeypatch.setitem(TASKS, "gcd", GCD)
    printed = call(*command.split(), "--json")
    output = json.loads(printed.out)
    assert printed.out.count("\n") == 1 and printed.code == output["exit_code"] == code
    assert (output["schema"], output["command"]) == (1, command.split()[0])
    assert (output["error"] is None) == (code == 0)
    if code:
        assert output["error"] in printed.err
    assert (output["result"] is None) == (not known)
    for path, expected in known.items():
        value = output["result"]
        for step in path.split("."):
            value = value[int(step) if isinstance(value, list) else step]
        assert value == expected, path


def test_every_command_with_the_option_is_among_the_cases() -> None:
    _, *cases = read_lines(__file__, "json_outputs")
    assert {command.split()[0] for command, _, _ in cases} == RESULTS.keys()


def written(cell: object) -> str:
    (row,) = csv.reader(io.StringIO(encode_csv([(cell, "end")]), newline=""))
    assert row[1] == "end"
    return row[0]


@each_row(__file__, "csv_cells")
def test_only_a_text_that_a_spreadsheet_would_evaluate_is_quoted(cell: str, expected: str) -> None:
    assert written(cell) == expected


def test_a_cell_may_be_as_long_as_a_response(tmp_path: Path) -> None:
    csv.field_size_limit(131_072)
    (tmp_path / "long.csv").write_text("text\n" + 200_000 * "x")
    assert next(read_csv(tmp_path / "long.csv")) == (2, {"text": 200_000 * "x"})


@given(st.floats(allow_nan=False))
def test_numbers_are_unchanged(number: float) -> None:
    assert written(number) == written(repr(number)) == repr(number)


@given(st.text())
def test_no_text_is_read_as_a_formula_and_none_is_lost(text: str) -> None:
    cell = written(text)
    assert cell in (text, f"'{text}")
    if cell.lstrip(" ")[:1] in ("=", "@", "\t", "\r") and cell.strip():
        raise AssertionError(cell)
