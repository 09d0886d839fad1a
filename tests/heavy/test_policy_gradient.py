"""The example of reinforcement learning improves the bundled model on a size it does not know."""

import pytest
import torch

from bittoken import load_checkpoint
from examples.reinforcement_learning import (
    greedy_correct,
    paired_difference,
    train,
    validation_items,
)

pytestmark = pytest.mark.heavy


def test_rewards_improve_minmax_on_nine_bits_without_loss_on_eight() -> None:
    torch.set_num_threads(1)
    checkpoint = load_checkpoint("small")
    items = {bits: validation_items(bits, 1000) for bits in (8, 9)}
    before = {bits: greedy_correct(checkpoint, items[bits]) for bits in items}
    assert 0.4 < sum(before[9]) / len(before[9]) < 0.55
    train(checkpoint, steps=150, learning_rate=1e-4, threshold=0.8, seed=1)
    after = {bits: greedy_correct(checkpoint, items[bits]) for bits in items}
    assert paired_difference(before[9], after[9])[1] > 0.08
    assert paired_difference(before[8], after[8])[1] > -0.03
