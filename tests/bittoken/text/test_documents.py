"""Documents of Parquet and .txt files, and what is said of files that hold none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.bittoken.text.documents import documents, text_files
from bench.errors import BadInput
from tests.bittoken.text.small import parquet

ROWS = ["a", None, "ü 1", "", "d", "e\n\nf", "g"]


@pytest.mark.parametrize("start", range(9))
@pytest.mark.parametrize("group", [1, 3, 100])
def test_rows_are_read_from_any_place_on(tmp_path: Path, start: int, group: int) -> None:
    file = parquet(tmp_path / "a.parquet", ROWS, group)
    assert list(documents(file, start)) == [row or "" for row in ROWS][start:]


def test_files_come_in_the_order_of_their_paths(tmp_path: Path) -> None:
    for name in ("b/x.txt", "a.txt", "b.parquet", "b/a.parquet", "c.md", "z.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [file.relative_to(tmp_path).as_posix() for file in text_files(tmp_path)]
    assert found == ["a.txt", "b/a.parquet", "b/x.txt", "b.parquet"]


def test_a_folder_without_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.md").touch()
    with pytest.raises(BadInput, match=r"holds no text: put \.parquet"):
        text_files(tmp_path)
    with pytest.raises(BadInput, match="there is no folder"):
        text_files(tmp_path / "none")


def test_a_table_without_text_names_its_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "body": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match=r"a\.parquet has no column 'text'; its columns: id, body"):
        list(documents(tmp_path / "a.parquet"))


def test_a_column_of_something_else_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": [1]}), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="holds int64, not strings"):
        list(documents(tmp_path / "a.parquet"))


def test_long_strings_are_text_too(tmp_path: Path) -> None:
    table = pa.table({"text": pa.array(["x", "y"], pa.large_string())})
    pq.write_table(table, tmp_path / "a.parquet")
    assert list(documents(tmp_path / "a.parquet")) == ["x", "y"]


@pytest.mark.parametrize("content", [b"", b"no table", b"PAR1" + bytes(100) + b"PAR1"])
def test_what_is_no_parquet_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(BadInput, match=r"a\.parquet: this Parquet file cannot be read"):
        list(documents(tmp_path / "a.parquet"))


def test_a_broken_row_group_is_named_behind_those_that_are_whole(tmp_path: Path) -> None:
    file = parquet(tmp_path / "a.parquet", [f"{i} " * 50 for i in range(9)])
    column = pq.ParquetFile(file).metadata.row_group(1).column(1)
    first = min(o for o in (column.dictionary_page_offset, column.data_page_offset) if o)
    content = bytearray(file.read_bytes())
    content[first : first + 20] = b"\xff" * 20
    file.write_bytes(content)
    found = []
    with pytest.raises(BadInput, match=r"a\.parquet, row group 1: this Parquet file cannot"):
        for text in documents(file):
            found.append(text)
    assert len(found) == 3


PARTS = st.sampled_from(["\n", "\n\n", "\r\n", "word ", "x" * 900, "y" * 25_000, "é\n", " \n"])


@settings(max_examples=100, deadline=None)
@given(st.lists(PARTS, max_size=30).map("".join), st.integers(0, 5))
def test_text_files_are_cut_into_documents_without_loss(
    tmp_path_factory: pytest.TempPathFactory, text: str, start: int
) -> None:
    file = tmp_path_factory.mktemp("text") / "a.txt"
    file.write_bytes(text.encode())
    found = list(documents(file))
    assert "".join(found) == text
    assert all(2_000 <= len(part) < 40_000 for part in found[:-1])
    assert list(documents(file, start)) == found[start:]


def test_text_is_cut_at_blank_lines(tmp_path: Path) -> None:
    paragraphs = ["a" * 1500 + "\n\n", "b" * 1500 + "\n\n", "c" * 10]
    (tmp_path / "a.txt").write_text("".join(paragraphs))
    assert list(documents(tmp_path / "a.txt")) == ["".join(paragraphs[:2]), paragraphs[2]]


def test_what_is_no_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"fine\n" * 10_000 + b"\xff\n")
    with pytest.raises(BadInput, match=r"a\.txt, behind line \d+: this is no UTF-8"):
        list(documents(tmp_path / "a.txt"))
