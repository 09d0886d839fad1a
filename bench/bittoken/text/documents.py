"""Documents of a folder of Parquet and .txt files, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.errors import BadInput

COLUMN = "text"

_ROWS = 256
_ENOUGH, _MOST = 2_000, 20_000
"""Characters of a .txt document: it ends at the first blank line after so many, or at the first
line's end after so many."""


def text_files(folder: Path) -> list[Path]:
    """The .parquet and .txt files under a folder, by their paths. BadInput if there are none."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder} to read text from")
    files = [file for file in folder.rglob("*") if file.suffix in (".parquet", ".txt")]
    files = sorted((file for file in files if file.is_file()), key=lambda file: file.parts)
    if not files:
        raise BadInput(
            f"{folder} holds no text: put .parquet (column {COLUMN!r}) or .txt files there"
        )
    return files


def documents(file: Path, start: int = 0) -> Iterator[str]:
    """The documents of a file from the one numbered `start` on (a row without text is "").

    A Parquet file is read by row groups. A .txt file is cut at blank lines into documents of at
    least 2,000 characters; nothing of it is lost.

    BadInput with the place where a file cannot be read.
    """
    return _rows(file, start) if file.suffix == ".parquet" else islice(_cut(file), start, None)


def _rows(file: Path, start: int) -> Iterator[str]:
    place = str(file)
    try:
        with pq.ParquetFile(file) as table:
            _check_column(file, table.schema_arrow)
            first = 0
            for group in range(table.num_row_groups):
                place = f"{file}, row group {group}"
                count = table.metadata.row_group(group).num_rows
                if first + count > start:
                    yield from islice(_of_group(table, group), max(start - first, 0), None)
                first += count
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"{place}: this Parquet file cannot be read ({reason})") from None


def _of_group(table: pq.ParquetFile, group: int) -> Iterator[str]:
    for batch in table.iter_batches(_ROWS, row_groups=[group], columns=[COLUMN]):
        for text in batch.column(0).to_pylist():
            yield text or ""


def _check_column(file: Path, schema: pa.Schema) -> None:
    index = schema.get_field_index(COLUMN)
    if index < 0:
        names = ", ".join(schema.names)
        raise BadInput(f"{file} has no column {COLUMN!r}; its columns: {names}")
    kind = schema.field(index).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise BadInput(f"{file}: the column {COLUMN!r} holds {kind}, not strings")


def _cut(file: Path) -> Iterator[str]:
    lines, size, number = list[str](), 0, 0
    try:
        with file.open(encoding="utf-8", newline="") as text:
            while line := text.readline(_MOST):
                number += 1
                lines.append(line)
                size += len(line)
                if size >= _MOST or (size >= _ENOUGH and not line.strip()):
                    yield "".join(lines)
                    lines, size = [], 0
    except UnicodeDecodeError:
        raise BadInput(f"{file}, behind line {number}: this is no UTF-8 text") from None
    except OSError as error:
        raise BadInput(f"{file} cannot be read ({error.strerror})") from None
    if lines:
        yield "".join(lines)
