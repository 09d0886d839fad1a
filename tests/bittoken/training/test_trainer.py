"""Training steps: gradients, loss scale, thresholds, and the composition of batches."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from bittoken.training.mixture import Batch, BatchSize
from bittoken.vocabulary import NUM, Vocabulary
from numbench.errors import BadInput
from tests.bittoken.training.tiny import TrainingParts, assert_close, gradients, recipe, rows


def test_micro_batches_give_the_gradients_of_the_batch() -> None:
    whole = TrainingParts(recipe())
    batch = whole.batch(400)
    parts = TrainingParts(recipe(training={"micro_tokens": 64}))
    assert_close(gradients(whole, batch), gradients(parts, batch))
    assert whole.trainer.progress.losses == pytest.approx(parts.trainer.progress.losses, rel=1e-5)
    assert whole.trainer.progress.targets == parts.trainer.progress.targets
    assert whole.trainer.progress.tokens == parts.trainer.progress.tokens


def test_packed_batch_gives_the_mean_gradient_of_its_targets() -> None:
    parts = TrainingParts(recipe(optimizer={"warmup": 0}))
    batch = parts.batch(400)
    chosen = [0, 1, 2, len(batch.task) - 2, len(batch.task) - 1]
    assert len(set(batch.task[chosen])) == 2
    parts.trainer.loss_scale.factors = np.array([0.5, 3.0])
    packed = gradients(parts, rows(batch, chosen))
    summed = {name: torch.zeros_like(gradient) for name, gradient in packed.items()}
    total = 0
    for row in chosen:
        single = rows(batch, [row])
        targets = int((single.samples.lengths - single.samples.prompt_lengths).sum())
        total += targets
        for name, gradient in gradients(parts, single).items():
            summed[name] += targets * gradient
    assert_close({name: gradient / total for name, gradient in summed.items()}, packed)


def test_loss_factor_scales_the_gradients_of_its_task() -> None:
    parts = TrainingParts(recipe(optimizer={"warmup": 0}))
    batch = parts.batch(400)
    for task in (0, 1):
        alone = rows(batch, np.flatnonzero(batch.task == task).tolist())
        parts.trainer.loss_scale.factors = np.ones(2)
        plain = gradients(parts, alone)
        parts.trainer.loss_scale.factors = np.array([3.0, 5.0])
        scaled = gradients(parts, alone)
        assert_close({name: (3, 5)[task] * gradient for name, gradient in plain.items()}, scaled)


def test_losses_are_normalised_at_the_end_of_the_warmup() -> None:
    parts = TrainingParts(recipe(optimizer={"warmup": 0.25}))
    assert parts.trainer.recipe.training.steps == 12
    for step in range(4):
        assert (parts.trainer.loss_scale.factors == 1).all() == (step < 3)
        parts.trainer.step(parts.batch(400))
    assert parts.trainer.loss_scale.factors == pytest.approx(10 / parts.trainer.loss_scale.means)


def test_threshold_of_the_hardest_level_falls_in_the_second_half() -> None:
    trainer = TrainingParts(recipe(training={"tokens": 200 * 1000})).trainer
    for step in (0, 1, 50, 99, 100, 499):
        trainer.progress.step = step
        assert trainer.curriculum_threshold(20, 20) == pytest.approx(0.9), step
    trainer.progress.step = 750
    # S / step = 500 / 750; the rate at 500 is 0.587, at 750 0.178: 0.587 / 0.822 is more.
    assert trainer.curriculum_threshold(20, 20) == pytest.approx(0.6)
    trainer.progress.step = 30
    # 500 / 30 · 1 / 20 in the warm-up.
    assert trainer.curriculum_threshold(1, 20) == pytest.approx(0.9 * 500 / 30 / 20)


def test_batch_respects_its_budget_and_ratios() -> None:
    parts = TrainingParts(recipe())
    for _ in range(8):
        batch = parts.mixture.batch(parts.loader, BatchSize(2000), np.array([0.25, 0.75]))
        tokens = np.bincount(batch.task, batch.samples.lengths)
        assert tokens[0] <= 500
        assert tokens[1] <= 1500
        assert tokens.tolist() == pytest.approx([500, 1500], abs=20)


def test_large_batch_is_filled() -> None:
    batch = TrainingParts(recipe()).batch(100_000)
    assert len(batch.samples.tokens) == pytest.approx(100_000, rel=0.01)


def test_task_without_a_share_is_not_in_the_batch() -> None:
    parts = TrainingParts(recipe())
    batch = parts.mixture.batch(parts.loader, BatchSize(400), np.array([0.0, 1.0]))
    assert set(batch.task) == {1}


@pytest.mark.parametrize("tokens", [1, 12])
def test_batch_too_small_for_a_sample_is_reported(tokens: int) -> None:
    parts = TrainingParts(recipe())
    with pytest.raises(BadInput, match=f"no sample fits into a batch of {tokens} tokens"):
        parts.batch(tokens)


def test_batch_in_questions_has_exactly_as_many() -> None:
    parts = TrainingParts(recipe())
    ratios = np.array([0.3, 0.7])
    for size in (1, 7, 100):
        batch = parts.mixture.batch(parts.loader, BatchSize(questions=size), ratios)
        counts = np.bincount(batch.task, minlength=2)
        assert counts.sum() == len(batch.samples.lengths) == size
        assert counts == pytest.approx(size * ratios, abs=1)


def numbers(batch: Batch, vocabulary: Vocabulary) -> list[list[float]]:
    """Return the numbers of each sample, from its tokens or codes."""
    ends = np.cumsum(batch.samples.lengths)
    rows = []
    for start, end in zip(ends - batch.samples.lengths, ends, strict=True):
        tokens = batch.samples.tokens[start:end]
        if vocabulary.encoding is not None:
            codes = batch.samples.codes[start:end][tokens == vocabulary.ids[NUM]]
            rows.append(vocabulary.encoding.decode(np.ascontiguousarray(codes)).tolist())
        else:
            text = "".join(vocabulary.tokens[token] for token in tokens)
            rows.append([float(number) for number in re.findall(r"(?<![\d|])-?[\d.]+", text)])
    return rows


def test_encodings_get_the_same_questions_in_the_same_order() -> None:
    batches = []
    for encoding in ("bittoken", "digit", "subword", "base10"):
        one = recipe(
            model={"encoding": encoding, "width": 256},
            data={"tasks": ["multiplication"], "curriculum": [], "bits": 8, "shift": 2},
        )
        parts = TrainingParts(one)
        taken = [
            parts.mixture.batch(parts.loader, BatchSize(questions=300), use_curriculum=False)
            for _ in range(3)
        ]
        batches.append([numbers(batch, parts.trainer.vocabulary) for batch in taken])
    assert all(len(row) == 3 and row[0] * row[1] == pytest.approx(row[2]) for row in batches[0][0])
    assert batches[1:] == [batches[0]] * 3
    assert batches[0][0] != batches[0][1]


def test_curricula_reach_their_end_when_the_recipe_says() -> None:
    one = recipe(
        data={"tasks": ["addition"], "curriculum": ["addition"], "bits": 12, "curriculum_end": 0.5},
        training={"tokens": 200 * 1000},
    )
    parts = TrainingParts(one)
    curriculum = parts.mixture.curricula["addition"]
    last = curriculum.levels - 1
    assert last > 3
    frontiers = []
    for step in (0, 250, 500, 1000):
        parts.trainer.progress.step = step
        curriculum.unlock(parts.trainer.min_unlocked_share)
        frontiers.append(curriculum.frontier)
        assert curriculum.ratios.sum() == pytest.approx(1.0)
    assert frontiers == [max(1, round(0.1 * last)), last // 2, last, last]


def test_samples_follow_the_curriculums_shares() -> None:
    parts = TrainingParts(recipe(data={"tasks": ["multiplication"], "digits": 15}))
    shares = parts.mixture.curricula["multiplication"].shares()
    levels = np.concatenate([parts.batch(4000).level for _ in range(10)])
    shares_drawn = np.bincount(levels, minlength=len(shares)) / len(levels)
    assert shares_drawn == pytest.approx(shares, abs=0.03)


def test_loss_falls() -> None:
    small = recipe(
        model={"encoding": "digit", "layers": 1, "width": 64},
        data={"tasks": ["minmax"], "curriculum": [], "digits": 2},
        training={"tokens": 40 * 400, "batch_tokens": 400},
    )
    parts = TrainingParts(small)
    losses = [float(parts.trainer.step(parts.batch(400)).losses[0]) for _ in range(40)]
    assert losses[0] == pytest.approx(np.log(len(parts.trainer.vocabulary)), rel=0.1)
    assert np.mean(losses[-5:]) < 0.6 * losses[0]
