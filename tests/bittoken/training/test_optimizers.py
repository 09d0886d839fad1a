"""Optimisers: parameter groups, learning rates, schedules and update rules."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bittoken.config import ModelConfig
from bittoken.network import Network
from bittoken.training.optimizers import (
    OptimizerConfig,
    Optimizers,
    learning_rate_share,
    muon_momentum,
    parameter_groups,
)
from bittoken.vocabulary import Vocabulary


def network(**shape: object) -> Network:
    torch.manual_seed(0)
    size = len(Vocabulary("bittoken"))
    small = {"layers": 2, "heads": 2, "width": 128, "mlp": 2} | shape
    return Network(ModelConfig(encoding="bittoken", vocabulary=size, **small))  # type: ignore[arg-type]


def test_rate_rises_linearly_then_falls_along_a_cosine() -> None:
    # 100 steps: 1/10 … 10/10 in the first ten; then (1 + cos(π · done / 90)) / 2.
    assert [learning_rate_share(step, 100, 0.1, "cosine") for step in (0, 4, 9)] == pytest.approx(
        [0.1, 0.5, 1.0]
    )
    # done = 0, 30, 45, 60, 90: cosines 1, 0.5, 0, −0.5, −1.
    rates = [learning_rate_share(step, 100, 0.1, "cosine") for step in (10, 40, 55, 70, 100)]
    assert rates == pytest.approx([1.0, 0.75, 0.5, 0.25, 0.0])


def test_schedule_without_warmup_starts_at_its_peak() -> None:
    assert learning_rate_share(0, 10, 0.0, "cosine") == 1.0
    assert learning_rate_share(0, 1, 0.1, "cosine") == 1.0


def test_momentum_rises_for_300_steps() -> None:
    # 0.85 + 0.1 · step / 300.
    rates = [muon_momentum(step, 0.95) for step in (0, 75, 150, 300, 9000)]
    assert rates == pytest.approx([0.85, 0.875, 0.9, 0.95, 0.95])
    # The start never exceeds a lower final momentum.
    assert muon_momentum(0, 0.5) == 0.5


@pytest.mark.parametrize(
    "shape", [{}, {"combination": "weighted-sum", "head": "mlp"}, {"norm": "layer", "head": "none"}]
)
def test_every_parameter_is_in_one_group_and_layer_matrices_use_muon(
    shape: dict[str, object],
) -> None:
    net = network(**shape)
    groups = parameter_groups(net)
    names = [name for group in groups.values() for name in group]
    assert sorted(names) == sorted(name for name, _ in net.named_parameters())
    for name, parameter in net.named_parameters():
        in_layer = name.startswith("transformer.h.")
        kind = next(kind for kind, group in groups.items() if name in group)
        if in_layer:
            assert kind == ("muon" if parameter.ndim == 2 else "scalars")
        elif "wte" in name:
            assert kind == "embedding"
        else:
            assert kind == ("scalars" if "ln_f" in name else "heads")
    assert len(groups["muon"]) == 2 * 4


def test_default_rates_and_betas_are_the_papers() -> None:
    net = network()
    optimizers = Optimizers(net, OptimizerConfig(), 100)
    rates = {
        name: group["lr"]
        for optimizer in (optimizers.muon, optimizers.adam)
        for group in optimizer.param_groups
        for name, parameter in net.named_parameters()
        if any(parameter is own for own in group["params"])
    }
    assert rates["transformer.h.0.attn.c_attn.weight"] == 0.02
    assert rates["transformer.h.0.attn.c_attn.bias"] == 0.02
    assert rates["transformer.ln_f.weight"] == 0.02
    assert rates["transformer.wte.weight"] == 0.03
    assert rates["lm_head.weight"] == 0.004
    assert rates["num_embedding_module.num_head.0.weight"] == 0.004
    assert len(rates) == len(list(net.parameters()))
    assert all(group["betas"] == (0.9, 0.95) for group in optimizers.adam.param_groups)
    for optimizer in (optimizers.muon, optimizers.adam):
        assert all(group["weight_decay"] == 0 for group in optimizer.param_groups)


def test_optimizer_for_returns_the_parameters_optimizer() -> None:
    net = network()
    optimizers = Optimizers(net, OptimizerConfig(), 100)
    matrices = parameter_groups(net)["muon"]
    for name, parameter in net.named_parameters():
        expected = optimizers.muon if name in matrices else optimizers.adam
        assert optimizers.optimizer_for(parameter) is expected


def orthogonalised(matrix: np.ndarray) -> np.ndarray:
    """Five steps of Newton–Schulz with Muon's published coefficients."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix / np.linalg.norm(matrix)
    wide = x.T if x.shape[0] > x.shape[1] else x
    for _ in range(5):
        gram = wide @ wide.T
        wide = a * wide + (b * gram + c * gram @ gram) @ wide
    return wide.T if x.shape[0] > x.shape[1] else wide


def test_a_step_of_muon() -> None:
    net = network()
    optimizers = Optimizers(net, OptimizerConfig(), 10)
    name = "transformer.h.0.mlp.c_fc.weight"
    parameter = net.get_parameter(name)
    start = parameter.detach().double().numpy().copy()
    gradients = np.random.default_rng(1).normal(size=(2, *parameter.shape))
    momentum, expected = np.zeros_like(start), start.copy()
    for step, gradient in enumerate(gradients):
        for other in net.parameters():
            other.grad = torch.zeros_like(other)
        parameter.grad = torch.from_numpy(gradient).float()
        optimizers.step(step)
        # m = μ·m + (1 − μ)·g; Nesterov: (1 − μ)·g + μ·m. A tall matrix moves by √(rows/columns).
        mu = 0.85 + 0.1 * step / 300
        momentum = mu * momentum + (1 - mu) * gradient
        update = orthogonalised((1 - mu) * gradient + mu * momentum)
        # One step of warm-up in ten, then the start of the cosine.
        expected -= 0.02 * np.sqrt(256 / 128) * update
        assert parameter.grad is None
    moved = parameter.detach().double().numpy() - start
    # The optimiser iterates in bfloat16.
    assert np.linalg.norm(moved - (expected - start)) < 0.02 * np.linalg.norm(moved)
    assert np.linalg.norm(moved) > 0.1


def test_a_step_of_adam() -> None:
    net = network()
    optimizers = Optimizers(net, OptimizerConfig(warmup=0.5), 4)
    parameter = net.get_parameter("lm_head.weight")
    start = parameter.detach().double().numpy().copy()
    first = second = np.zeros_like(start)
    expected = start.copy()
    for step, gradient in enumerate(np.random.default_rng(1).normal(size=(2, *start.shape))):
        for other in net.parameters():
            other.grad = torch.zeros_like(other)
        parameter.grad = torch.from_numpy(gradient).float()
        optimizers.step(step)
        first = 0.9 * first + 0.1 * gradient
        second = 0.95 * second + 0.05 * gradient**2
        size = np.sqrt(second / (1 - 0.95 ** (step + 1))) + 1e-8
        # Warm-up over two steps: half the rate, then all of it.
        rate = 0.004 * (0.5, 1.0)[step]
        expected -= rate * first / (1 - 0.9 ** (step + 1)) / size
    assert parameter.detach().numpy() == pytest.approx(expected, abs=1e-6)
