"""The step: the gradients it takes, however the batch is divided."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.bittoken.data.packing import concatenated
from bench.bittoken.training.mixture import Batch
from bench.errors import BadInput
from tests.bittoken.training.tiny import Bench, Gradients, gradients, recipe, rows


def close(first: Gradients, second: Gradients) -> None:
    assert first.keys() == second.keys()
    for name, gradient in first.items():
        largest = gradient.abs().max().item()
        assert (gradient - second[name]).abs().max().item() <= 1e-5 * max(largest, 1e-3), name


def test_micro_batches_give_the_gradients_of_the_whole() -> None:
    whole = Bench(recipe())
    batch = whole.batch(400)
    parts = Bench(recipe(training={"micro_tokens": 64}))
    close(gradients(whole, batch), gradients(parts, batch))
    assert whole.trainer.progress.losses == pytest.approx(parts.trainer.progress.losses, rel=1e-5)
    assert whole.trainer.progress.targets == parts.trainer.progress.targets
    assert whole.trainer.progress.tokens == parts.trainer.progress.tokens


def test_a_packed_batch_gives_the_mean_of_its_targets_gradients() -> None:
    bench = Bench(recipe(optimizer={"warmup": 0}))
    batch = bench.batch(400)
    chosen = [0, 1, 2, len(batch.task) - 2, len(batch.task) - 1]
    assert len(set(batch.task[chosen])) == 2
    bench.trainer.scale.factors = np.array([0.5, 3.0])
    packed = gradients(bench, rows(batch, chosen))
    summed = {name: torch.zeros_like(gradient) for name, gradient in packed.items()}
    total = 0
    for row in chosen:
        single = rows(batch, [row])
        targets = int((single.samples.lengths - single.samples.questions).sum())
        total += targets
        for name, gradient in gradients(bench, single).items():
            summed[name] += targets * gradient
    close({name: gradient / total for name, gradient in summed.items()}, packed)


def test_a_tasks_factor_scales_its_gradients() -> None:
    bench = Bench(recipe(optimizer={"warmup": 0}))
    batch = bench.batch(400)
    for task in (0, 1):
        alone = rows(batch, np.flatnonzero(batch.task == task).tolist())
        bench.trainer.scale.factors = np.ones(2)
        plain = gradients(bench, alone)
        bench.trainer.scale.factors = np.array([3.0, 5.0])
        scaled = gradients(bench, alone)
        close({name: (3, 5)[task] * gradient for name, gradient in plain.items()}, scaled)


def test_losses_are_normalised_when_the_warm_up_ends() -> None:
    bench = Bench(recipe(optimizer={"warmup": 0.125}))
    assert bench.trainer.recipe.training.steps == 24
    for step in range(4):
        assert (bench.trainer.scale.factors == 1).all() == (step < 3)
        bench.trainer.step(bench.batch(400))
    assert bench.trainer.scale.factors == pytest.approx(10 / bench.trainer.scale.means)


def test_the_threshold_of_the_hardest_level_stays_until_half_time() -> None:
    trainer = Bench(recipe(training={"tokens": 400 * 1000})).trainer
    for step in (0, 1, 50, 99, 100, 499):
        trainer.progress.step = step
        assert trainer.zeta(20, 20) == pytest.approx(0.9), step
    trainer.progress.step = 750
    # S / step = 500 / 750; the rate at 500 is 0.587, at 750 0.178: 0.587 / 0.822 is more.
    assert trainer.zeta(20, 20) == pytest.approx(0.6)
    trainer.progress.step = 30
    # 500 / 30 · 1 / 20 in the warm-up.
    assert trainer.zeta(1, 20) == pytest.approx(0.9 * 500 / 30 / 20)


def test_a_batch_keeps_to_its_budget_and_to_the_ratios() -> None:
    bench = Bench(recipe())
    for _ in range(20):
        batch = bench.mixture.batch(bench.feed, 2000, np.array([0.25, 0.75]))
        tokens = np.bincount(batch.task, batch.samples.lengths)
        assert tokens[0] <= 500
        assert tokens[1] <= 1500
        assert tokens.tolist() == pytest.approx([500, 1500], abs=20)


def test_a_large_batch_is_filled_too() -> None:
    batch = Bench(recipe()).batch(100_000)
    assert len(batch.samples.tokens) == pytest.approx(100_000, rel=0.01)


def test_a_task_without_a_share_is_left_out() -> None:
    bench = Bench(recipe())
    batch = bench.mixture.batch(bench.feed, 400, np.array([0.0, 1.0]))
    assert set(batch.task) == {1}


@pytest.mark.parametrize("tokens", [1, 12])
def test_a_batch_too_small_for_one_sample_is_told(tokens: int) -> None:
    bench = Bench(recipe())
    with pytest.raises(BadInput, match=f"no sample fits into a batch of {tokens} tokens"):
        bench.batch(tokens)


def test_samples_come_at_the_levels_that_the_curriculum_wants() -> None:
    bench = Bench(recipe(data={"tasks": ["multiplication"], "digits": 15}))
    shares = bench.mixture.curricula["multiplication"].shares()
    levels = np.concatenate([bench.batch(4000).level for _ in range(10)])
    found = np.bincount(levels, minlength=len(shares)) / len(levels)
    assert found == pytest.approx(shares, abs=0.03)


def test_the_loss_falls() -> None:
    made = recipe(
        model={"encoding": "digit", "layers": 2, "width": 64, "mlp": 2},
        data={"tasks": ["minmax"], "curriculum": [], "digits": 2},
        training={"tokens": 60 * 1500, "batch_tokens": 1500},
    )
    bench = Bench(made)
    losses = [float(bench.trainer.step(bench.batch(1500)).losses[0]) for _ in range(60)]
    assert losses[0] == pytest.approx(np.log(len(bench.trainer.vocabulary)), rel=0.1)
    assert np.mean(losses[-5:]) < 0.6 * losses[0]


def free_ports(count: int) -> list[str]:
    with ExitStack() as held:
        listeners = [held.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [str(listener.getsockname()[1]) for listener in listeners]


def together(out: Path) -> None:
    """Two processes of `together.py`; they end by themselves."""
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    ports = free_ports(4)
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.bittoken.training.together", str(out), *ports],
            env={**os.environ, **common, "RANK": str(rank), "CUDA_VISIBLE_DEVICES": ""},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        ends = [process.communicate(timeout=120) for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0, 0], ends


def both(first: Bench, second: Bench) -> Batch:
    mine, theirs = first.batch(400), second.batch(400)
    assert mine.samples.tokens.tolist() != theirs.samples.tokens.tolist()
    samples = concatenated([mine.samples, theirs.samples])
    return Batch(samples, np.r_[mine.task, theirs.task], np.r_[mine.level, theirs.level])


def test_two_processes_do_as_one_with_both_their_batches(tmp_path: Path) -> None:
    together(tmp_path)
    first, second = (torch.load(tmp_path / f"weights-{rank}.pt") for rank in range(2))
    alone, other = Bench(recipe()), Bench(recipe(), process=1)
    close(gradients(alone, both(alone, other)), torch.load(tmp_path / "gradients.pt"))
    alone, other = Bench(recipe()), Bench(recipe(), process=1)
    start = {name: p.detach().clone() for name, p in alone.trainer.network.named_parameters()}
    for _ in range(3):
        alone.trainer.step(both(alone, other))
    for name, parameter in alone.trainer.network.named_parameters():
        assert torch.equal(first[name], second[name])
        # Newton–Schulz in bfloat16 enlarges what float32 rounds away.
        moved = (parameter.detach() - start[name]).norm()
        assert (first[name] - parameter.detach()).norm() < 0.1 * moved, name
    progress = torch.load(tmp_path / "progress.pt")
    assert progress == pytest.approx(alone.trainer.progress.losses, rel=1e-3)
    # A training of two, stopped between validations and gone on with, ends like one that was not.
    for rank in range(2):
        whole, parts = (torch.load(tmp_path / f"{name}-{rank}.pt") for name in ("whole", "parts"))
        assert all(torch.equal(whole[name], parts[name]) for name in whole)
