"""Training items from a dataset on disk: all of them, in order, and none of another split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.batch.fixed import Numbers, reduced
from bench.batch.text import plain
from bench.bittoken.data.decimals import numbers_of
from bench.bittoken.data.folder import FolderSource
from bench.dataset.generate import generate
from bench.dataset.settings import Settings
from bench.dataset.store import open_dataset
from bench.errors import BadInput
from bench.numerals import parse
from bench.numerals import reduced as reduced_one


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """7000 sums and 7000 lists for training, in two files each."""
    settings = Settings(
        name="big", tasks=("addition", "sorting"), split="train", size=7000, format="parquet"
    )
    folder = tmp_path_factory.mktemp("stored") / "big"
    generate(settings, out=folder, shard_rows=3500)
    return folder


def operands(items: pa.Table) -> list[list[str]]:
    found: list[list[str]] = items["operands"].to_pylist()
    return found


@pytest.mark.parametrize("task", ["addition", "sorting"])
def test_blocks_are_the_datasets_items_over_and_over(task: str, stored: Path) -> None:
    source = FolderSource(stored, task)
    all_ = [list(item.operands) for item in open_dataset(stored).by_task[task]]
    read: list[list[str]] = []
    blocks = 0
    while len(read) < 7000:
        read += operands(source.block(blocks))
        blocks += 1
    assert read == all_
    assert operands(source.block(blocks)) == operands(source.block(0))


def test_processes_share_the_blocks(stored: Path) -> None:
    alone = FolderSource(stored, "addition")
    pair = [FolderSource(stored, "addition", index=i, world=2) for i in range(2)]
    taken = [operands(pair[i].block(number)) for number in range(2) for i in range(2)]
    assert taken == [operands(alone.block(number)) for number in range(4)]


@pytest.mark.parametrize("task", ["addition", "sorting"])
def test_a_planted_test_item_is_refused(task: str, stored: Path, tmp_path: Path) -> None:
    for path in stored.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    path = sorted(tmp_path.glob(f"{task}-*.parquet"))[0]
    table = pq.read_table(path)
    rows = table["operands"].to_pylist()
    rows[1234] = list(open_dataset("v1").by_task[task][7].operands)
    place = table.schema.get_field_index("operands")
    column = pa.array(rows, table.schema.field("operands").type)
    pq.write_table(table.set_column(place, "operands", column), path)
    with pytest.raises(BadInput, match=r"row 1234: the item does not belong to the train split"):
        FolderSource(tmp_path, task).block(0)


def test_a_test_set_is_refused(tmp_path: Path) -> None:
    generate(Settings(name="t", tasks=("std",), size=50, format="parquet"), out=tmp_path / "t")
    with pytest.raises(BadInput, match=r"row 0: the item does not belong to the train split"):
        FolderSource(tmp_path / "t", "std").block(0)


def test_a_dataset_without_the_task_or_not_in_parquet_is_refused(stored: Path) -> None:
    with pytest.raises(BadInput, match="has no task 'std': it has sorting, addition"):
        FolderSource(stored, "std")
    with pytest.raises(BadInput, match="not in Parquet"):
        FolderSource(open_dataset("v1").path, "std")


@given(st.lists(st.tuples(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(-40, 0))))
def test_plain_decimals_are_read_exactly(pairs: list[tuple[int, int]]) -> None:
    numbers = Numbers(
        np.array([s for s, _ in pairs], np.int64), np.array([e for _, e in pairs], np.int64)
    )
    texts = plain(numbers)
    read = reduced(numbers_of(texts))
    expected = [reduced_one(parse(text)) for text in texts.to_pylist()]
    assert list(zip(*map(np.ndarray.tolist, read), strict=True)) == expected


@pytest.mark.parametrize("text", ["1e5", "", "1.", ".5", "--1", "nan", "1 000", "1" * 19])
def test_what_is_no_plain_decimal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"decimal|18 digits"):
        numbers_of(pa.array(["1", text]))
