"""Small networks with random weights, large enough that answers differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from bittoken.config import ModelConfig
from bittoken.encodings.bittoken import BitToken
from bittoken.network import Network
from bittoken.token_ids import TokenIds
from bittoken.tokenizer import EncodedQuestion, encode_question
from bittoken.vocabulary import Vocabulary
from numbench.tasks.prompts import Question

QUESTIONS = (
    Question("addition", "+", ("1", "-2.5")),
    Question("interval", "interval", ("12.25", "3", "7.5", "900")),
    Question("minmax", "minimum", ("0.1", "-7", "12345.678", "5", "1", "2")),
    Question("division", "/", ("-0.001", "3")),
    Question("sorting", "ascending", ("3", "1")),
)


class Unsigned(BitToken):
    """An unsigned encoding: a token `-` precedes negative numbers, as for FoNE."""

    signed = False


def unsigned_vocabulary() -> Vocabulary:
    vocabulary = Vocabulary("bittoken")
    vocabulary.encoding = Unsigned()
    return vocabulary


def network(encoding: str = "bittoken", seed: int = 0, **shape: Any) -> Network:
    """Return a network whose weights depend only on the arguments.

    They are larger than usual initial weights.
    """
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
    result = Network(config)
    with torch.no_grad():
        for name, weights in result.named_parameters():
            weights.normal_(std=1.0 if "wte" in name else 0.3)
            if "ln" in name and name.endswith("weight"):
                weights.add_(1.0)
    torch.random.set_rng_state(state)
    return result.eval()


def questions(
    token_ids: TokenIds, selected: Sequence[Question] = QUESTIONS
) -> list[EncodedQuestion]:
    return [encode_question(question, token_ids) for question in selected]


def packed(lengths: Sequence[int], size: int, number: int, seed: int = 0) -> tuple[Any, Any]:
    """Return random tokens and codes of packed samples; a quarter of the tokens are numbers."""
    rng = np.random.default_rng(seed)
    total = sum(lengths)
    tokens = rng.integers(0, size, total)
    tokens[rng.random(total) < 0.25] = number
    values = rng.normal(size=total) * 10.0 ** rng.integers(-9, 9, total)
    codes = np.where(tokens == number, values.view(np.int64), 0)[:, None]
    return torch.from_numpy(tokens), torch.from_numpy(codes)
