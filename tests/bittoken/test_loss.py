"""Loss, its normalization and the optimizers, compared with values calculated independently."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from bittoken.evaluation import Predictions, predict, token_losses
from bittoken.mixture import LossScale
from bittoken.optimizer import Optimizers, muon_momentum
from bittoken.recipe import load_recipe
from bittoken.tokens import NUM, Vocabulary
from tests.bittoken import small

VOCABULARY = Vocabulary("bittoken")
NUMBER = VOCABULARY.ids[NUM]
CPU = torch.device("cpu")


@pytest.mark.parametrize("encoding", ["bittoken", "digit"])
def test_every_target_is_predicted_from_the_tokens_before_it(encoding: str) -> None:
    network, rows = small.network(encoding), small.samples([5, 3], encoding)
    rows.is_target[:] = [[0, 0, 0, 1, 1], [0, 1, 1, 0, 0]]
    found = predict(network, rows, CPU)
    assert found.row.tolist() == [0, 0, 1, 1]
    assert found.tokens.tolist() == rows.tokens[[0, 0, 1, 1], [3, 4, 1, 2]].tolist()
    assert found.codes.tolist() == rows.codes[[0, 0, 1, 1], [3, 4, 1, 2]].tolist()
    first, second = small.hidden(network, rows)
    states = torch.cat([first[2:-1], second[:-1]])
    torch.testing.assert_close(found.logits, network.logits(states))
    if encoding == "digit":
        assert found.outputs is None
    else:
        torch.testing.assert_close(found.outputs, network.number_outputs(states))


def test_loss_is_cross_entropy_plus_ten_times_the_number_loss_of_numbers() -> None:
    size = len(VOCABULARY)
    codes = torch.from_numpy(np.array([[1.5], [0.0]]).view(np.int64))
    logits = torch.zeros(2, size)
    logits[0, NUMBER] = 2.0
    # 1.5 is 0 01111111111 1000…: eleven bits of 64 set. All outputs are 3, in favor of 1.
    tokens, rows = torch.tensor([NUMBER, 2]), torch.zeros(2, dtype=torch.int64)
    predictions = Predictions(tokens, codes, rows, logits, torch.full((2, 64), 3.0))
    losses = token_losses(small.network(), predictions, VOCABULARY)
    cross = [math.log(math.exp(2) + size - 1) - 2, math.log(size)]
    correct, incorrect = math.log(1 + math.exp(-3)), math.log(1 + math.exp(3))
    number = (11 * correct + 53 * incorrect) / 64
    assert losses.tolist() == pytest.approx([cross[0] + 10 * number, cross[1]], rel=1e-5)
    spelled = token_losses(
        small.network("digit"), predictions._replace(outputs=None), Vocabulary("digit")
    )
    assert spelled.tolist() == pytest.approx(cross, rel=1e-5)


def test_losses_are_normalized_after_the_warmup() -> None:
    scale = LossScale(3)
    scale.observe(np.array([4.0, 2.0, 0.0]), np.array([5, 5, 0]))
    # The running mean keeps 0.9 of the old: 0.9 · 4 + 0.1 · 14 = 5.
    scale.observe(np.array([14.0, 0.0, 0.0]), np.array([5, 0, 0]))
    assert scale.factors.tolist() == [1, 1, 1]
    scale.freeze()
    # 10 / 5 and 10 / 2; a task without targets keeps 1.
    assert scale.factors.tolist() == pytest.approx([2, 5, 1])


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("lm_head.weight", 0.004),
        ("num_embedding_module.num_head.0.weight", 0.004),
        ("transformer.wte.weight", 0.03),
        ("transformer.ln_f.weight", 0.02),
        ("transformer.h.0.attn.c_attn.bias", 0.02),
    ],
)
def test_a_step_of_adam_with_the_papers_rates(name: str, rate: float) -> None:
    network = small.network()
    # Warm-up over two steps: half the rate, then all of it.
    settings = ["training.batch_tokens=1", "training.tokens=4", "optimizer.warmup=0.5"]
    optimizers = Optimizers(network, load_recipe("cpu", settings))
    parameter = network.get_parameter(name)
    start = parameter.detach().double().numpy().copy()
    gradients = np.random.default_rng(1).normal(size=(2, *start.shape))
    first = second = expected = np.zeros_like(start)
    for step, gradient in enumerate(gradients):
        for other in network.parameters():
            other.grad = torch.zeros_like(other)
        parameter.grad = torch.from_numpy(gradient).float()
        optimizers.step(step)
        assert parameter.grad is None
        first = 0.9 * first + 0.1 * gradient
        second = 0.95 * second + 0.05 * gradient**2
        size = np.sqrt(second / (1 - 0.95 ** (step + 1))) + 1e-8
        expected = expected - rate * (0.5, 1.0)[step] * first / (1 - 0.9 ** (step + 1)) / size
    assert parameter.detach().double().numpy() - start == pytest.approx(expected, abs=1e-6)


def test_the_matrices_of_the_layers_move_by_muons_rate() -> None:
    """An orthogonalized update of a tall matrix has singular values near √(rows / columns)."""
    network = small.network()
    settings = ["training.batch_tokens=1", "training.tokens=10", "optimizer.scale=0.5"]
    optimizers = Optimizers(network, load_recipe("cpu", settings))
    matrix = network.get_parameter("transformer.h.0.mlp.c_fc.weight")
    before = matrix.detach().clone()
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    matrix.grad = torch.randn(matrix.shape, generator=torch.Generator().manual_seed(1))
    optimizers.step(0)
    moved = torch.linalg.svdvals(before - matrix.detach()) / (0.5 * 0.02 * math.sqrt(2))
    assert 0.5 < moved.min() < moved.max() < 1.5
    assert [muon_momentum(step) for step in (0, 150, 300, 999)] == pytest.approx(
        [0.85, 0.9, 0.95, 0.95]
    )
