"""Reading of CSV files with cells of any size, and CSV that spreadsheets open safely."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from numbench.errors import BadInput, bad_input_at

_FIELD_SIZE_LIMIT = 2**31 - 1
_FORMULA_STARTS = ("=", "@", "\t", "\r")
_SIGNS = ("+", "-")


def encode_csv(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV, quoted if necessary.

    A text that a spreadsheet would evaluate as a formula gets a leading apostrophe, which shows it
    as text. Numbers are unchanged.
    """
    text = io.StringIO(newline="")
    for row in rows:
        line = io.StringIO(newline="")
        # With this line terminator, line ends within cells are quoted, whichever they are.
        writer = csv.writer(line, lineterminator="\r\n")
        writer.writerow([_as_text(cell) if isinstance(cell, str) else cell for cell in row])
        text.write(line.getvalue().removesuffix("\r\n") + "\n")
    return text.getvalue()


def _as_text(cell: str) -> str:
    start = cell.lstrip(" ")
    has_letters = any(character.isalpha() for character in start)
    is_formula = start.startswith(_FORMULA_STARTS) or (start.startswith(_SIGNS) and has_letters)
    return f"'{cell}" if is_formula and not _is_number(cell) else cell


def _is_number(text: str) -> bool:
    """Return whether a text is a number, such as `-1e-05` or `-inf`."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_csv(path: Path, required: Sequence[str] = ()) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV file as (last line number, cells by column).

    Raises BadInput, with file and line, if the file cannot be read, is not UTF-8, lacks a required
    column, or has a row with another number of fields than the header.
    """
    # Some recorded responses exceed the module's limit.
    csv.field_size_limit(_FIELD_SIZE_LIMIT)
    try:
        with bad_input_at(path, OSError), open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header: list[str] = next(reader, [])
            if missing := [column for column in required if column not in header]:
                raise BadInput(f"{path}, line 1: column {', '.join(missing)} is missing")
            for cells in filter(None, reader):
                if len(cells) != len(header):
                    count = f"{len(cells)} fields, but the header has {len(header)}"
                    raise BadInput(f"{path}, line {reader.line_num}: {count}")
                yield reader.line_num, dict(zip(header, cells, strict=True))
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text ({error.reason})") from error
    except csv.Error as error:
        raise BadInput(f"{path}, line {reader.line_num}: {error}") from error
