"""The items of a measurement: endless sequences whose ids say everything."""

from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from numbench.horizon.items import ItemAddress, ItemSequences, parse_id
from numbench.horizon.sizes import answer_tokens, task_sizes
from numbench.tasks import SCALED_TASKS
from numbench.tasks.shards import Shard, generate_items
from tests.support.case_tables import each_row

PARTS = st.tuples(st.sampled_from(sorted(SCALED_TASKS)), st.integers(1, 4096), st.integers(0, 9999))


@given(PARTS)
def test_an_id_says_which_item_it_is(parts: tuple[str, int, int]) -> None:
    assert parse_id(ItemAddress(*parts).id) == parts


@each_row(__file__, "refused_ids")
def test_other_ids_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the id"):
        parse_id(text)


def test_items_are_those_of_the_test_split_in_any_order_of_access() -> None:
    expected = list(islice(generate_items(Shard("long_multiplication", question_size=9)), 5))
    items = ItemSequences()
    for number in (3, 0, 4):
        item = items.by_id(f"long_multiplication-9-{number}")
        assert item == replace(expected[number], id=item.id)
    other = ItemSequences(2).by_id("long_multiplication-9-0")
    assert other.prompt not in {item.prompt for item in expected}


def test_there_are_few_different_questions_of_one_digit() -> None:
    items = ItemSequences()
    count = 0
    while items.item("copy", 1, count) is not None:
        count += 1
    assert 0 < count < 9
    assert items.item("copy", 1, count + 5) is None
    with pytest.raises(ValueError, match="no question"):
        items.by_id(f"copy-1-{count}")


def test_sizes_are_dense_where_digits_count() -> None:
    sizes = task_sizes(SCALED_TASKS["copy"])
    assert sizes[:16] == tuple(range(1, 17)) and sizes[-1] == 4096
    steps = [b / a for a, b in pairwise(sizes[16:])]
    assert max(steps) < 1.13
    assert task_sizes(SCALED_TASKS["long_sum"], 30)[0] == 2
    assert task_sizes(SCALED_TASKS["copy"], 100)[-1] == 99
    assert answer_tokens(SCALED_TASKS["copy"], (300,)) == (110,)
