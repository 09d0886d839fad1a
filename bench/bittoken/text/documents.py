"""Read the documents of Parquet and .txt files, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from numbench.errors import BadInput

COLUMN = "text"

_BATCH_ROWS = 256
_MIN_DOCUMENT_CHARACTERS, _MAX_DOCUMENT_CHARACTERS = 2_000, 20_000
"""A .txt document ends at the first blank line after the minimum, or the first line end after the
maximum number of characters."""


def text_files(folder: Path) -> list[Path]:
    """Return the .parquet and .txt files under a folder, sorted. Raises BadInput for none."""
    if not folder.is_dir():
        raise BadInput(f"folder {folder} does not exist; name a folder with text to read")
    files = [file for file in folder.rglob("*") if file.suffix in (".parquet", ".txt")]
    files = sorted((file for file in files if file.is_file()), key=lambda file: file.parts)
    if not files:
        raise BadInput(
            f"{folder} contains no text; put .parquet (column {COLUMN!r}) or .txt files there"
        )
    return files


def read_documents(file: Path, start: int = 0) -> Iterator[str]:
    """Yield the documents of a file from number `start` on (a row without text gives "").

    A Parquet file is read by row groups. A .txt file is split at blank lines into documents of at
    least 2,000 characters; joined, they are the whole file.

    Raises BadInput with the location if a file cannot be read.
    """
    return (
        _read_parquet(file, start)
        if file.suffix == ".parquet"
        else islice(_split_text_file(file), start, None)
    )


def _read_parquet(file: Path, start: int) -> Iterator[str]:
    location = str(file)
    try:
        with pq.ParquetFile(file) as table:
            _check_column(file, table.schema_arrow)
            first = 0
            for group in range(table.num_row_groups):
                location = f"{file}, row group {group}"
                count = table.metadata.row_group(group).num_rows
                if first + count > start:
                    yield from islice(_read_row_group(table, group), max(start - first, 0), None)
                first += count
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"{location}: cannot read this Parquet file ({reason})") from None


def _read_row_group(table: pq.ParquetFile, group: int) -> Iterator[str]:
    for batch in table.iter_batches(_BATCH_ROWS, row_groups=[group], columns=[COLUMN]):
        for text in batch.column(0).to_pylist():
            yield text or ""


def _check_column(file: Path, schema: pa.Schema) -> None:
    index = schema.get_field_index(COLUMN)
    if index < 0:
        names = ", ".join(schema.names)
        raise BadInput(f"{file} has no column {COLUMN!r}; its columns: {names}")
    kind = schema.field(index).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise BadInput(f"{file}: the column {COLUMN!r} contains {kind}, not strings")


def _split_text_file(file: Path) -> Iterator[str]:
    lines, size, number = list[str](), 0, 0
    try:
        with file.open(encoding="utf-8", newline="") as text:
            while line := text.readline(_MAX_DOCUMENT_CHARACTERS):
                number += 1
                lines.append(line)
                size += len(line)
                if size >= _MAX_DOCUMENT_CHARACTERS or (
                    size >= _MIN_DOCUMENT_CHARACTERS and not line.strip()
                ):
                    yield "".join(lines)
                    lines, size = [], 0
    except UnicodeDecodeError:
        raise BadInput(f"{file}, after line {number}: the text is not UTF-8") from None
    except OSError as error:
        raise BadInput(f"{file}: cannot read it ({error.strerror})") from None
    if lines:
        yield "".join(lines)
