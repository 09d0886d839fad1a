"""A policy gradient improves the bundled model on a size that it was not trained on."""

from __future__ import annotations

from itertools import islice

import pytest
import torch

from bittoken.bundled_checkpoints import checkpoint_folder
from bittoken.checkpoint import load
from numbench.rl import Question, sample
from numbench.rl.policy_gradient import PolicyOptions, greedy_correct, train_policy
from numbench.stats.mcnemar import DiscordantCounts, tango_interval
from numbench.tasks.shards import Shard, generate_items

pytestmark = pytest.mark.heavy


def changes(before: list[bool], after: list[bool]) -> DiscordantCounts:
    """Return how many items became correct, and how many wrong."""
    pairs = list(zip(before, after, strict=True))
    return DiscordantCounts(pairs.count((False, True)), pairs.count((True, False)), len(pairs))


def test_rewards_improve_minmax_on_nine_bits_without_loss_on_eight() -> None:
    torch.set_num_threads(1)
    loaded = load(checkpoint_folder("small"))
    shards = {bits: Shard("minmax", 1, "val", max_bits=bits) for bits in (8, 9)}
    items = {bits: list(islice(generate_items(shard), 1000)) for bits, shard in shards.items()}
    before = {bits: greedy_correct(loaded, items[bits]) for bits in items}
    assert 0.4 < sum(before[9]) / len(before[9]) < 0.55

    def draw(seed: int) -> Question:
        return sample("minmax", 9, 1_000_000 + seed, reward="exact", bits=True)

    train_policy(loaded, draw, PolicyOptions(steps=150, seed=1))
    low, _ = tango_interval(changes(before[9], greedy_correct(loaded, items[9])))
    assert low > 0.08
    low, _ = tango_interval(changes(before[8], greedy_correct(loaded, items[8])))
    assert low > -0.03
