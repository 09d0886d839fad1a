"""Greedy decoding of many questions at once (paper, "Architecture and hyperparameters").

The token of highest probability follows. Where that is [NUM], the number is the one that the
number head reads off the same hidden state, and its encoding is what enters next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bench.bittoken.attention import Layout
from bench.bittoken.cache import Cache
from bench.bittoken.lexicon import Lexicon
from bench.bittoken.network import Network
from bench.bittoken.question import Encoded
from bench.errors import BadInput

LIMIT, LIMIT_SPELLED = 64, 200
"""Tokens of an answer at most, where a number is one token and where it is spelled."""


class Generated(NamedTuple):
    """The answer to one question.

    tokens: ids, the one that ends the sample included. values: of the number tokens, in their
    order. ended: whether it ended by itself; else it was cut off.
    """

    tokens: list[int]
    values: list[float]
    ended: bool


def usual_limit(lexicon: Lexicon) -> int:
    """Tokens of an answer at most, where nobody says otherwise."""
    return LIMIT if lexicon.vocabulary.group is None else LIMIT_SPELLED


@torch.inference_mode()
def generate(
    network: Network,
    lexicon: Lexicon,
    questions: Sequence[Encoded],
    limits: int | Sequence[int] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> list[Generated]:
    """The answers to `questions`, in their order.

    limits: tokens of an answer at most, for all or for each; `usual_limit` where none is given.
    stopped: asked before each token; once it says yes, all open answers are cut off. BadInput
    where a question fills the network's context; an answer is cut off where it does.
    """
    _check_room(network, questions)
    if limits is None:
        limits = usual_limit(lexicon)
    if isinstance(limits, int):
        limits = [limits] * len(questions)
    if not questions:
        return []
    batch = _Batch(network, lexicon, questions, limits)
    while batch.open and not stopped():
        batch.step()
    return [
        Generated(tokens, values, tokens[-1:] == [lexicon.end])
        for tokens, values in zip(batch.tokens, batch.values, strict=True)
    ]


class _Batch:
    """Questions whose answers grow by one token at a time.

    tokens, values: of each answer so far. open: the numbers of the questions that still grow, in
    the order of the cache's samples.
    """

    def __init__(
        self,
        network: Network,
        lexicon: Lexicon,
        questions: Sequence[Encoded],
        limits: Sequence[int],
    ) -> None:
        self.tokens: list[list[int]] = [[] for _ in questions]
        self.values: list[list[float]] = [[] for _ in questions]
        self.open = list(range(len(questions)))
        self._network, self._lexicon = network, lexicon
        self._device = network.lm_head.weight.device
        lengths = [len(question.tokens) for question in questions]
        room = network.config.context
        self._limits = [min(n, room - used) for n, used in zip(limits, lengths, strict=True)]
        self._cache = Cache(network.config.layers)
        tokens = np.concatenate([question.tokens for question in questions])
        codes = np.concatenate([question.codes for question in questions])
        layout = Layout.of(np.array(lengths), self._device)
        hidden = network(self._tensor(tokens), self._tensor(codes), layout, self._cache)
        self._positions = layout.starts.diff().long()
        self._hidden = hidden[layout.starts[1:].long() - 1]

    def step(self) -> None:
        """One more token of each open answer; those that have ended leave the batch."""
        tokens = self._network.logits(self._hidden).argmax(-1)
        codes = self._codes()
        self._note(tokens, codes)
        going = [n for n, question in enumerate(self.open) if self._goes_on(question)]
        if not going:
            self.open = []
            return
        if len(going) < len(self.open):
            self.open = [self.open[n] for n in going]
            kept = torch.tensor(going, device=self._device)
            tokens, codes, self._positions = tokens[kept], codes[kept], self._positions[kept]
            self._cache.keep(kept)
        layout = self._cache.step(self._positions)
        self._hidden = self._network(tokens, codes, layout, self._cache)
        self._positions = self._positions + 1

    def _codes(self) -> Tensor:
        """What the number head reads off each hidden state, shape (open, columns)."""
        encoding = self._network.encoding
        if encoding is None:
            return torch.zeros(len(self._hidden), 0, device=self._device)
        codes: Tensor = encoding.torch_decide(self._network.numbers(self._hidden))
        return codes

    def _note(self, tokens: Tensor, codes: Tensor) -> None:
        encoding = self._network.encoding
        is_number = tokens == self._lexicon.number if encoding is not None else tokens < 0
        for question, token in zip(self.open, tokens.tolist(), strict=True):
            self.tokens[question].append(token)
        if encoding is None or not is_number.any():
            return
        values = encoding.value(codes[is_number].cpu().numpy()).tolist()
        numbered = [q for q, yes in zip(self.open, is_number.tolist(), strict=True) if yes]
        for question, value in zip(numbered, values, strict=True):
            self.values[question].append(value)

    def _goes_on(self, question: int) -> bool:
        answer = self.tokens[question]
        return answer[-1] != self._lexicon.end and len(answer) < self._limits[question]

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self._device)


def _check_room(network: Network, questions: Sequence[Encoded]) -> None:
    longest = max((len(question.tokens) for question in questions), default=0)
    if longest >= network.config.context:
        raise BadInput(
            f"a question of {longest} tokens fills the model's context of {network.config.context}"
        )
