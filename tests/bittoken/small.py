"""Small networks with random weights, large enough that answers differ."""

import sys
from typing import Any

import numpy as np
import pytest
import torch

from bittoken.cli import main
from bittoken.encodings.bittoken import BitToken
from bittoken.network import ModelConfig, Network
from bittoken.tokens import Sample, Samples, Vocabulary, pack
from numbench.tasks.prompts import Question

QUESTIONS = (
    Question("addition", "+", ("1", "-2.5")),
    Question("interval", "interval", ("12.25", "3", "7.5", "900")),
    Question("minmax", "minimum", ("0.1", "-7", "12345.678", "5", "1", "2")),
    Question("division", "/", ("-0.001", "3")),
    Question("sorting", "ascending", ("3", "1")),
)


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the `bittoken` command in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["bittoken", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return int(exit_.value.code or 0)


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


def samples(lengths: list[int], encoding: str = "bittoken", seed: int = 0) -> Samples:
    """Return rows of random tokens; a quarter of them are numbers."""
    vocabulary, rng, rows = Vocabulary(encoding), np.random.default_rng(seed), []
    for length in lengths:
        tokens = rng.integers(5, len(vocabulary.base_tokens), length)
        tokens[rng.random(length) < 0.25] = vocabulary.ids["<|num|>"]
        values = rng.normal(size=length) * 10.0 ** rng.integers(-9, 9, length)
        is_number = tokens == vocabulary.ids["<|num|>"]
        rows.append(Sample(tokens.tolist(), values[is_number].tolist(), 0))
    return pack(rows, vocabulary)


def take(rows: Samples, chosen: Any) -> Samples:
    """Return some rows, by index or mask, without columns that would only be padding."""
    width = int(rows.lengths[chosen].max(initial=0))
    return Samples(*(part[chosen, :width] for part in rows[:-1]), rows.lengths[chosen])


def values(rows: Samples, vocabulary: Vocabulary) -> np.ndarray:
    """Return the numbers of rows; 0 for all other tokens."""
    numbers = np.zeros(rows.tokens.shape)
    is_number = rows.tokens == vocabulary.number_id
    if vocabulary.encoding is not None:
        numbers[is_number] = vocabulary.encoding.decode(rows.codes[is_number])
    return numbers


def hidden(network: Network, rows: Samples) -> list[torch.Tensor]:
    """Return the hidden states of the tokens of each row."""
    states = network(torch.from_numpy(rows.tokens), torch.from_numpy(rows.codes))
    return [row[:length] for row, length in zip(states, rows.lengths, strict=True)]
