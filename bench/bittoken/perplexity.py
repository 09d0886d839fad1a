"""Perplexity of a checkpoint on text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from bittoken.attention import PackedLayout
from bittoken.checkpoint import LoadedCheckpoint, is_native_checkpoint, load
from bittoken.data.packing import Samples
from bittoken.encodings.base import FloatArray
from bittoken.network import Network
from bittoken.text.bpe import ByteBpe
from bittoken.text.codec import TextCodec, number_token_mask
from bittoken.text.stream import Split, TextStream
from bittoken.vocabulary import Vocabulary
from numbench.errors import BadInput, NumbenchError

_TOKENS_PER_BATCH = 8192
"""Tokens per forward pass."""

_POSITIONS_PER_SLICE = 1024
"""Positions whose logits are in memory at the same time."""

TokenScorer = Callable[[Samples], FloatArray]
"""Returns the natural log-probability of each token given the previous ones of its sample, (T,).

For a number, it is the log-probability of the token [NUM], regardless of the value. The scores of
tokens without loss are ignored.
"""


class Perplexity(NamedTuple):
    """exp of the mean negative log-probability, or None if there is no predicted token.

    all: over all predicted tokens. text: over those that are neither a number nor part of one.
    """

    all: float | None
    text: float | None
    all_tokens: int
    text_tokens: int


def text_perplexity(
    folder: Path, text: Path, split: Split, max_tokens: int | None = None
) -> Perplexity:
    """Return the perplexity of the checkpoint in `folder` on a split of the documents in `text`.

    Documents are split into windows of the network's context length, which overlap by one token.
    max_tokens: the maximum number of tokens to evaluate. Computed in float32, on the GPU if one is
    available.

    Raises BadInput if the checkpoint has no text vocabulary, if `text` has no documents of the
    split, or if `max_tokens` is less than a window; NumbenchError if an output of the network is
    not finite.
    """
    loaded = _load_text_model(folder)
    context = loaded.network.config.context
    # The last file of a checkpoint with a text vocabulary is the tokenizer.
    codec = TextCodec(loaded.vocabulary, ByteBpe.load(loaded.files[-1]))
    stream = TextStream(text, codec, context, seed=0, split=split)
    network = loaded.network.to("cuda" if torch.cuda.is_available() else "cpu")
    batch_tokens = max(_TOKENS_PER_BATCH, context)
    windows = stream.single_pass(
        batch_tokens if max_tokens is None else min(max_tokens, batch_tokens)
    )
    if max_tokens is not None:
        windows = _limit_tokens(windows, max_tokens)
    try:
        return perplexity(log_probabilities(network), windows, loaded.vocabulary)
    except FloatingPointError as error:
        raise NumbenchError(f"{folder}: {error}: its training has failed") from None


def log_probabilities(network: Network) -> TokenScorer:
    """Return a scorer for `perplexity` that uses this network.

    The scorer raises FloatingPointError if an output of the network is not finite.
    """

    @torch.no_grad()
    def score(samples: Samples) -> FloatArray:
        device = network.lm_head.weight.device
        tokens = torch.from_numpy(samples.tokens).to(device)
        codes = torch.from_numpy(samples.codes).to(device)
        hidden = network(tokens, codes, PackedLayout.from_lengths(samples.lengths, device))
        losses = [
            functional.cross_entropy(network.logits(states).float(), targets, reduction="none")
            for states, targets in zip(
                torch.split(hidden[:-1], _POSITIONS_PER_SLICE),
                torch.split(tokens[1:], _POSITIONS_PER_SLICE),
                strict=True,
            )
        ]
        loss = torch.cat(losses).double().cpu().numpy()
        if not np.isfinite(loss).all():
            raise FloatingPointError("the network's outputs are not finite")
        # The score of the first token of a sample is ignored.
        return np.concatenate([[0.0], -loss])

    return score


def _load_text_model(folder: Path) -> LoadedCheckpoint:
    if not is_native_checkpoint(folder):
        raise BadInput(
            f"{folder}: not a checkpoint trained by numbench, so its text vocabulary is unknown"
        )
    loaded = load(folder)
    if len(loaded.vocabulary) == len(loaded.vocabulary.base_tokens):
        raise BadInput(
            f"{folder} has no text vocabulary: it was trained on numbers only; use a checkpoint "
            'whose recipe has the task "text"'
        )
    return loaded


def _limit_tokens(windows: Iterator[Samples], max_tokens: int) -> Iterator[Samples]:
    """Yield the first windows, with at most `max_tokens` tokens in total."""
    for samples in windows:
        fitting = np.flatnonzero(np.cumsum(samples.lengths) <= max_tokens)
        if len(fitting):
            yield samples.take(fitting)
        if len(fitting) < len(samples.lengths):
            return
        max_tokens -= len(samples.tokens)


def perplexity(
    score: TokenScorer, windows: Iterable[Samples], vocabulary: Vocabulary
) -> Perplexity:
    """Return the perplexity of the tokens with loss.

    Raises ValueError if the scores are not log-probabilities.
    """
    is_number = number_token_mask(vocabulary)
    loss, tokens = np.zeros(2), np.zeros(2, np.int64)
    for samples in windows:
        is_predicted = _predicted_mask(samples)
        scores = _check_scores(score(samples), is_predicted)
        is_text = is_predicted & ~is_number[samples.tokens]
        for index, mask in enumerate((is_predicted, is_text)):
            loss[index] -= scores[mask].sum()
            tokens[index] += np.count_nonzero(mask)
    counts = [int(count) for count in tokens]
    of_all, of_text = (_exp_mean(float(x), n) for x, n in zip(loss, counts, strict=True))
    return Perplexity(of_all, of_text, *counts)


def _predicted_mask(samples: Samples) -> NDArray[np.bool_]:
    """Return which tokens follow the prompt of their sample."""
    starts = np.repeat(np.cumsum(samples.lengths) - samples.lengths, samples.lengths)
    mask: NDArray[np.bool_] = np.arange(len(samples.tokens)) - starts >= np.repeat(
        samples.prompt_lengths, samples.lengths
    )
    return mask


def _check_scores(scores: FloatArray, is_predicted: NDArray[np.bool_]) -> FloatArray:
    if scores.shape != is_predicted.shape:
        raise ValueError(f"{len(is_predicted)} tokens, but scores of shape {scores.shape}")
    if not (scores[is_predicted] <= 0).all():
        raise ValueError("a score is positive or NaN: scores are log-probabilities, not losses")
    return scores.astype(np.float64)


def _exp_mean(loss: float, tokens: int) -> float | None:
    with np.errstate(over="ignore"):
        return float(np.exp(loss / tokens)) if tokens else None
