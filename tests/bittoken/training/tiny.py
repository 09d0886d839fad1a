"""Recipes of trainings that take half a second, and the objects that a training consists of."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from bittoken.training.distributed import DistributedContext
from bittoken.training.mixture import Batch, BatchSize, DataLoader, Mixture
from bittoken.training.recipe import Recipe
from bittoken.training.trainer import Trainer
from bittoken.vocabulary import Vocabulary

STEPS = 12
SETTINGS: dict[str, Any] = {
    "name": "tiny",
    "model": {"encoding": "bittoken", "layers": 1, "heads": 2, "width": 128, "mlp": 1},
    "data": {"tasks": ["minmax", "multiplication"], "curriculum": ["multiplication"], "digits": 3},
    "training": {
        "tokens": STEPS * 200,
        "batch_tokens": 200,
        "validate_every": 3,
        "validation_tokens": 300,
        "save_every": 6,
        "precision": "float32",
    },
}


def recipe(**changes: dict[str, Any]) -> Recipe:
    """Return the tiny recipe with some fields of its parts changed."""
    raw = {
        part: {**fields, **changes.get(part, {})} if isinstance(fields, dict) else fields
        for part, fields in {"optimizer": {}, **SETTINGS}.items()
    }
    result = msgspec.convert(raw, Recipe)
    result.check()
    return result


class TrainingParts:
    """A trainer with its mixture and data loaders."""

    def __init__(
        self, recipe: Recipe, distributed: DistributedContext | None = None, rank: int = 0
    ) -> None:
        vocabulary = Vocabulary(recipe.model.encoding)
        self.distributed = distributed or DistributedContext()
        self.trainer = Trainer(recipe, vocabulary, self.distributed)
        self.loader = DataLoader(recipe, vocabulary, "train", rank, None)
        self.mixture = Mixture(recipe, self.loader.scales)

    def batch(self, tokens: int) -> Batch:
        return self.mixture.batch(self.loader, BatchSize(tokens))

    @cached_property
    def all_loaders(self) -> dict[str, DataLoader]:
        """Return the loaders of a complete training."""
        recipe, vocabulary = self.trainer.recipe, self.trainer.vocabulary
        return {
            "train": self.loader,
            "full": DataLoader(recipe, vocabulary, "val", 0, None, use_full_range=True),
            "leveled": DataLoader(recipe, vocabulary, "val", 1, None),
        }


def saved_step(folder: Path) -> int:
    return int((folder / "state" / "latest").read_text().removeprefix("step-"))


def rows(batch: Batch, chosen: list[int]) -> Batch:
    """Return some samples of a batch."""
    index = np.array(chosen)
    return Batch(batch.samples.take(index), batch.task[index], batch.level[index])


Gradients = dict[str, torch.Tensor]


def gradients(parts: TrainingParts, batch: Batch) -> Gradients:
    """Return the gradients of a step on this batch, without updating the parameters."""
    result: Gradients = {}

    def store(step: int) -> None:
        for name, parameter in parts.trainer.network.named_parameters():
            assert parameter.grad is not None
            result[name] = parameter.grad.clone()
            parameter.grad = None

    parts.trainer.optimizers.step = store  # type: ignore[method-assign]
    parts.trainer.step(batch)
    return result


def assert_close(first: Gradients, second: Gradients) -> None:
    assert first.keys() == second.keys()
    for name, gradient in first.items():
        largest = gradient.abs().max().item()
        assert (gradient - second[name]).abs().max().item() <= 1e-5 * max(largest, 1e-3), name
