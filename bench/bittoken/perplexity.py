"""Perplexity of a checkpoint on text."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional

from bittoken.checkpoint import TOKENIZER, load_checkpoint
from bittoken.loss import predict
from bittoken.text import Split, TextData
from bittoken.vocabulary import MINUS, NUM, POINT
from numbench.errors import BadInput, NumbenchError


class Perplexity(NamedTuple):
    """exp of the mean negative log-probability, or None if there is no predicted token.

    all: over all predicted tokens. text: over those that are neither a number nor part of one. A
    [NUM] token counts as one token, whatever its value.
    """

    all: float | None
    text: float | None
    all_tokens: int
    text_tokens: int


def text_perplexity(
    folder: Path, text: Path, split: Split, max_tokens: int | None = None
) -> Perplexity:
    """Return the perplexity of the checkpoint in `folder` on a split of the documents in `text`.

    max_tokens: end after this number of tokens. Computed in float32, on the GPU if there is one.

    Raises BadInput if the checkpoint has no text vocabulary or `text` has no documents of the
    split; NumbenchError if an output of the network is not finite.
    """
    loaded = load_checkpoint(folder)
    vocabulary, context = loaded.vocabulary, loaded.network.config.context
    if len(vocabulary) == len(vocabulary.base_tokens):
        raise BadInput(
            f"{folder} has no text vocabulary: it was trained on numbers only; use a checkpoint "
            'whose recipe has the task "text"'
        )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = loaded.network.to(device)
    of_numbers = [
        token_id
        for token, token_id in vocabulary.ids.items()
        if token in (NUM, MINUS, POINT) or token.isdecimal()
    ]
    loss, tokens = np.zeros(2), np.zeros(2, np.int64)
    data = TextData(text, folder / TOKENIZER, vocabulary, context)
    for samples in data.single_pass(split):
        with torch.no_grad():
            predictions = predict(network, samples, device)
        losses = functional.cross_entropy(predictions.logits, predictions.tokens, reduction="none")
        nats = losses.double().cpu().numpy()
        if not np.isfinite(nats).all():
            raise NumbenchError(f"{folder}: its outputs are not finite: its training has failed")
        if max_tokens is not None:
            nats = nats[: max_tokens - int(tokens[0])]
        is_text = ~np.isin(predictions.tokens.cpu().numpy()[: len(nats)], of_numbers)
        loss += nats.sum(), nats[is_text].sum()
        tokens += len(nats), int(is_text.sum())
        if tokens[0] == max_tokens:
            break
    if not tokens[0]:
        raise BadInput(f"{text} contains too little text: no {split} document (one in 100 is val)")
    counts = [int(count) for count in tokens]
    of_all, of_text = (
        math.exp(min(total / count, 700.0)) if count else None
        for total, count in zip(loss.tolist(), counts, strict=True)
    )
    return Perplexity(of_all, of_text, *counts)
