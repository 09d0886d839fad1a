"""CSV that spreadsheets open: no text is a formula, and every cell is read back."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from numbench.core.csv_files import encode_csv
from tests.support.case_tables import each_row


def written(cell: object) -> str:
    (row,) = csv.reader(io.StringIO(encode_csv([(cell, "end")]), newline=""))
    assert row[1] == "end"
    return row[0]


@each_row(__file__, "quoted_cells")
def test_a_text_that_a_spreadsheet_would_evaluate_becomes_a_text(text: str) -> None:
    assert written(text) == f"'{text}"


@each_row(__file__, "unchanged_cells")
def test_numbers_and_other_texts_are_unchanged(cell: str) -> None:
    assert written(cell) == cell


@given(st.floats(allow_nan=False))
def test_numbers_are_unchanged(number: float) -> None:
    assert written(number) == written(repr(number)) == repr(number)


@given(st.text())
def test_no_text_is_read_as_a_formula_and_none_is_lost(text: str) -> None:
    cell = written(text)
    assert cell in (text, f"'{text}")
    if cell.lstrip(" ")[:1] in ("=", "@", "\t", "\r") and cell.strip():
        raise AssertionError(cell)
