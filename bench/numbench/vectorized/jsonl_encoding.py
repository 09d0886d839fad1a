"""JSON lines of item tables, equal to encoding each row as an `Item`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def json_lines(table: pa.Table) -> bytes:
    """Return the rows of an item table as JSONL, in the field order of `numbench.records.Item`.

    Strings are not escaped: ids, prompts and numbers of the vectorized tasks need no escapes.
    """
    pieces: list[pa.Array | str] = ["{"]
    for name in table.column_names:
        column = table[name].combine_chunks()
        pieces += ["" if len(pieces) == 1 else ",", f'"{name}":', *_value(column)]
    return concatenated_bytes(pc.binary_join_element_wise(*_merged([*pieces, "}\n"]), ""))


def _merged(pieces: list[pa.Array | str]) -> list[pa.Array | str]:
    """Return the pieces with adjacent literals joined."""
    merged: list[pa.Array | str] = []
    for piece in pieces:
        if merged and isinstance(piece, str) and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged


def concatenated_bytes(strings: pa.StringArray) -> bytes:
    """Return the bytes of all strings of an array, concatenated."""
    if not len(strings):
        return b""
    _, offsets, data = strings.buffers()
    positions = memoryview(offsets).cast("i")
    first, last = positions[strings.offset], positions[strings.offset + len(strings)]
    return memoryview(data)[first:last].tobytes()


def _value(column: pa.Array) -> list[pa.Array | str]:
    """Return pieces that, joined row by row, are a column's values in JSON."""
    if pa.types.is_struct(column.type):
        pieces: list[pa.Array | str] = ["{"]
        for field, part in zip(column.type, column.flatten(), strict=True):
            pieces += ["" if len(pieces) == 1 else ",", f'"{field.name}":', *_value(part)]
        return [*pieces, "}"]
    if pa.types.is_list(column.type):
        return ['["', pc.binary_join(column, '","'), '"]']
    if pa.types.is_integer(column.type):
        return [pc.cast(column, pa.string())]
    return ['"', column, '"']
