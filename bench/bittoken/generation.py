"""Greedy decoding of a batch of questions (paper, "Architecture and hyperparameters").

Each step appends the most probable token. If it is [NUM], the number head predicts its number from
the same hidden state, and the number's encoding is part of the next input.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from bittoken.encodings.base import IntArray
from bittoken.network import KeyValueCache, Network
from bittoken.tokens import Samples, Vocabulary
from numbench.errors import BadInput


class GeneratedAnswer(NamedTuple):
    """The answer to one question.

    tokens: ids, including the end-of-sample token; without it, the answer was cut off. values: the
    values of the number tokens, in order.
    """

    tokens: list[int]
    values: list[float]


def default_max_tokens(vocabulary: Vocabulary) -> int:
    """Return the default limit on the tokens of an answer."""
    return 64 if vocabulary.encoding is not None else 200


@torch.inference_mode()
def generate(
    network: Network,
    vocabulary: Vocabulary,
    questions: Samples,
    max_tokens: int | Sequence[int] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[GeneratedAnswer]:
    """Return the answers to `questions`, in the same order.

    max_tokens: the maximum tokens of an answer, for all questions or for each; None means
    `default_max_tokens`. An answer is also cut off if it fills the network's context.
    should_stop: called before each token; if it returns true, all unfinished answers are cut off.

    Raises BadInput if a question fills the network's context.
    """
    answers = [GeneratedAnswer([], []) for _ in questions.lengths]
    if not answers:
        return answers
    if max_tokens is None:
        max_tokens = default_max_tokens(vocabulary)
    limits = _limits(questions.lengths, network.config.context, max_tokens)
    device, encoding = network.device, network.encoding
    unfinished = list(range(len(answers)))
    lengths = torch.from_numpy(questions.lengths).to(device)
    cache = KeyValueCache(lengths)
    tokens, codes = (torch.from_numpy(x).to(device) for x in (questions.tokens, questions.codes))
    hidden = network(tokens, codes, cache)
    hidden = hidden[torch.arange(len(hidden), device=device), lengths - 1]
    while not should_stop():
        tokens = network.logits(hidden).argmax(-1)
        codes = codes.new_zeros(len(tokens), codes.shape[-1])
        if encoding is not None:
            codes = encoding.predict(network.number_outputs(hidden))
            is_number = torch.eq(tokens, vocabulary.number_id or 0)
            values = encoding.decode(codes[is_number].cpu().numpy()).tolist()
            numbered = itertools.compress(unfinished, is_number.tolist())
            for question, value in zip(numbered, values, strict=True):
                answers[question].values.append(value)
        for question, token in zip(unfinished, tokens.tolist(), strict=True):
            answers[question].tokens.append(token)
        remaining = [
            row
            for row, question in enumerate(unfinished)
            if answers[question].tokens[-1] != vocabulary.eos_id
            and len(answers[question].tokens) < limits[question]
        ]
        if not remaining:
            break
        if len(remaining) < len(unfinished):
            unfinished = [unfinished[row] for row in remaining]
            rows = torch.tensor(remaining, device=device)
            tokens, codes = tokens[rows], codes[rows]
            cache.select(rows)
        hidden = network(tokens[:, None], codes[:, None], cache)[:, 0]
    return answers


def _limits(lengths: IntArray, context: int, limits: int | Sequence[int]) -> list[int]:
    """Return the maximum tokens of each answer, which has to fit the context."""
    if lengths.max() >= context:
        raise BadInput(
            f"a question of {lengths.max()} tokens fills the model's context of {context} tokens"
        )
    result: list[int] = np.minimum(limits, context - lengths).tolist()
    return result
