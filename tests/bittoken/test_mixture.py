"""Shares of tasks and levels, losses' weights, and optimizers, compared with values by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch

from bittoken.mixture import (
    Curriculum,
    LossScale,
    Mixture,
    advance_threshold,
    harmonic_mean,
    need_shares,
)
from bittoken.optimizer import Optimizers, muon_momentum
from bittoken.recipe import Recipe, load_recipe
from tests.bittoken import small
from tests.support.case_tables import each_row

CONTRACT = Path(__file__).parent / "contract"


def recipe(steps: int, *settings: str) -> Recipe:
    sizes = [f"training.tokens={steps}", "training.batch_tokens=1"]
    return load_recipe("cpu", [*sizes, *settings])


@each_row(__file__, "level_thresholds")
def test_threshold_of_a_level(warmup: float, level: int, step: int, expected: float) -> None:
    settings = recipe(1000, f"optimizer.warmup={warmup}", "data.falling_threshold=true")
    assert advance_threshold(settings, level, 20, step) == pytest.approx(expected)


@each_row(__file__, "shares")
def test_weak_tasks_get_larger_shares(exponent: float, expected: list[float]) -> None:
    assert need_shares(np.array([0.9, 0.6, 0.5]), exponent) == pytest.approx(expected)
    mixture = Mixture(load_recipe("cpu", [f"data.balance={exponent}"]), {})
    mixture.ratios = old = np.array([0.2, 0.2, 0.6])
    mixture.update_ratios(np.array([0.9, 0.6, 0.5]))
    assert mixture.ratios == pytest.approx((old + expected) / 2)
    assert need_shares(np.ones(4), exponent).tolist() == [0.25] * 4


def even(levels: int) -> np.ndarray:
    return np.full(levels, 1 / levels)


def trace() -> list[list[float]]:
    """Return frontier, performance and ratios of a curriculum after each of 40 validations.

    The scores of a level rise with time and fall with the level; some levels have no items.
    """
    rng = np.random.default_rng(11)
    curriculum = Curriculum.start(rng.dirichlet(np.ones(21)))
    rows = []
    for step in range(40):
        level = np.repeat(np.arange(21), rng.integers(0, 5, 21) * (rng.random(21) < 0.7))
        mean = np.clip(0.2 + step / 20 - level / 25, 0, 1)
        curriculum.update(level, rng.binomial(4, mean) / 4)
        while curriculum.advance((0.9, 0.6)[step % 2]):
            pass
        shares = curriculum.shares()
        rows.append([curriculum.frontier, *curriculum.performance, *curriculum.ratios, *shares])
    return rows


def test_a_curriculum_follows_the_scores_as_it_did() -> None:
    starts = [Curriculum.start(even(levels)).frontier for levels in (41, 3, 2, 1)]
    assert starts == [4, 1, 1, 0]
    rows, expected = np.array(trace()), np.load(CONTRACT / "curriculum.npy")
    assert set(np.diff(expected[:, 0])) >= {0, 1} and expected[-1, 0] == 20
    np.testing.assert_allclose(rows, expected, rtol=1e-9, atol=1e-12)
    # Eight items of the frontier have to be measured before it advances.
    curriculum = Curriculum.start(even(21))
    curriculum.update(np.array([2] * 7), np.ones(7))
    assert not curriculum.advance(0.1)
    # A level that stays unlearned beside learned ones gets up to ten times its share.
    curriculum = Curriculum.start(np.array([0.01, 0.09, 0.5, 0.2, 0.2]))
    curriculum.frontier, level = 4, np.repeat(np.arange(5), 20)
    for _ in range(60):
        curriculum.update(level, (level > 0).astype(float))
    assert 0.05 < curriculum.ratios[0] < 10 * 0.01


@each_row(__file__, "unlocked_levels")
def test_only_a_falling_threshold_lets_time_unlock_levels(
    falling: str, step: int, frontier: int
) -> None:
    of_recipe = recipe(1000, "optimizer.warmup=0.5", f"data.falling_threshold={falling}")
    mixture, restored = (Mixture(of_recipe, {"addition": even(21)}) for _ in range(2))
    level = np.repeat(np.arange(21), 1000)
    mixture.update_curriculum("addition", level, np.full(len(level), 0.3), step)
    assert mixture.curricula["addition"].frontier == frontier
    mixture.update_ratios(np.array([0.5, 0.25]))
    restored.restore(mixture.state())
    assert restored.state() == mixture.state()
    assert restored.shares("addition").tolist() == mixture.shares("addition").tolist()


def test_fixed_shares_stay_and_scores_of_0_leave_the_order_of_means() -> None:
    mixture = Mixture(recipe(9, "data.shares=[3, 1]"), {})
    mixture.update_ratios(np.array([0.9, 0.1]))
    assert mixture.ratios.tolist() == [0.75, 0.25]

    assert harmonic_mean(np.array([0.5, 0.125]), epsilon=0) == pytest.approx(0.2)
    # 2 / (1/1 + 1/0.000001) is about 0.000002.
    assert harmonic_mean(np.array([1.0, 0.0])) == pytest.approx(2e-6, rel=1e-5)
    assert harmonic_mean(np.array([1.0, 0.0])) > harmonic_mean(np.array([0.9, 0.0]))


def test_losses_are_normalized_after_the_warmup() -> None:
    scale = LossScale(3)
    scale.observe(np.array([4.0, 2.0, 0.0]), np.array([5, 5, 0]))
    # The running mean keeps 0.9 of the old: 0.9 · 4 + 0.1 · 14 = 5.
    scale.observe(np.array([14.0, 0.0, 0.0]), np.array([5, 0, 0]))
    assert scale.factors.tolist() == [1, 1, 1]
    scale.freeze()
    # 10 / 5 and 10 / 2; a task without targets keeps 1.
    assert scale.factors.tolist() == pytest.approx([2, 5, 1])


def test_each_parameter_moves_by_the_rate_of_its_group() -> None:
    network = small.network()
    # The first of two steps of the warm-up: half the rates, which are halved.
    optimizers = Optimizers(network, recipe(4, "optimizer.warmup=0.5", "optimizer.scale=0.5"))
    before = {name: weights.detach().clone() for name, weights in network.named_parameters()}
    for weights in network.parameters():
        weights.grad = torch.randn(weights.shape, generator=torch.Generator().manual_seed(1))
    optimizers.step(0)
    assert all(weights.grad is None for weights in network.parameters())
    moved = {name: before[name] - w.detach() for name, w in network.named_parameters()}
    rates = {
        "lm_head.weight": 0.004, "num_embedding_module.num_head.0.weight": 0.004,
        "transformer.wte.weight": 0.03, "transformer.ln_f.weight": 0.02,
        "transformer.h.0.attn.c_attn.bias": 0.02,
    }  # fmt: skip
    for name, rate in rates.items():  # The first step of Adam has the size of the rate.
        assert moved[name].abs().median() == pytest.approx(rate / 4, rel=1e-3)
    # An orthogonalized update of a tall matrix has singular values near √(rows / columns).
    values = torch.linalg.svdvals(moved["transformer.h.0.mlp.c_fc.weight"]) / (0.005 * 2**0.5)
    assert 0.5 < values.min() < values.max() < 1.5
    momentum = [muon_momentum(step) for step in (0, 150, 300, 999)]
    assert momentum == pytest.approx([0.85, 0.9, 0.95, 0.95])
