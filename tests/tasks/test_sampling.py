"""Properties of every sampled question: range, digits, splits, shards, ids."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import islice

import pytest

from numbench.records import Item
from numbench.tasks import PAPER_TASKS, number_sampling
from numbench.tasks.base import SamplingSettings
from numbench.tasks.exact_arithmetic import in_range
from numbench.tasks.items import SPLIT_SHARES, item_id, shard_of, split_of
from numbench.tasks.prompts import load_prompt_set
from numbench.tasks.random_words import RandomStream, RandomWords, attempts
from numbench.tasks.shards import Shard, generate_items

LISTS = ("minmax", "interval", "sorting", "mean", "std")


def sample(task: str, count: int, digits: int = 15, seed: int = 7) -> list[Item]:
    return list(islice(generate_items(Shard(task, seed, "train", max_digits=digits)), count))


def digits_of(number: str) -> int:
    return len(number.lstrip("-").replace(".", "").strip("0"))


@pytest.mark.parametrize("digits", [3, 5, 15, 17])
@pytest.mark.parametrize("task", PAPER_TASKS)
def test_operands_and_answers_respect_range_and_digits(task: str, digits: int) -> None:
    for item in sample(task, 400, digits):
        for operand in item.operands:
            assert in_range(operand), item
            assert digits_of(operand) <= digits, item
        if PAPER_TASKS[task].metric == "log_smape":
            assert in_range(str(item.answer))
            assert digits_of(str(item.answer)) <= 15


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_an_attempt_uses_at_most_its_words(task: str) -> None:
    class Counting(RandomWords):
        most = 0

        def randbelow(self, bound: int) -> int:
            Counting.most = max(Counting.most, self._next + 1)
            return super().randbelow(bound)

    for words in islice(
        attempts(RandomStream(3, task, "train", 0), PAPER_TASKS[task].words_per_attempt), 4000
    ):
        words.__class__ = Counting
        PAPER_TASKS[task].sample(words, SamplingSettings(15))
    assert Counting.most == PAPER_TASKS[task].words_per_attempt


@pytest.mark.parametrize("task", LISTS)
def test_no_list_is_degenerate(task: str) -> None:
    for item in sample(task, 1000):
        elements = [Decimal(n) for n in item.operands[task == "interval" :]]
        assert 2 <= len(elements) <= 5
        assert len(set(elements)) > 1
        if task == "interval":
            assert elements == sorted(set(elements))
        if task in ("mean", "std"):
            assert sum(elements) != 0


def test_mean_and_std_share_their_lists() -> None:
    means, stds = sample("mean", 200), sample("std", 200)
    assert [item.operands for item in means] == [item.operands for item in stds]


def test_every_interval_is_an_answer_and_positions_are_uniform() -> None:
    counts = Counter((item.params["length"], item.answer) for item in sample("interval", 6000))
    for length in (2, 3, 4, 5):
        answers = [counts[length, letter] for letter in "ABCDEF"]
        assert all(answers[: length + 1]) and not any(answers[length + 1 :])
        expected = sum(answers) / (length + 1)
        # 6 standard deviations: a false alarm once in some 10^7 runs over other seeds.
        assert all(abs(n - expected) < 6 * expected**0.5 for n in answers[: length + 1])


def test_a_drawn_significand_has_exactly_its_digits() -> None:
    draws = attempts(RandomStream(1, "significands", "train", 0), 1)
    for digits in range(1, 18):
        for attempt in islice(draws, 300):
            text = str(number_sampling.sample_significand(attempt, digits))
            assert len(text) == digits and text[-1] != "0"


def test_pair_digits_cover_their_support() -> None:
    draws = attempts(RandomStream(1, "pairs", "train", 0), 2)
    pairs = Counter(
        number_sampling.sample_digit_counts(attempt, 4) for attempt in islice(draws, 20_000)
    )
    support = {(a, b) for a in range(1, 5) for b in range(1, a + 1)}
    assert set(pairs) == support
    together = Counter(a + b for a, b in pairs.elements())
    expected = 20_000 / 7
    assert all(abs(n - expected) < 6 * expected**0.5 for n in together.values())


def test_signs_have_the_shares_of_the_paper() -> None:
    draws = attempts(RandomStream(1, "signs", "train", 0), 1)
    counts = Counter(number_sampling.sample_signs(attempt) for attempt in islice(draws, 10_000))
    expected = {(1, 1): 4000, (-1, 1): 2000, (1, -1): 2000, (-1, -1): 2000}
    assert all(abs(counts[signs] - n) < 6 * n**0.5 for signs, n in expected.items())


@pytest.mark.parametrize("task", ["minmax", "sorting"])
def test_operators_are_uniform(task: str) -> None:
    counts = Counter(item.operator for item in sample(task, 4000))
    assert all(abs(n - 2000) < 6 * 2000**0.5 for n in counts.values())


def test_powers_and_roots_are_equally_frequent_and_only_integer_powers_have_negative_bases() -> (
    None
):
    powers = sample("exponentiation", 4000)
    roots = [item for item in powers if item.params["root"]]
    assert abs(len(roots) - 2000) < 6 * 2000**0.5
    assert not any(item.operands[0].startswith("-") for item in roots)
    assert not {item.operands[1].lstrip("-") for item in powers} & {"0", "1"}
    assert not {item.operands[0].lstrip("-") for item in powers} & {"0", "1"}


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_splits_share_no_question(task: str) -> None:
    ids = {}
    for split in SPLIT_SHARES:
        some = islice(generate_items(Shard(task, 1, split, max_digits=3)), 300)
        ids[split] = {item.id for item in some}
    assert not ids["test"] & ids["train"] and not ids["test"] & ids["val"]
    assert not ids["val"] & ids["train"]


def test_the_split_ignores_order_sign_and_notation() -> None:
    assert split_of(["1.50", "-2e3"]) == split_of(["2000", "1.5"]) == split_of(["-1.5", "-2000"])


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_shards_share_no_question_and_have_equal_shares(task: str) -> None:
    ids = []
    for index in range(3):
        shard = Shard(task, 1, "train", index, 3, max_digits=3)
        ids.append({item.id for item in islice(generate_items(shard), 300)})
    assert not ids[0] & ids[1] and not ids[0] & ids[2] and not ids[1] & ids[2]
    homes = Counter(shard_of(item.operands, 3) for item in sample(task, 900))
    assert all(abs(homes[index] - 300) < 6 * 300**0.5 for index in range(3))


def test_splits_have_their_shares() -> None:
    counts = Counter(split_of([str(n), str(3 * n + 1)]) for n in range(6400))
    for split, share in SPLIT_SHARES.items():
        assert abs(counts[split] - 100 * share) < 6 * (100 * share) ** 0.5


def test_the_item_id_is_fixed_and_ignores_notation() -> None:
    assert item_id("addition", "+", ("1", "2")) == "addition-5e77a7fcdb92e703"
    assert item_id("addition", "+", ("1.0", "20e-1")) == "addition-5e77a7fcdb92e703"
    others = [("-", ("1", "2")), ("+", ("2", "1")), ("+", ("1", "-2")), ("+", ("1", "20"))]
    assert len({item_id("addition", *question) for question in others}) == 4


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_parsing_a_prompt_inverts_formatting(task: str) -> None:
    for item in sample(task, 200):
        assert load_prompt_set().parse_question(item.prompt) == (task, item.operator, item.operands)


@pytest.mark.parametrize(
    "prompt",
    ["", "What is 1 + 2", "What is 1 % 2?", "What is the mean of the list []?", "hello"],
)
def test_other_texts_are_not_questions(prompt: str) -> None:
    with pytest.raises(ValueError, match="not a question"):
        load_prompt_set().parse_question(prompt)
