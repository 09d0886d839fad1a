"""What a network that makes no mistake is trained on, computed independently of the curriculum."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from bittoken import data as bittoken_data
from bittoken.data import TrainingData
from bittoken.encodings import DIGITS_PER_TOKEN, ENCODINGS
from bittoken.mixture import Mixture
from bittoken.recipe import HARD_TASKS, Recipe, load_recipe
from bittoken.tokens import Vocabulary
from numbench.tasks import PAPER_TASKS
from numbench.tasks.item_tables import build_item_table
from numbench.tasks.questions import item_hashes
from numbench.tasks.shards import Shard, sample_questions

ENCODING_OF_BASE = {2: "bittoken", 10: "digit"}
INTEGERS = ("minmax", "interval", "sorting", "addition", "multiplication")
VALIDATIONS, STEPS, BATCH = 25, 60, 100
CASES = [*itertools.product(INTEGERS, (2, 10), [8]),
         *itertools.product(("addition", *HARD_TASKS), (2, 10), [None])]  # fmt: skip


def test_an_encoding_determines_only_the_base() -> None:
    """So one encoding of each base stands for all of them."""
    names = (*ENCODINGS, *DIGITS_PER_TOKEN)
    recipes = [load_recipe("cpu", ["model.width=208", f"model.encoding={name}"]) for name in names]
    assert {recipe.base for recipe in recipes} == set(ENCODING_OF_BASE)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[pa.Table]]:
    """Collect all questions that are encoded as samples."""
    tables, original = list[pa.Table](), bittoken_data.encode_items

    def encode_items(task: str, items: pa.Table, vocabulary: Vocabulary) -> object:
        tables.append(items)
        return original(task, items, vocabulary)

    monkeypatch.setattr(bittoken_data, "encode_items", encode_items)
    yield tables


def settings(task: str, base: int, bits: int | None) -> Recipe:
    overrides = [
        f"model.encoding={ENCODING_OF_BASE[base]}", f"data.tasks=['{task}']",
        f"data.curriculum=['{task}']", "data.digits=15", f"data.bits={bits or ''}",
        f"training.questions={1000 * BATCH}", f"training.batch_questions={BATCH}",
        f"training.validate_every={STEPS}", "training.validation_items=384",
    ]  # fmt: skip
    return load_recipe("cpu", overrides)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "base", "bits"), CASES)
def test_a_perfect_network_is_trained_on_the_distribution(
    task: str, base: int, bits: int | None, encoded: list[pa.Table]
) -> None:
    recipe = settings(task, base, bits)
    data = TrainingData(recipe, Vocabulary(recipe.model.encoding))
    mixture = Mixture(recipe, data.levels)
    for number in range(VALIDATIONS):
        _, level = data.validation(number, task, mixture.shares(task))
        # The clock stands still: every level is passed by mastery.
        mixture.update_curriculum(task, level, np.ones(len(level)), step=1)
    curriculum = mixture.curricula[task]
    assert curriculum.frontier == len(curriculum.distribution) - 1
    encoded.clear()
    assert sum(len(batch.task) for step in data.steps(mixture, 0, STEPS) for batch in step)
    shard = Shard(task, 99, "train", 0, max_digits=15, max_bits=bits)
    questions = sample_questions(shard, 0, 2 * STEPS * BATCH)
    full = build_item_table(questions, item_hashes(questions))
    trained = pa.concat_tables(encoded)

    # Counted from the easiest or the hardest, no difficulty has more than twice its share.
    deltas = [difficulties(task, base, items) for items in (trained, full)]
    for value, sign in itertools.product(np.unique(deltas[0]), (1, -1)):
        of_trained, of_full = (np.mean(sign * part <= sign * value) for part in deltas)
        noise = 4 * (of_full / len(full)) ** 0.5 + 0.002
        assert of_trained <= 2 * of_full + noise, (value, sign)
    # The shares are close: so are the distributions, within a tenth in total.
    ends = np.unique(np.quantile(deltas[1], np.arange(1, 10) / 10))
    shares = [
        np.bincount(np.searchsorted(ends, d), minlength=len(ends) + 1) / len(d) for d in deltas
    ]
    assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.05
    # Nor has a small set of questions: here the hundred most frequent ones.
    # In a smaller sample, the same share is less certain and the most frequent ones more so.
    assert frequent(trained) <= 2 * frequent(full.slice(0, len(trained))) + 0.005


def difficulties(task: str, base: int, items: pa.Table) -> np.ndarray:
    """Return δ of every question, one by one."""
    found = []
    for item in items.to_pylist():
        answer = tuple(item["answer"]) if isinstance(item["answer"], list) else item["answer"]
        each = PAPER_TASKS[task].difficulty(item["operator"], tuple(item["operands"]), answer)
        found.append(each.base2 if base == 2 else each.base10)
    return np.array(found)


def frequent(items: pa.Table) -> float:
    """Return the share of the hundred most frequent questions."""
    counts = Counter(items["id"].to_pylist())
    return sum(count for _, count in counts.most_common(100)) / len(items)
