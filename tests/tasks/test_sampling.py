"""Sampled questions: equal to those of the scalar oracle; range, digits, splits, shards, ids."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.records import Item
from numbench.tasks import PAPER_TASKS, RandomWords
from numbench.tasks.decimal_arrays import round_to_digits
from numbench.tasks.exact_arithmetic import in_range
from numbench.tasks.items import SPLIT_BUCKETS, item_id, shard_of, split_of
from numbench.tasks.questions import SeenHashes
from numbench.tasks.shards import Shard, generate_items
from tests.support import reference_answers


def sample(task: str, count: int, digits: int = 15, seed: int = 7) -> list[Item]:
    return list(islice(generate_items(Shard(task, seed, "train", max_digits=digits)), count))


@pytest.mark.parametrize("digits", [3, 15, 17])
@pytest.mark.parametrize("task", PAPER_TASKS)
def test_operands_and_answers_respect_the_rules(task: str, digits: int) -> None:
    def digits_of(number: str) -> int:
        return len(number.lstrip("-").replace(".", "").strip("0"))

    for item in sample(task, 150, digits):
        for operand in item.operands:
            assert in_range(operand) and digits_of(operand) <= digits, item
        if PAPER_TASKS[task].metric == "log_smape":
            assert in_range(str(item.answer)) and digits_of(str(item.answer)) <= 15
        if "length" in item.params:
            elements = [Decimal(n) for n in item.operands[task == "interval" :]]
            assert 2 <= len(elements) <= 5 and len(set(elements)) > 1
            assert task != "interval" or elements == sorted(set(elements))
            assert task not in ("mean", "std") or sum(elements)


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_splits_and_shards_share_no_question(task: str) -> None:
    shards = [Shard(task, 1, split, max_digits=3) for split in ("test", "val")]
    shards += [Shard(task, 1, "train", index, 3, max_digits=3) for index in range(3)]
    ids = [item.id for shard in shards for item in islice(generate_items(shard), 300)]
    assert len(set(ids)) == len(ids) == 1500
    homes = Counter(shard_of(item.operands, 3) for item in sample(task, 900))
    assert all(abs(homes[index] - 300) < 6 * 300**0.5 for index in range(3))


def test_the_split_depends_on_the_values_alone() -> None:
    assert split_of(["1.50", "-2e3"]) == split_of(["2000", "1.5"]) == split_of(["-1.5", "-2000"])
    counts = Counter(split_of([str(n), str(3 * n + 1)]) for n in range(6400))
    for split, buckets in SPLIT_BUCKETS.items():
        share = len(buckets)
        assert abs(counts[split] - 100 * share) < 6 * (100 * share) ** 0.5


def test_the_item_id_is_fixed_and_ignores_notation() -> None:
    assert item_id("addition", "+", ("1", "2")) == "addition-5e77a7fcdb92e703"
    assert item_id("addition", "+", ("1.0", "20e-1")) == "addition-5e77a7fcdb92e703"
    others = [("-", ("1", "2")), ("+", ("2", "1")), ("+", ("1", "-2")), ("+", ("1", "20"))]
    assert len({item_id("addition", *question) for question in others}) == 4


@given(st.integers(0, 2**64 - 1), st.integers(1, 10**18))
def test_words_are_mapped_evenly_and_monotonically(word: int, bound: int) -> None:
    value = RandomWords([word]).randbelow(bound)
    assert 0 <= value < bound
    assert value * 2**64 <= word * bound < (value + 1) * 2**64


def test_weights_are_proportions() -> None:
    hits = [RandomWords([i << 61]).weighted_index([1, 0, 2, 5]) for i in range(8)]
    assert hits == [0, 2, 2, 3, 3, 3, 3, 3]


@given(st.lists(st.lists(st.integers(0, 300), max_size=30), max_size=12), st.integers(0, 4))
def test_seen_hashes_report_first_appearances_like_a_set(
    batches: list[list[int]], spread: int
) -> None:
    seen, model = SeenHashes(4), set[int]()
    for batch in batches:
        # Depending on the spread, adjacent values share a slot of the filter or not.
        hashes = [value << 8 * spread for value in batch]
        expected = []
        for value in hashes:
            expected.append(value not in model)
            model.add(value)
        assert seen.add(np.array(hashes, np.uint64)).tolist() == expected
    assert seen.count == len(model)


@given(
    st.integers(-(10**17), 10**17).filter(bool),
    st.integers(-(10**17), 10**17).filter(bool),
    st.sampled_from("*/"),
)
def test_a_proved_rounding_is_exact(a: int, b: int, operator: str) -> None:
    x, y = np.array([a], np.longdouble), np.array([b], np.longdouble)
    true = Fraction(a) * b if operator == "*" else Fraction(a, b)
    (significand, exponent), proved = round_to_digits(x * y if operator == "*" else x / y, 15)
    rounded = Fraction(int(significand[0])) * Fraction(10) ** int(exponent[0])
    assert not proved[0] or rounded == reference_answers.rounded(true)


def test_ties_are_never_proved_by_floating_point() -> None:
    ties = np.array([1234567890123455, 1234567890123465, -9999999999999995], np.longdouble)
    assert not round_to_digits(ties, 15)[1].any()


def test_answers_need_no_long_double(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is no longer than float64, exact arithmetic computes every answer."""
    expected = {task: sample(task, 40) for task in PAPER_TASKS}
    monkeypatch.setattr("numbench.tasks.decimal_arrays._HAS_64_BITS", False)
    assert {task: sample(task, 40) for task in PAPER_TASKS} == expected
