"""Recipes of trainings that take a second, and networks to go with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from bench.bittoken.training.crew import Crew
from bench.bittoken.training.mixture import Batch, Feed, Mixture
from bench.bittoken.training.recipe import Recipe
from bench.bittoken.training.trainer import Trainer
from bench.bittoken.vocabulary import Vocabulary

SETTINGS: dict[str, Any] = {
    "name": "tiny",
    "model": {"encoding": "bittoken", "layers": 1, "heads": 2, "width": 128, "mlp": 1},
    "data": {"tasks": ["minmax", "multiplication"], "curriculum": ["multiplication"], "digits": 3},
    "training": {
        "tokens": 24 * 400,
        "batch_tokens": 400,
        "validate_every": 5,
        "validation_tokens": 400,
        "save_every": 10,
        "precision": "float32",
    },
}


def recipe(**changes: dict[str, Any]) -> Recipe:
    """The tiny recipe with some fields of its parts changed."""
    raw = {
        part: {**fields, **changes.get(part, {})} if isinstance(fields, dict) else fields
        for part, fields in {"optimizer": {}, **SETTINGS}.items()
    }
    made = msgspec.convert(raw, Recipe)
    made.check()
    return made


def written(folder: Path, made: Recipe) -> Path:
    """A recipe as a file."""
    path = folder / "recipe.json"
    path.write_bytes(msgspec.json.encode(made))
    return path


class Bench:
    """A trainer with its mixture and its training feed."""

    def __init__(self, made: Recipe, crew: Crew | None = None, process: int = 0) -> None:
        vocabulary = Vocabulary(made.model.encoding)
        self.trainer = Trainer(made, vocabulary, crew or Crew())
        self.feed = Feed(made, vocabulary, "train", process, None)
        self.mixture = Mixture(made, self.feed.scales)

    def batch(self, tokens: int) -> Batch:
        return self.mixture.batch(self.feed, tokens)


def rows(batch: Batch, chosen: list[int]) -> Batch:
    """Some samples of a batch."""
    some = np.array(chosen)
    return Batch(batch.samples.take(some), batch.task[some], batch.level[some])


Gradients = dict[str, torch.Tensor]


def gradients(bench: Bench, batch: Batch) -> Gradients:
    """What a step on this batch would be made of."""
    found: Gradients = {}

    def keep(step: int) -> None:
        for name, parameter in bench.trainer.network.named_parameters():
            assert parameter.grad is not None
            found[name] = parameter.grad.clone()
            parameter.grad = None

    bench.trainer.optimizers.step = keep  # type: ignore[method-assign]
    bench.trainer.step(batch)
    return found
