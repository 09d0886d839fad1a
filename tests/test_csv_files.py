"""CSV that spreadsheets open: no text is a formula, and every cell is read back."""

import csv
import io
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from numbench.core.csv_files import encode_csv, read_csv
from tests.support.case_tables import each_row


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
