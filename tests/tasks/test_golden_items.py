"""Same seed, same bytes: items and datasets are those of the committed hashes."""

import json

import pytest

from tests.tasks import golden_items

GOLDEN = json.loads(golden_items.PATH.read_text())
SHARDS = golden_items.shards()


def test_the_first_items_of_every_task_and_setting_are_pinned() -> None:
    assert SHARDS.keys() == GOLDEN["items"].keys()
    chosen = [name for name in SHARDS if ", test," in name and "size 1000" not in name]
    for name in chosen:
        count, expected, _ = GOLDEN["items"][name]
        count = min(golden_items.QUICK_ITEMS, count)
        assert golden_items.item_hash(SHARDS[name], count) == (count, expected), name


@pytest.mark.heavy
@pytest.mark.parametrize("name", SHARDS)
def test_all_items_are_pinned(name: str) -> None:
    count, _, expected = GOLDEN["items"][name]
    assert golden_items.item_hash(SHARDS[name], count) == (count, expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", GOLDEN["datasets"])
def test_whole_datasets_are_pinned(name: str) -> None:
    settings = golden_items.datasets()[name]
    assert golden_items.dataset_hash(settings) == GOLDEN["datasets"][name]
