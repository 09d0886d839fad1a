"""Documents of Parquet and .txt files, and error messages for invalid files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bittoken.text.documents import read_documents, text_files
from numbench.errors import BadInput
from tests.bittoken.text.small import parquet

ROWS = ["a", None, "ü 1", "", "d", "e\n\nf", "g"]


@pytest.mark.parametrize("start", range(9))
@pytest.mark.parametrize("group", [1, 3, 100])
def test_rows_are_read_from_any_start(tmp_path: Path, start: int, group: int) -> None:
    file = parquet(tmp_path / "a.parquet", ROWS, group)
    assert list(read_documents(file, start)) == [row or "" for row in ROWS][start:]


def test_files_are_sorted_by_path(tmp_path: Path) -> None:
    for name in ("b/x.txt", "a.txt", "b.parquet", "b/a.parquet", "c.md", "z.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    result = [file.relative_to(tmp_path).as_posix() for file in text_files(tmp_path)]
    assert result == ["a.txt", "b/a.parquet", "b/x.txt", "b.parquet"]


def test_folder_without_text_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "c.md").touch()
    with pytest.raises(BadInput, match=r"contains no text; put \.parquet"):
        text_files(tmp_path)
    with pytest.raises(BadInput, match="does not exist"):
        text_files(tmp_path / "none")


def test_table_without_text_column_is_reported_with_its_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "body": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match=r"a\.parquet has no column 'text'; its columns: id, body"):
        list(read_documents(tmp_path / "a.parquet"))


def test_column_of_another_type_is_rejected(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": [1]}), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="contains int64, not strings"):
        list(read_documents(tmp_path / "a.parquet"))


def test_large_strings_are_accepted(tmp_path: Path) -> None:
    table = pa.table({"text": pa.array(["x", "y"], pa.large_string())})
    pq.write_table(table, tmp_path / "a.parquet")
    assert list(read_documents(tmp_path / "a.parquet")) == ["x", "y"]


@pytest.mark.parametrize("content", [b"", b"no table", b"PAR1" + bytes(100) + b"PAR1"])
def test_invalid_parquet_file_is_reported(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(BadInput, match=r"a\.parquet: cannot read this Parquet file"):
        list(read_documents(tmp_path / "a.parquet"))


def test_damaged_row_group_is_reported_after_the_intact_ones(tmp_path: Path) -> None:
    file = parquet(tmp_path / "a.parquet", [f"{i} " * 50 for i in range(9)])
    column = pq.ParquetFile(file).metadata.row_group(1).column(1)
    first = min(o for o in (column.dictionary_page_offset, column.data_page_offset) if o)
    content = bytearray(file.read_bytes())
    content[first : first + 20] = b"\xff" * 20
    file.write_bytes(content)
    result = []
    with pytest.raises(BadInput, match=r"a\.parquet, row group 1: cannot read this Parquet file"):
        for text in read_documents(file):
            result.append(text)
    assert len(result) == 3


PARTS = st.sampled_from(["\n", "\n\n", "\r\n", "word ", "x" * 900, "y" * 25_000, "é\n", " \n"])


@settings(max_examples=100, deadline=None)
@given(st.lists(PARTS, max_size=30).map("".join), st.integers(0, 5))
def test_text_files_are_split_into_documents_without_loss(
    tmp_path_factory: pytest.TempPathFactory, text: str, start: int
) -> None:
    file = tmp_path_factory.mktemp("text") / "a.txt"
    file.write_bytes(text.encode())
    result = list(read_documents(file))
    assert "".join(result) == text
    assert all(2_000 <= len(part) < 40_000 for part in result[:-1])
    assert list(read_documents(file, start)) == result[start:]


def test_text_is_split_at_blank_lines(tmp_path: Path) -> None:
    paragraphs = ["a" * 1500 + "\n\n", "b" * 1500 + "\n\n", "c" * 10]
    (tmp_path / "a.txt").write_text("".join(paragraphs))
    assert list(read_documents(tmp_path / "a.txt")) == ["".join(paragraphs[:2]), paragraphs[2]]


def test_invalid_utf8_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"fine\n" * 10_000 + b"\xff\n")
    with pytest.raises(BadInput, match=r"a\.txt, after line \d+: the text is not UTF-8"):
        list(read_documents(tmp_path / "a.txt"))
