"""What is minimised, against numbers worked out apart from the code."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from bench.bittoken.config import ModelConfig
from bench.bittoken.data.packing import Samples
from bench.bittoken.network import Network
from bench.bittoken.training.losses import (
    LossScale,
    Predictions,
    Targets,
    by_task,
    predict,
    token_losses,
)
from bench.bittoken.vocabulary import NUM, Vocabulary

VOCABULARY = Vocabulary("bittoken")
NUMBER = VOCABULARY.ids[NUM]


def network(encoding: str = "bittoken") -> Network:
    torch.manual_seed(1)
    size = len(Vocabulary(encoding))
    return Network(
        ModelConfig(encoding=encoding, vocabulary=size, layers=1, heads=2, width=128, mlp=1)
    )


def samples() -> Samples:
    """Lengths 5 and 4, of which 3 and 2 are questions; the code of each token is its place."""
    tokens = np.array([1, 9, 3, NUMBER, 2, 1, 3, NUMBER, 2])
    return Samples(tokens, np.arange(9)[:, None], np.array([5, 4]), np.array([3, 2]))


def test_answers_are_predicted_from_the_token_before_and_questions_not_at_all() -> None:
    targets = Targets.of(samples())
    # Places of the answers: 3, 4 and 7, 8; each is predicted one place before.
    assert targets.places.tolist() == [2, 3, 6, 7]
    assert targets.tokens.tolist() == [NUMBER, 2, NUMBER, 2]
    assert targets.codes.tolist() == [[3], [4], [7], [8]]
    assert targets.sample.tolist() == [0, 0, 1, 1]


def test_of_text_all_but_the_first_token_carries_loss() -> None:
    text = Samples(np.arange(5), np.zeros((5, 1), np.int64), np.array([2, 3]), np.array([1, 1]))
    targets = Targets.of(text)
    assert targets.places.tolist() == [0, 2, 3]
    assert targets.tokens.tolist() == [1, 3, 4]
    assert targets.sample.tolist() == [0, 1, 1]


def test_predictions_are_both_heads_at_those_places() -> None:
    made, targets = network(), Targets.of(samples())
    hidden = torch.randn(9, 128)
    said = predict(made, hidden, targets)
    assert torch.equal(said.logits, made.lm_head(hidden[[2, 3, 6, 7]]))
    assert said.outputs is not None
    head = made.get_submodule("num_embedding_module.num_head")
    assert torch.equal(said.outputs, head(hidden[[2, 3, 6, 7]]))


@pytest.mark.parametrize("weight", [10.0, 0.0])
def test_the_loss_is_cross_entropy_and_ten_times_the_number_loss_where_a_number_comes(
    weight: float,
) -> None:
    made, size = network(), len(VOCABULARY)
    value = np.array([1.5]).view(np.int64)
    codes = torch.from_numpy(np.array([value, [0]]))
    tokens = torch.tensor([NUMBER, 2])
    targets = Targets(torch.tensor([0, 1]), tokens, codes, torch.tensor([0, 0]))
    logits = torch.zeros(2, size)
    logits[0, NUMBER] = 2.0
    # 1.5 is 0 01111111111 1000…: eleven bits of 64 set. All outputs are 3, in favour of 1.
    said = Predictions(logits, torch.full((2, 64), 3.0))
    found = token_losses(made, said, targets, weight)
    cross = [math.log(math.exp(2) + size - 1) - 2, math.log(size)]
    right, wrong = math.log(1 + math.exp(-3)), math.log(1 + math.exp(3))
    number = (11 * right + 53 * wrong) / 64
    assert found.tolist() == pytest.approx([cross[0] + weight * number, cross[1]], rel=1e-5)


def test_spelled_numbers_have_cross_entropy_alone() -> None:
    made = network("digit")
    size = len(Vocabulary("digit"))
    none = torch.zeros((1, 0), dtype=torch.int8)
    targets = Targets(torch.tensor([0]), torch.tensor([NUMBER]), none, torch.tensor([0]))
    said = predict(made, torch.randn(1, 128), targets)
    assert said.outputs is None
    flat = Predictions(torch.zeros(1, size), None)
    assert token_losses(made, flat, targets, 10.0).tolist() == pytest.approx([math.log(size)])


def test_losses_are_averaged_by_task() -> None:
    losses, task = torch.tensor([1.0, 2.0, 6.0, 3.0]), torch.tensor([0, 2, 2, 0])
    means, counts = by_task(losses, task, 4)
    assert means.tolist() == [2, 0, 4, 0]
    assert counts.tolist() == [2, 0, 2, 0]


def test_losses_are_brought_to_one_size_after_the_warm_up() -> None:
    scale = LossScale(3, 10.0)
    scale.observe(np.array([4.0, 2.0, 0.0]), np.array([5, 5, 0]))
    # The running mean keeps 0.9 of the old: 0.9 · 4 + 0.1 · 14 = 5.
    scale.observe(np.array([14.0, 0.0, 0.0]), np.array([5, 0, 0]))
    assert scale.factors.tolist() == [1, 1, 1]
    scale.settle()
    # 10 / 5 and 10 / 2; of a task that never came nothing is known.
    assert scale.factors.tolist() == pytest.approx([2, 5, 1])


def test_without_a_size_losses_stay_as_they_are() -> None:
    scale = LossScale(1, 0.0)
    scale.observe(np.array([4.0]), np.array([5]))
    scale.settle()
    assert scale.factors.tolist() == [1]
