"""How well a network predicts text: the perplexity of a checkpoint on a folder of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from bench.bittoken.attention import Layout
from bench.bittoken.checkpoint import Loaded, is_ours, load
from bench.bittoken.data.packing import Samples
from bench.bittoken.encodings.base import Floats
from bench.bittoken.network import Network
from bench.bittoken.text.bpe import ByteBpe
from bench.bittoken.text.codec import TextCodec
from bench.bittoken.text.perplexity import Perplexity, Score, perplexity
from bench.bittoken.text.stream import Split, TextStream
from bench.errors import BadInput, NumbenchError

_AT_ONCE = 8192
"""Tokens of a run of the network."""

_SLICE = 1024
"""Positions whose logits are held at the same time."""


def text_perplexity(folder: Path, text: Path, split: Split, most: int | None = None) -> Perplexity:
    """The perplexity of the checkpoint in `folder` on a split of the documents under `text`.

    Documents are cut into windows as long as the network's context, without overlap but for one
    token. most: tokens that enter the network, at most. In float32, on the GPU where there is one.
    BadInput where the checkpoint knows no text, the folder holds none of the split, or `most` is
    less than a window; NumbenchError where the network's outputs are not finite.
    """
    loaded = _loaded(folder)
    context = loaded.network.config.context
    # The last of its files is that of the text vocabulary.
    codec = TextCodec(loaded.vocabulary, ByteBpe.load(loaded.files[-1]))
    stream = TextStream(text, codec, context, seed=0, split=split)
    network = loaded.network.to("cuda" if torch.cuda.is_available() else "cpu")
    at_once = max(_AT_ONCE, context)
    windows = stream.once(at_once if most is None else min(most, at_once))
    if most is not None:
        windows = _at_most(windows, most)
    try:
        return perplexity(log_probabilities(network), windows, loaded.vocabulary)
    except FloatingPointError as error:
        raise NumbenchError(f"{folder}: {error}: its training has failed") from None


def log_probabilities(network: Network) -> Score:
    """What a network gives each token, as `perplexity` asks for it.

    The score raises FloatingPointError where the network's outputs are not finite.
    """

    @torch.no_grad()
    def score(samples: Samples) -> Floats:
        device = network.lm_head.weight.device
        tokens = torch.from_numpy(samples.tokens).to(device)
        codes = torch.from_numpy(samples.codes).to(device)
        hidden = network(tokens, codes, Layout.of(samples.lengths, device))
        losses = [
            functional.cross_entropy(network.logits(before).float(), after, reduction="none")
            for before, after in zip(
                torch.split(hidden[:-1], _SLICE), torch.split(tokens[1:], _SLICE), strict=True
            )
        ]
        loss = torch.cat(losses).double().cpu().numpy()
        if not np.isfinite(loss).all():
            raise FloatingPointError("the network's outputs are not finite")
        # The first token of a sample is not looked at, whatever stands before it.
        return np.concatenate([[0.0], -loss])

    return score


def _loaded(folder: Path) -> Loaded:
    if not is_ours(folder):
        raise BadInput(
            f"{folder}: no checkpoint of numbench's own, so that its text vocabulary is not known"
        )
    loaded = load(folder)
    if len(loaded.vocabulary) == len(loaded.vocabulary.own):
        raise BadInput(
            f"{folder} knows no text: it was trained on numbers alone; give a checkpoint whose "
            'recipe has the task "text"'
        )
    return loaded


def _at_most(windows: Iterator[Samples], tokens: int) -> Iterator[Samples]:
    """The first windows, up to so many tokens."""
    for samples in windows:
        fitting = np.flatnonzero(np.cumsum(samples.lengths) <= tokens)
        if len(fitting):
            yield samples.take(fitting)
        if len(fitting) < len(samples.lengths):
            return
        tokens -= len(samples.tokens)
