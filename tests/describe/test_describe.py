"""What the figures of a dataset count, and that they are drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.dataset.store import Dataset, write_dataset
from bench.describe import describe, heat, histograms
from bench.describe.columns import read_columns
from bench.errors import BadInput
from bench.records import Difficulty, Item

ALWAYS = {"digits", "difficulty", "difficulty_base2"}
LIST = {"exponent": 3, "spread": -1}


def item(
    task: str, place: int, operands: tuple[str, ...], params: Mapping[str, int] | None = None
) -> Item:
    return Item(
        id=f"{task}-{place}",
        task=task,
        prompt="?",
        answer="1",
        operands=operands,
        operator="+",
        difficulty=Difficulty(base10=place, base2=3 * place),
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
    means = [item("mean", place, ("1", "20", "3.5")[: place + 2], LIST) for place in range(2)]
    return dataset(tmp_path / "tiny", {"addition": additions, "mean": means}).path


def test_columns_are_what_is_printed(tiny: Path) -> None:
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
    grid = heat.count(x, y)
    assert grid.counts.sum() == len(points) and grid.left_out == 0
    for a, b in points:
        assert grid.counts[b - grid.low_y, a - grid.low_x] == points.count((a, b))


def test_a_heat_map_tells_what_it_left_out(tiny: Path) -> None:
    figure = heat.pairs(read_columns(tiny))
    assert figure is not None
    assert figure.axes[0].get_title() == "Add (n = 1, 1 with a zero left out)"


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=50))
def test_bars_hold_every_value(values: list[int]) -> None:
    found = histograms.bars(np.array(values))
    assert len(found.shares) <= 40 and found.shares.sum() == pytest.approx(100)
    expected, _ = np.histogram(values, found.edges)
    assert found.shares == pytest.approx(100 * expected / len(values))


def test_figures_are_drawn_beside_the_dataset(tiny: Path) -> None:
    written = describe(tiny)
    expected = {f"{n}.{f}" for n in {"pairs", "lists", *ALWAYS} for f in ("png", "pdf", "svg")}
    assert {path.name for path in written} == expected
    for path in written:
        assert path.parent == tiny / "figures" and path.stat().st_size > 5_000


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
def test_a_dataset_gets_the_figures_it_has_something_for(
    items: list[Item], names: set[str], tmp_path: Path
) -> None:
    path = dataset(tmp_path / "d", {items[0].task: items}).path
    assert {file.stem for file in describe(path, tmp_path / "out")} == names


def test_a_task_without_items_has_no_panel(tmp_path: Path) -> None:
    items = {"addition": [item("addition", 0, ("1", "2"))], "division": []}
    path = dataset(tmp_path / "d", items).path
    assert list(read_columns(path).tasks) == ["addition"]
    assert describe(path)


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    empty = dataset(tmp_path / "empty", {"addition": []}).path
    with pytest.raises(BadInput, match="empty: no items, so there is nothing to draw"):
        describe(empty)
    with pytest.raises(BadInput, match="no dataset"):
        describe(tmp_path / "nowhere")
    assert not (empty / "figures").exists()


def test_an_operand_that_is_no_number_is_bad_input(tmp_path: Path) -> None:
    path = dataset(tmp_path / "d", {"addition": [item("addition", 0, ("1", "two"))]}).path
    with pytest.raises(BadInput, match="'two' is not a decimal number"):
        describe(path)
