"""The training loss, compared with values calculated independently."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from bittoken.config import ModelConfig
from bittoken.data.packing import Samples
from bittoken.network import Network
from bittoken.training.losses import (
    LossScale,
    Predictions,
    Targets,
    mean_loss_by_task,
    predict,
    token_losses,
)
from bittoken.vocabulary import NUM, Vocabulary

VOCABULARY = Vocabulary("bittoken")
NUMBER = VOCABULARY.ids[NUM]


def network(encoding: str = "bittoken") -> Network:
    torch.manual_seed(1)
    size = len(Vocabulary(encoding))
    return Network(
        ModelConfig(encoding=encoding, vocabulary=size, layers=1, heads=2, width=128, mlp=1)
    )


def samples() -> Samples:
    """Return samples of 5 and 4 tokens, prompts of 3 and 2; the code of a token is its index."""
    tokens = np.array([1, 9, 3, NUMBER, 2, 1, 3, NUMBER, 2])
    return Samples(tokens, np.arange(9)[:, None], np.array([5, 4]), np.array([3, 2]))


def test_only_answers_are_targets() -> None:
    targets = Targets.of(samples())
    # The answers are at 3, 4 and 7, 8; each is predicted from the position before.
    assert targets.positions.tolist() == [2, 3, 6, 7]
    assert targets.tokens.tolist() == [NUMBER, 2, NUMBER, 2]
    assert targets.codes.tolist() == [[3], [4], [7], [8]]
    assert targets.sample.tolist() == [0, 0, 1, 1]


def test_all_tokens_of_text_but_the_first_are_targets() -> None:
    text = Samples(np.arange(5), np.zeros((5, 1), np.int64), np.array([2, 3]), np.array([1, 1]))
    targets = Targets.of(text)
    assert targets.positions.tolist() == [0, 2, 3]
    assert targets.tokens.tolist() == [1, 3, 4]
    assert targets.sample.tolist() == [0, 1, 1]


def test_predictions_are_both_heads_at_the_targets() -> None:
    net, targets = network(), Targets.of(samples())
    hidden = torch.randn(9, 128)
    predictions = predict(net, hidden, targets)
    assert torch.equal(predictions.logits, net.lm_head(hidden[[2, 3, 6, 7]]))
    assert predictions.outputs is not None
    head = net.get_submodule("num_embedding_module.num_head")
    assert torch.equal(predictions.outputs, head(hidden[[2, 3, 6, 7]]))


@pytest.mark.parametrize("weight", [10.0, 0.0])
def test_loss_is_cross_entropy_plus_weighted_number_loss_of_numbers(
    weight: float,
) -> None:
    net, size = network(), len(VOCABULARY)
    value = np.array([1.5]).view(np.int64)
    codes = torch.from_numpy(np.array([value, [0]]))
    tokens = torch.tensor([NUMBER, 2])
    targets = Targets(torch.tensor([0, 1]), tokens, codes, torch.tensor([0, 0]))
    logits = torch.zeros(2, size)
    logits[0, NUMBER] = 2.0
    # 1.5 is 0 01111111111 1000…: eleven bits of 64 set. All outputs are 3, in favour of 1.
    predictions = Predictions(logits, torch.full((2, 64), 3.0))
    losses = token_losses(net, predictions, targets, weight)
    cross = [math.log(math.exp(2) + size - 1) - 2, math.log(size)]
    correct, incorrect = math.log(1 + math.exp(-3)), math.log(1 + math.exp(3))
    number = (11 * correct + 53 * incorrect) / 64
    assert losses.tolist() == pytest.approx([cross[0] + weight * number, cross[1]], rel=1e-5)


def test_spelled_numbers_have_only_cross_entropy() -> None:
    net = network("digit")
    size = len(Vocabulary("digit"))
    none = torch.zeros((1, 0), dtype=torch.int8)
    targets = Targets(torch.tensor([0]), torch.tensor([NUMBER]), none, torch.tensor([0]))
    predictions = predict(net, torch.randn(1, 128), targets)
    assert predictions.outputs is None
    flat = Predictions(torch.zeros(1, size), None)
    assert token_losses(net, flat, targets, 10.0).tolist() == pytest.approx([math.log(size)])


def test_losses_are_averaged_by_task() -> None:
    losses, task = torch.tensor([1.0, 2.0, 6.0, 3.0]), torch.tensor([0, 2, 2, 0])
    means, counts = mean_loss_by_task(losses, task, 4)
    assert means.tolist() == [2, 0, 4, 0]
    assert counts.tolist() == [2, 0, 2, 0]


def test_losses_are_normalised_after_the_warmup() -> None:
    scale = LossScale(3, 10.0)
    scale.observe(np.array([4.0, 2.0, 0.0]), np.array([5, 5, 0]))
    # The running mean keeps 0.9 of the old: 0.9 · 4 + 0.1 · 14 = 5.
    scale.observe(np.array([14.0, 0.0, 0.0]), np.array([5, 0, 0]))
    assert scale.factors.tolist() == [1, 1, 1]
    scale.freeze()
    # 10 / 5 and 10 / 2; a task without targets keeps 1.
    assert scale.factors.tolist() == pytest.approx([2, 5, 1])


def test_loss_scale_0_leaves_losses_unchanged() -> None:
    scale = LossScale(1, 0.0)
    scale.observe(np.array([4.0]), np.array([5]))
    scale.freeze()
    assert scale.factors.tolist() == [1]
