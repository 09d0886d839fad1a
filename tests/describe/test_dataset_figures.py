"""The columns, heat maps and histograms of a dataset, and the files of its figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.dataset.store import Dataset, write_dataset
from numbench.describe import dataset_figures, describe
from numbench.describe.dataset_columns import read_columns
from numbench.errors import BadInput
from numbench.records import Difficulty, Item

pytestmark = pytest.mark.slow

ALWAYS = {"digits", "difficulty", "difficulty_base2"}
LIST = {"exponent": 3, "spread": -1}


def item(
    task: str, index: int, operands: tuple[str, ...], params: Mapping[str, int] | None = None
) -> Item:
    return Item(
        id=f"{task}-{index}",
        task=task,
        prompt="?",
        answer="1",
        operands=operands,
        operator="+",
        difficulty=Difficulty(base10=index, base2=3 * index),
        params=dict(params or {}),
    )


def dataset(folder: Path, items: Mapping[str, Sequence[Item]]) -> Dataset:
    return write_dataset(
        folder, items, name="tiny", generator="test", seed=1, split="test", settings={}
    )


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Two additions (one of a zero) and two means."""
    additions = [item("addition", 0, ("-0.0120", "1500")), item("addition", 1, ("0", "7"))]
    means = [item("mean", index, ("1", "20", "3.5")[: index + 2], LIST) for index in range(2)]
    return dataset(tmp_path / "tiny", {"addition": additions, "mean": means}).path


def test_columns_are_those_of_the_printed_operands(tiny: Path) -> None:
    described = read_columns(tiny)
    assert list(described.tasks) == ["addition", "mean"]
    addition, mean = described.tasks["addition"], described.tasks["mean"]
    first, second = addition.numbers["operand 1"], addition.numbers["operand 2"]
    assert first.digits.tolist() == [2, 0] and second.digits.tolist() == [2, 1]
    assert first.exponents[0] == -2 and math.isnan(first.exponents[1])
    assert second.exponents.tolist() == [3, 0]
    assert addition.exponent is None
    assert mean.numbers["elements"].digits.tolist() == [1, 1, 1, 1, 2]
    assert mean.exponent is not None and mean.exponent.tolist() == [3, 3]
    assert mean.spread is not None and mean.spread.tolist() == [-1, -1]
    assert mean.base10.tolist() == [0, 1] and mean.base2.tolist() == [0, 3]


def test_the_reference_of_an_interval_is_not_one_of_its_boundaries(tmp_path: Path) -> None:
    path = dataset(tmp_path / "d", {"interval": [item("interval", 0, ("5", "123", "1234"))]}).path
    numbers = read_columns(path).tasks["interval"].numbers
    assert numbers["reference"].digits.tolist() == [1]
    assert numbers["boundaries"].digits.tolist() == [3, 4]


@given(st.lists(st.tuples(st.integers(-14, 14), st.integers(-14, 14)), max_size=30))
def test_a_heat_map_counts_every_pair_in_its_cell(points: list[tuple[int, int]]) -> None:
    x, y = (np.array([point[side] for point in points], dtype=np.float64) for side in (0, 1))
    grid = dataset_figures.count_heatmap(x, y)
    assert grid.counts.sum() == len(points) and grid.omitted == 0
    for a, b in points:
        assert grid.counts[b - grid.low_y, a - grid.low_x] == points.count((a, b))


def test_a_heat_map_reports_omitted_items(tiny: Path) -> None:
    figure = dataset_figures.operand_magnitudes_figure(read_columns(tiny))
    assert figure is not None
    assert figure.axes[0].get_title() == "Add (n = 1, 1 with a zero omitted)"


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=50))
def test_bars_contain_every_value(values: list[int]) -> None:
    bars = dataset_figures.histogram(np.array(values))
    assert len(bars.shares) <= 40 and bars.shares.sum() == pytest.approx(100)
    expected, _ = np.histogram(values, bars.edges)
    assert bars.shares == pytest.approx(100 * expected / len(values))


def test_figures_are_written_to_results_and_not_to_the_dataset(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tiny.iterdir())
    written = describe(tiny)
    expected = {f"{n}.{f}" for n in {"pairs", "lists", *ALWAYS} for f in ("png", "pdf", "svg")}
    assert {path.name for path in written} == expected
    for path in written:
        assert path.parent == Path("results/describe/tiny") and path.stat().st_size > 5_000
    assert sorted(tiny.iterdir()) == before


def test_the_default_folder_is_below_results_for_any_name(tmp_path: Path) -> None:
    names = {"v1": "v1", "../../x": "x", "..": "dataset", "my set": "my-set"}
    for name, folder in names.items():
        assert dataset_figures._default_folder(name) == Path("results/describe") / folder


def test_the_same_dataset_gives_the_same_bytes(tiny: Path, tmp_path: Path) -> None:
    one, two = describe(tiny, tmp_path / "one"), describe(tiny, tmp_path / "two")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ([item("sorting", 0, ("1", "2"), LIST)], {"lists", *ALWAYS}),
        ([item("sorting", 0, ("1", "2"))], ALWAYS),
        ([item("division", 0, ("1", "2"))], {"pairs", *ALWAYS}),
        ([item("division", 0, ("0", "0"))], {"pairs", *ALWAYS}),
        ([item("exponentiation", 0, ("1.5", "2"))], ALWAYS),
    ],
)
def test_a_dataset_has_the_figures_that_apply_to_its_tasks(
    items: list[Item], names: set[str], tmp_path: Path
) -> None:
    path = dataset(tmp_path / "d", {items[0].task: items}).path
    assert {file.stem for file in describe(path, tmp_path / "out")} == names


def test_a_task_without_items_has_no_panel(tmp_path: Path) -> None:
    items = {"addition": [item("addition", 0, ("1", "2"))], "division": []}
    path = dataset(tmp_path / "d", items).path
    assert list(read_columns(path).tasks) == ["addition"]
    assert describe(path, tmp_path / "out")


def test_an_empty_or_missing_dataset_is_bad_input(tmp_path: Path) -> None:
    empty = dataset(tmp_path / "empty", {"addition": []}).path
    with pytest.raises(BadInput, match="empty: no items, so there is nothing to draw"):
        describe(empty, tmp_path / "out")
    with pytest.raises(BadInput, match="no dataset"):
        describe(tmp_path / "nowhere", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_operand_that_is_not_a_number_is_bad_input(tmp_path: Path) -> None:
    path = dataset(tmp_path / "d", {"addition": [item("addition", 0, ("1", "two"))]}).path
    with pytest.raises(BadInput, match="'two' is not a decimal number"):
        describe(path, tmp_path / "out")
