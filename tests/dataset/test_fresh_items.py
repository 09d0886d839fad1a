"""Fresh items: of the same strata as the frozen ones, disjoint from them, reproducible."""

from collections import defaultdict
from pathlib import Path

import pytest

from numbench.dataset import fresh_items as module
from numbench.dataset.fresh_items import fresh_items, item_stratum, write_fresh_items
from numbench.dataset.store import Dataset, open_dataset, write_dataset
from numbench.errors import BadInput
from numbench.records import Item
from numbench.tasks.items import content_hash, split_of
from numbench.tasks.shards import Shard, generate_items

SEED = 2**255 + 17
QUICK_TASKS = ("interval", "addition", "multiplication", "division", "mean", "std")


@pytest.fixture(scope="module")
def v1() -> Dataset:
    return open_dataset("v1")


@pytest.fixture(scope="module")
def fresh(v1: Dataset) -> dict[str, list[Item]]:
    return fresh_items(v1, ("minmax", *QUICK_TASKS), SEED)


def frozen_contents(dataset: Dataset) -> set[int]:
    return {content_hash(item.operands) for items in dataset.by_task.values() for item in items}


def test_fresh_items_are_as_difficult_as_the_frozen_ones_and_none_of_them(
    v1: Dataset, fresh: dict[str, list[Item]]
) -> None:
    known = frozen_contents(v1)
    for task, items in fresh.items():
        assert list(map(item_stratum, items)) == list(map(item_stratum, v1.by_task[task]))
        assert len({item.id for item in items}) == len(items)
        assert not known & {content_hash(item.operands) for item in items}
        assert {split_of(item.operands) for item in items} == {"test"}
    assert [i.operands for i in fresh["mean"]] == [i.operands for i in fresh["std"]]
    assert fresh_items(v1, ["division"], SEED)["division"] == fresh["division"]
    assert fresh_items(v1, ["division"], SEED + 1)["division"] != fresh["division"]


def test_they_are_the_first_of_their_strata_by_the_definition_of_the_items(
    v1: Dataset, fresh: dict[str, list[Item]]
) -> None:
    known, by_stratum = frozen_contents(v1), defaultdict(list)
    source = generate_items(Shard("division", seed=SEED))
    wanted = [item_stratum(item) for item in v1.by_task["division"]]
    while any(len(by_stratum[key]) < wanted.count(key) for key in set(wanted)):
        item = next(source)
        if content_hash(item.operands) not in known:
            by_stratum[item_stratum(item)].append(item)
    assert fresh["division"] == [by_stratum[key].pop(0) for key in wanted]


def test_a_rare_stratum_gets_the_nearest_difficulty(
    v1: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CANDIDATES", 800)
    drawn = fresh_items(v1, ["division"], SEED)["division"]
    strata = list(
        zip(map(item_stratum, v1.by_task["division"]), map(item_stratum, drawn), strict=True)
    )
    moved = [(old, new) for old, new in strata if old != new]
    assert 0 < len(moved) < 30
    assert all(abs(old.difficulty - new.difficulty) <= 5 for old, new in moved)
    assert len({item.id for item in drawn}) == 500
    monkeypatch.setattr(module, "MAX_CANDIDATES", 300)
    with pytest.raises(BadInput, match="too few different questions"):
        fresh_items(v1, ["division"], SEED)


def test_the_dataset_does_not_tell_its_seed(
    v1: Dataset, fresh: dict[str, list[Item]], tmp_path: Path
) -> None:
    dataset = write_fresh_items(tmp_path, "fresh", v1, fresh)
    assert dataset.by_task == fresh
    assert dataset.manifest.seed is None
    for file in tmp_path.iterdir():
        assert str(SEED) not in file.read_text() and f"{SEED:x}" not in file.read_text()


def test_other_datasets_are_refused(tmp_path: Path, v1: Dataset) -> None:
    other = write_dataset(
        tmp_path, {"addition": v1.by_task["addition"]}, name="other", generator="imported",
        seed=None, split="test", settings={},
    )  # fmt: skip
    with pytest.raises(BadInput, match="other: no fresh questions"):
        fresh_items(other, ["addition"], SEED)
