"""Same settings, same bytes; and never a folder that only looks like a dataset."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from bench.dataset.generate import generate
from bench.dataset.settings import Settings
from bench.dataset.store import open_dataset
from bench.dataset.stratify import stratified
from bench.errors import BadInput
from bench.paths import resource
from bench.tasks import TASKS
from bench.tasks.draws import Stream, attempts

SMALL = Settings(name="small", tasks=("division", "mean"), size=20, seed=5)
COMMITTED = resource("datasets") / "v1"


def contents(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.suffix in (".json", ".jsonl")
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_the_default_settings_give_the_committed_bytes(tmp_path: Path, workers: int) -> None:
    generate(out=tmp_path / "v1", workers=workers)
    assert contents(tmp_path / "v1") == contents(COMMITTED)


def test_the_committed_benchmark_has_500_different_items_of_each_task() -> None:
    dataset = open_dataset("v1")
    assert dataset.tasks == tuple(TASKS)
    for items in dataset.by_task.values():
        assert len({item.id for item in items}) == len(items) == 500
    assert len(dataset.by_id) == 4500


def test_v1_is_frozen() -> None:
    """A generator that gives other items makes a v2; v1 stays."""
    assert open_dataset("v1").manifest.sha256 == (
        "acae8c0c5780fd1c9dcb67a5b0b058be0d258118e3ac8f3d7d96229039fb6b77"
    )


def test_generating_again_changes_nothing_and_says_so(tmp_path: Path) -> None:
    first = generate(SMALL, tmp_path / "d")
    before = contents(tmp_path / "d")
    again = generate(SMALL, tmp_path / "d")
    assert (first.unchanged, again.unchanged) == (False, True)
    assert contents(tmp_path / "d") == before


@pytest.mark.parametrize("other", [{"seed": 6}, {"split": "val"}, {"max_digits": 9}])
def test_other_settings_give_other_items(tmp_path: Path, other: dict[str, object]) -> None:
    first = generate(SMALL, tmp_path / "a").dataset
    second = generate(SMALL._replace(**other), tmp_path / "b").dataset  # type: ignore[arg-type]
    assert not first.by_id.keys() & second.by_id.keys()


def test_another_dataset_is_not_overwritten(tmp_path: Path) -> None:
    generate(SMALL, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(BadInput, match="holds another dataset"):
        generate(SMALL._replace(seed=6), tmp_path)
    assert contents(tmp_path) == before


def test_foreign_files_are_not_buried(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(BadInput, match="other files"):
        generate(SMALL, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    generate(SMALL, tmp_path)
    (tmp_path / "mean.jsonl").write_text("")
    with pytest.raises(BadInput, match=r"mean\.jsonl is missing or differs from the manifest"):
        generate(SMALL, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 0}, "at least 1"),
        ({"max_digits": 40}, "between 3 and 17"),
        ({"max_digits": 2}, "between 3 and 17"),
        ({"split": "dev"}, "test, val or train"),
        ({"tasks": ("addition", "logarithm")}, "unknown task 'logarithm'"),
        ({"tasks": ()}, "no task"),
        ({"name": "../v1"}, "letters, digits"),
    ],
)
def test_bad_settings_are_refused_and_leave_nothing(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        generate(SMALL._replace(**change), tmp_path / "d")  # type: ignore[arg-type]
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("size", [1, 7, 100, 999, 1000])
def test_a_stratified_subset_follows_the_difficulties_of_the_whole(size: int) -> None:
    difficulties = [n * n % 13 for n in range(1000)]
    places = stratified(difficulties, size, next(attempts(Stream(1, "s", "test", 0), 3000)))
    assert len(set(places)) == size
    whole, part = Counter(difficulties), Counter(difficulties[place] for place in places)
    cumulated = 0.0
    for difficulty in sorted(whole):
        cumulated += part[difficulty] / size - whole[difficulty] / 1000
        assert abs(cumulated) <= 1 / size + 1e-12


def test_a_subset_cannot_exceed_the_whole() -> None:
    with pytest.raises(ValueError, match="cannot choose 3 of 2"):
        stratified([1, 1], 3, next(attempts(Stream(1, "s", "t", 0), 9)))
