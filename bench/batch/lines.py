"""Rows as JSON lines: the bytes that encoding each Item would give, without making one."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def json_lines(table: pa.Table) -> bytes:
    """The rows of an item table as JSONL, in the field order of `bench.records.Item`.

    No value needs escaping: ids, prompts and numbers are plain ASCII without quotes.
    """
    pieces: list[pa.Array | str] = ["{"]
    for name in table.column_names:
        column = table[name].combine_chunks()
        pieces += ["" if len(pieces) == 1 else ",", f'"{name}":', *_value(column)]
    lines = pc.binary_join_element_wise(*pieces, "}\n", "")
    if not len(lines):
        return b""
    _, offsets, data = lines.buffers()
    start, end = lines.offset, lines.offset + len(lines)
    positions = memoryview(offsets).cast("i")
    return memoryview(data)[positions[start] : positions[end]].tobytes()


def _value(column: pa.Array) -> list[pa.Array | str]:
    """The pieces that, joined row by row, spell a column's values in JSON."""
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
