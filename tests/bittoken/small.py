"""Small networks with random weights that are large enough for answers to differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from bench.bittoken.config import ModelConfig
from bench.bittoken.encodings.bits import BitToken
from bench.bittoken.lexicon import Lexicon
from bench.bittoken.network import Network
from bench.bittoken.question import Encoded, encode
from bench.bittoken.vocabulary import Vocabulary
from bench.tasks.phrasing import Question

QUESTIONS = (
    Question("addition", "+", ("1", "-2.5")),
    Question("interval", "interval", ("12.25", "3", "7.5", "900")),
    Question("minmax", "minimum", ("0.1", "-7", "12345.678", "5", "1", "2")),
    Question("division", "/", ("-0.001", "3")),
    Question("sorting", "ascending", ("3", "1")),
)


class Unsigned(BitToken):
    """An encoding whose sign stands before it as a token, as FoNE's does."""

    signed = False


def unsigned_vocabulary() -> Vocabulary:
    vocabulary = Vocabulary("bittoken")
    vocabulary.encoding = Unsigned()
    return vocabulary


def network(encoding: str = "bittoken", seed: int = 0, **shape: Any) -> Network:
    """Equal arguments give equal weights. Nothing is left of the usual small start."""
    config = ModelConfig(
        **{
            "encoding": encoding,
            "vocabulary": len(Vocabulary(encoding)),
            "layers": 2,
            "heads": 4,
            "width": 160,
            "mlp": 2,
            **shape,
        }
    )
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    made = Network(config)
    with torch.no_grad():
        for name, weights in made.named_parameters():
            weights.normal_(std=1.0 if "wte" in name else 0.3)
            if "ln" in name and name.endswith("weight"):
                weights.add_(1.0)
    torch.random.set_rng_state(state)
    return made.eval()


def questions(lexicon: Lexicon, asked: Sequence[Question] = QUESTIONS) -> list[Encoded]:
    return [encode(question, lexicon) for question in asked]


def packed(lengths: Sequence[int], size: int, number: int, seed: int = 0) -> tuple[Any, Any]:
    """Random tokens and codes of samples laid one after the other, a quarter of them numbers."""
    draw = np.random.default_rng(seed)
    total = sum(lengths)
    tokens = draw.integers(0, size, total)
    tokens[draw.random(total) < 0.25] = number
    values = draw.normal(size=total) * 10.0 ** draw.integers(-9, 9, total)
    codes = np.where(tokens == number, values.view(np.int64), 0)[:, None]
    return torch.from_numpy(tokens), torch.from_numpy(codes)
