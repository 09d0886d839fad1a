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
from torch import Tensor

from bittoken.attention import KeyValueCache, PackedLayout
from bittoken.network import Network
from bittoken.token_ids import TokenIds
from bittoken.tokenizer import EncodedQuestion
from numbench.errors import BadInput

DEFAULT_MAX_TOKENS, DEFAULT_MAX_TOKENS_SPELLED = 64, 200
"""Maximum tokens of an answer if a number is one token, and if it is written as text."""


class GeneratedAnswer(NamedTuple):
    """The answer to one question.

    tokens: ids, including the end-of-sample token. values: the values of the number tokens, in
    order. ended: whether the end-of-sample token was generated; otherwise the answer was cut off.
    """

    tokens: list[int]
    values: list[float]
    ended: bool


def default_max_tokens(token_ids: TokenIds) -> int:
    """Return the default limit on the tokens of an answer."""
    return (
        DEFAULT_MAX_TOKENS
        if token_ids.vocabulary.digits_per_token is None
        else DEFAULT_MAX_TOKENS_SPELLED
    )


@torch.inference_mode()
def generate(
    network: Network,
    token_ids: TokenIds,
    questions: Sequence[EncodedQuestion],
    max_tokens: int | Sequence[int] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[GeneratedAnswer]:
    """Return the answers to `questions`, in the same order.

    max_tokens: the maximum tokens of an answer, for all questions or for each; None means
    `default_max_tokens`. An answer is also cut off if it fills the network's context.
    should_stop: called before each token; if it returns true, all unfinished answers are cut off.

    Raises BadInput if a question fills the network's context.
    """
    _check_context(network, questions)
    if max_tokens is None:
        max_tokens = default_max_tokens(token_ids)
    if isinstance(max_tokens, int):
        max_tokens = [max_tokens] * len(questions)
    if not questions:
        return []
    batch = _Batch(network, token_ids, questions, max_tokens)
    while batch.unfinished and not should_stop():
        batch.step()
    return [
        GeneratedAnswer(tokens, values, tokens[-1:] == [token_ids.eos_id])
        for tokens, values in zip(batch.tokens, batch.values, strict=True)
    ]


class _Batch:
    """A batch of questions whose answers are generated token by token.

    tokens, values: those of each answer so far. unfinished: the indices of the questions that are
    not yet answered, in the order of the samples in the cache.
    """

    def __init__(
        self,
        network: Network,
        token_ids: TokenIds,
        questions: Sequence[EncodedQuestion],
        max_tokens: Sequence[int],
    ) -> None:
        self.tokens: list[list[int]] = [[] for _ in questions]
        self.values: list[list[float]] = [[] for _ in questions]
        self.unfinished = list(range(len(questions)))
        self._network, self._token_ids = network, token_ids
        self._device = network.lm_head.weight.device
        lengths = [len(question.tokens) for question in questions]
        context = network.config.context
        self._max_tokens = [
            min(limit, context - length) for limit, length in zip(max_tokens, lengths, strict=True)
        ]
        self._cache = KeyValueCache(network.config.layers)
        tokens = np.concatenate([question.tokens for question in questions])
        codes = np.concatenate([question.codes for question in questions])
        layout = PackedLayout.from_lengths(np.array(lengths), self._device)
        hidden = network(self._tensor(tokens), self._tensor(codes), layout, self._cache)
        self._positions = layout.cu_seqlens.diff().long()
        self._hidden = hidden[layout.cu_seqlens[1:].long() - 1]

    def step(self) -> None:
        """Generate one token of each unfinished answer and remove finished ones from the batch."""
        tokens = self._network.logits(self._hidden).argmax(-1)
        codes = self._predict_codes()
        self._append(tokens, codes)
        remaining = [
            row for row, question in enumerate(self.unfinished) if self._is_unfinished(question)
        ]
        if len(remaining) < len(self.unfinished):
            self.unfinished = [self.unfinished[row] for row in remaining]
            if not remaining:
                return
            rows = torch.tensor(remaining, device=self._device)
            tokens, codes, self._positions = tokens[rows], codes[rows], self._positions[rows]
            self._cache.select(rows)
        layout = self._cache.next_layout(self._positions)
        self._hidden = self._network(tokens, codes, layout, self._cache)
        self._positions = self._positions + 1

    def _predict_codes(self) -> Tensor:
        """Return the codes predicted from the hidden states, shape (unfinished, columns)."""
        encoding = self._network.encoding
        if encoding is None:
            return torch.zeros(len(self._hidden), 0, device=self._device)
        codes: Tensor = encoding.torch_predict_codes(self._network.number_outputs(self._hidden))
        return codes

    def _append(self, tokens: Tensor, codes: Tensor) -> None:
        encoding = self._network.encoding
        for question, token in zip(self.unfinished, tokens.tolist(), strict=True):
            self.tokens[question].append(token)
        number_id = self._token_ids.number_id
        if encoding is None or number_id is None:
            return
        is_number = tokens == number_id
        if not is_number.any():
            return
        values = encoding.decode(codes[is_number].cpu().numpy()).tolist()
        questions = itertools.compress(self.unfinished, is_number.tolist())
        for question, value in zip(questions, values, strict=True):
            self.values[question].append(value)

    def _is_unfinished(self, question: int) -> bool:
        answer = self.tokens[question]
        return answer[-1] != self._token_ids.eos_id and len(answer) < self._max_tokens[question]

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self._device)


def _check_context(network: Network, questions: Sequence[EncodedQuestion]) -> None:
    longest = max((len(question.tokens) for question in questions), default=0)
    if longest >= network.config.context:
        raise BadInput(
            f"a question of {longest} tokens fills the model's context of "
            f"{network.config.context} tokens"
        )
