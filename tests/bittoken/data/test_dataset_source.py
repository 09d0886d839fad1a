"""Training items from a stored dataset: all of them, in order, and none of another split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittoken.data.question_sources import DatasetSource, parse_plain_decimals
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.dataset.store import open_dataset
from numbench.decimal_numbers import normalize as normalize_one
from numbench.decimal_numbers import parse_decimal
from numbench.errors import BadInput
from numbench.vectorized.decimal_arrays import DecimalArray, format_decimals, normalize


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a training dataset with 7000 sums and 7000 lists, in two files each."""
    settings = DatasetSettings(
        name="big", tasks=("addition", "sorting"), split="train", size=7000, format="parquet"
    )
    folder = tmp_path_factory.mktemp("stored") / "big"
    generate(settings, out=folder, shard_rows=3500)
    return folder


def operands(items: pa.Table) -> list[list[str]]:
    rows: list[list[str]] = items["operands"].to_pylist()
    return rows


@pytest.mark.parametrize("task", ["addition", "sorting"])
def test_blocks_repeat_the_items_of_the_dataset(task: str, stored: Path) -> None:
    source = DatasetSource(stored, task)
    expected = [list(item.operands) for item in open_dataset(stored).by_task[task]]
    read: list[list[str]] = []
    blocks = 0
    while len(read) < 7000:
        read += operands(source.block(blocks))
        blocks += 1
    assert read == expected
    assert operands(source.block(blocks)) == operands(source.block(0))


def test_processes_read_disjoint_blocks(stored: Path) -> None:
    single = DatasetSource(stored, "addition")
    pair = [DatasetSource(stored, "addition", rank=i, world_size=2) for i in range(2)]
    taken = [operands(pair[i].block(number)) for number in range(2) for i in range(2)]
    assert taken == [operands(single.block(number)) for number in range(4)]


@pytest.mark.parametrize("task", ["addition", "sorting"])
def test_items_of_a_test_set_are_rejected(task: str, stored: Path, tmp_path: Path) -> None:
    for path in stored.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    path = sorted(tmp_path.glob(f"{task}-*.parquet"))[0]
    table = pq.read_table(path)
    rows = table["operands"].to_pylist()
    rows[1234] = list(open_dataset("v1").by_task[task][7].operands)
    index = table.schema.get_field_index("operands")
    column = pa.array(rows, table.schema.field("operands").type)
    pq.write_table(table.set_column(index, "operands", column), path)
    with pytest.raises(BadInput, match=r"row 1234: the item does not belong to the train split"):
        DatasetSource(tmp_path, task).block(0)


def test_test_sets_are_rejected(tmp_path: Path) -> None:
    generate(
        DatasetSettings(name="t", tasks=("std",), size=50, format="parquet"), out=tmp_path / "t"
    )
    with pytest.raises(BadInput, match=r"row 0: the item does not belong to the train split"):
        DatasetSource(tmp_path / "t", "std").block(0)


def test_missing_tasks_and_other_formats_are_rejected(stored: Path) -> None:
    with pytest.raises(BadInput, match="no task 'std'; it has sorting, addition"):
        DatasetSource(stored, "std")
    with pytest.raises(BadInput, match="not a Parquet dataset"):
        DatasetSource(open_dataset("v1").path, "std")


@given(st.lists(st.tuples(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(-40, 0))))
def test_plain_decimals_are_parsed_exactly(pairs: list[tuple[int, int]]) -> None:
    numbers = DecimalArray(
        np.array([s for s, _ in pairs], np.int64), np.array([e for _, e in pairs], np.int64)
    )
    texts = format_decimals(numbers)
    read = normalize(parse_plain_decimals(texts))
    expected = [normalize_one(parse_decimal(text)) for text in texts.to_pylist()]
    assert list(zip(*map(np.ndarray.tolist, read), strict=True)) == expected


@pytest.mark.parametrize("text", ["1e5", "", "1.", ".5", "--1", "nan", "1 000", "1" * 19])
def test_other_texts_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"decimal|18 digits"):
        parse_plain_decimals(pa.array(["1", text]))
