"""`numbench.describe`: which figures a dataset has, and what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from numbench.dataset.store import write_dataset
from numbench.describe import describe
from numbench.errors import BadInput
from numbench.records import Difficulty, Item
from tests.test_cli import numbench

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


def dataset(folder: Path, items: Mapping[str, Sequence[Item]], name: str = "tiny") -> Path:
    return write_dataset(
        folder, items, name=name, generator="test", seed=1, split="test", settings={}
    ).path


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Two additions (one of a zero) and two means."""
    additions = [item("addition", 0, ("-0.0120", "1500")), item("addition", 1, ("0", "7"))]
    means = [item("mean", index, ("1", "20", "3.5")[: index + 2], LIST) for index in range(2)]
    return dataset(tmp_path / "tiny", {"addition": additions, "mean": means})


def test_figures_are_written_to_results_and_not_to_the_dataset(tiny: Path, tmp_path: Path) -> None:
    before = sorted(tiny.iterdir())
    done = numbench("describe", str(tiny), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expected = {f"{n}.{f}" for n in {"pairs", "lists", *ALWAYS} for f in ("png", "pdf", "svg")}
    written = {Path(line) for line in done.stdout.split()}
    assert {path.name for path in written} == expected
    for path in written:
        assert path.parent == Path("results/describe/tiny")
        assert (tmp_path / path).stat().st_size > 5_000
    assert sorted(tiny.iterdir()) == before


def test_the_default_folder_is_below_results_for_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    items = {"addition": [item("addition", 0, ("1", "2"))]}
    for name, folder in {"../../x": "x", "..": "dataset", "my set": "my-set"}.items():
        path = dataset(tmp_path / folder, items, name)
        assert {file.parent for file in describe(path)} == {Path("results/describe") / folder}


def test_a_figure_counts_every_item_and_says_what_it_omits(tiny: Path, tmp_path: Path) -> None:
    """The dataset of one pair without a zero, and of two lists at one place."""
    drawn = {path.name: path for path in describe(tiny, tmp_path / "out")}
    again = describe(tiny, tmp_path / "again")
    assert [path.read_bytes() for path in drawn.values()] == [each.read_bytes() for each in again]
    pairs, lists = (drawn[f"{name}.svg"].read_text() for name in ("pairs", "lists"))
    assert "Add (n = 1, 1 with a zero omitted)" in pairs
    assert "Mean (n = 2)" in lists and "dashed: s = x" in lists
    digits = drawn["digits.svg"].read_text()
    assert "Add (n = 2)" in digits and "elements" in digits and "operand 2" in digits


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ([item("sorting", 0, ("1", "2"), LIST)], {"lists", *ALWAYS}),
        ([item("sorting", 0, ("1", "2"))], ALWAYS),
        ([item("division", 0, ("1", "2"))], {"pairs", *ALWAYS}),
        ([item("division", 0, ("0", "0"))], {"pairs", *ALWAYS}),
        ([item("interval", 0, ("5", "123", "1234"))], ALWAYS),
        ([item("exponentiation", k, ("1.5", "2")) for k in (0, 3000)], ALWAYS),
    ],
)
def test_a_dataset_has_the_figures_that_apply_to_its_tasks(
    items: list[Item], names: set[str], tmp_path: Path
) -> None:
    # A task without items has no panel.
    path = dataset(tmp_path / "d", {items[0].task: items, "mean": []})
    assert {file.stem for file in describe(path, tmp_path / "out")} == names


def test_what_cannot_be_drawn_is_bad_input(tmp_path: Path) -> None:
    empty = dataset(tmp_path / "empty", {"addition": []})
    words = dataset(tmp_path / "words", {"addition": [item("addition", 0, ("1", "two"))]})
    for path, message in (
        (empty, "empty: no questions, so there is nothing to draw"),
        (tmp_path / "nowhere", "no dataset"),
        (words, "'two' is not a decimal number"),
    ):
        with pytest.raises(BadInput, match=message):
            describe(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
