"""Loss, its normalization and the optimizers, compared with values calculated independently."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from bittoken.loss import LossScale, Predictions, predict, token_losses
from bittoken.network import Network
from bittoken.optimizer import Optimizers
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


def orthogonalized(matrix: np.ndarray) -> np.ndarray:
    """Return five steps of Newton–Schulz with Muon's published coefficients."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix / np.linalg.norm(matrix)
    wide = x.T if x.shape[0] > x.shape[1] else x
    for _ in range(5):
        gram = wide @ wide.T
        wide = a * wide + (b * gram + c * gram @ gram) @ wide
    return wide.T if x.shape[0] > x.shape[1] else wide


def steps_of(network: Network, name: str, settings: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Take two steps with random gradients of one parameter; return its change and them."""
    recipe = load_recipe("cpu", ["training.batch_tokens=1", *settings])
    optimizers, parameter = Optimizers(network, recipe), network.get_parameter(name)
    start = parameter.detach().double().numpy().copy()
    gradients = np.random.default_rng(1).normal(size=(2, *start.shape))
    for gradient in gradients:
        for other in network.parameters():
            other.grad = torch.zeros_like(other)
        parameter.grad = torch.from_numpy(gradient).float()
        optimizers.step()
        assert parameter.grad is None
    return parameter.detach().double().numpy() - start, gradients


def test_a_step_of_muon() -> None:
    network = small.network()
    change, gradients = steps_of(
        network, "transformer.h.0.mlp.c_fc.weight", ["training.tokens=10", "optimizer.scale=0.5"]
    )
    momentum, expected = np.zeros_like(change), np.zeros_like(change)
    for step, gradient in enumerate(gradients):
        # m = μ·m + (1 − μ)·g; Nesterov: (1 − μ)·g + μ·m. A tall matrix moves by √(rows/columns).
        mu = 0.85 + 0.1 * step / 300
        momentum = mu * momentum + (1 - mu) * gradient
        update = orthogonalized((1 - mu) * gradient + mu * momentum)
        # One step of warm-up in ten, then the start of the cosine.
        expected -= 0.5 * 0.02 * np.sqrt(2) * update
    # The optimizer iterates in bfloat16.
    assert np.linalg.norm(change - expected) < 0.02 * np.linalg.norm(change)


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
    change, gradients = steps_of(
        small.network(), name, ["training.tokens=4", "optimizer.warmup=0.5"]
    )
    first = second = expected = np.zeros_like(change)
    for step, gradient in enumerate(gradients):
        first = 0.9 * first + 0.1 * gradient
        second = 0.95 * second + 0.05 * gradient**2
        size = np.sqrt(second / (1 - 0.95 ** (step + 1))) + 1e-8
        # Warm-up over two steps: half the rate, then all of it.
        expected = expected - rate * (0.5, 1.0)[step] * first / (1 - 0.9 ** (step + 1)) / size
    assert change == pytest.approx(expected, abs=1e-6)
