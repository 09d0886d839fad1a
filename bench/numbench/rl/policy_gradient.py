"""A policy gradient for the small models: train a network on rewards alone.

REINFORCE with a leave-one-out baseline (Kool, van Hoof and Welling 2019, "Buy 4 REINFORCE samples,
get a baseline for free!"). The policy samples the answer's number: each bit of a BitToken is an
independent Bernoulli variable with the probability that the number head gives it. The other tokens
of an answer are those of greedy decoding and are not trained; only tasks whose answer is one number
can be trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bittoken.attention import PackedLayout
from bittoken.checkpoint import LoadedCheckpoint
from bittoken.encodings.bit_vectors import torch_pack_bits
from bittoken.encodings.bittoken import BitToken
from bittoken.generation import generate
from bittoken.tokenizer import EncodedQuestion, answer_json, decode_tokens, encode_question
from numbench.errors import BadInput
from numbench.records import Completion, Item
from numbench.rl.questions import Question
from numbench.scoring import is_correct
from numbench.tasks import TASKS
from numbench.tasks.prompts import Question as ParsedQuestion


class PolicyOptions(NamedTuple):
    """Settings of a training.

    questions: per step. samples: answers sampled for each question, at least 2.
    """

    steps: int = 150
    questions: int = 64
    samples: int = 16
    learning_rate: float = 1e-4
    seed: int = 1


class StepResult(NamedTuple):
    """A finished step. reward: mean reward of its sampled answers, 0 to 1."""

    step: int
    reward: float


def train_policy(
    loaded: LoadedCheckpoint,
    draw: Callable[[int], Question],
    options: PolicyOptions | None = None,
    on_step: Callable[[StepResult], None] = lambda _: None,
) -> None:
    """Train the network of a checkpoint in place with the rewards of sampled answers.

    draw: returns the question of a seed, from 0: never the same seed twice.

    Raises BadInput if the network does not encode numbers as BitTokens, an answer of a question is
    not a number, or there are fewer than two samples.
    """
    options = options or PolicyOptions()
    if not isinstance(loaded.network.encoding, BitToken):
        raise BadInput("policy gradient: the checkpoint's numbers are not BitTokens")
    if options.samples < 2:
        raise BadInput("policy gradient: use at least 2 samples per question")
    random = torch.Generator().manual_seed(options.seed)
    optimizer = torch.optim.AdamW(
        loaded.network.parameters(), options.learning_rate, weight_decay=0.0
    )
    loaded.network.train()
    for step in range(options.steps):
        first = step * options.questions
        questions = [draw(first + index) for index in range(options.questions)]
        loss, reward = _policy_loss(loaded, questions, options.samples, random)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(loaded.network.parameters(), 1.0)
        optimizer.step()
        on_step(StepResult(step + 1, reward))
    loaded.network.eval()


def greedy_correct(loaded: LoadedCheckpoint, items: Sequence[Item], batch: int = 256) -> list[bool]:
    """Return for each item whether its greedily generated answer is correct."""
    correct: list[bool] = []
    for start in range(0, len(items), batch):
        part = items[start : start + batch]
        answers = generate(loaded.network, loaded.token_ids, [_encode(loaded, i) for i in part])
        for item, answer in zip(part, answers, strict=True):
            text = decode_tokens(answer.tokens, answer.values, loaded.token_ids)
            correct.append(
                is_correct(item, Completion(text=answer_json(text, answer.ended))) is True
            )
    return correct


def _policy_loss(
    loaded: LoadedCheckpoint, questions: Sequence[Question], samples: int, random: torch.Generator
) -> tuple[Tensor, float]:
    """Return the loss whose gradient is the policy gradient, and the mean reward."""
    logits = _bit_logits(loaded, questions)
    with torch.no_grad():
        probabilities = logits.sigmoid().expand(samples, -1, -1)
        bits = torch.bernoulli(probabilities, generator=random)
        rewards = _rewards(loaded, questions, bits)
        advantages = (rewards - rewards.mean(0)) * samples / (samples - 1)
    log_probability = -torch.nn.functional.binary_cross_entropy_with_logits(
        logits.expand(samples, -1, -1), bits, reduction="none"
    ).sum(-1)
    return -(advantages * log_probability).mean(), float(rewards.mean())


def _bit_logits(loaded: LoadedCheckpoint, questions: Sequence[Question]) -> Tensor:
    """Return the logits of the bits of each answer's number: (questions, 64), float32."""
    for question in questions:
        if TASKS[question.item.task].answer_kind != "number":
            raise BadInput(f"policy gradient: answers of {question.item.task!r} are not numbers")
    encoded = [_encode(loaded, question.item) for question in questions]
    tokens = torch.from_numpy(np.concatenate([part.tokens for part in encoded]))
    codes = torch.from_numpy(np.concatenate([part.codes for part in encoded]))
    lengths = np.array([len(part.tokens) for part in encoded])
    hidden = loaded.network(tokens, codes, PackedLayout.from_lengths(lengths))
    last = torch.from_numpy(np.cumsum(lengths) - 1)
    return loaded.network.number_outputs(hidden[last]).float()


def _rewards(loaded: LoadedCheckpoint, questions: Sequence[Question], bits: Tensor) -> Tensor:
    """Return the reward of each sampled number: (samples, questions)."""
    codes = torch_pack_bits(bits > 0).flip(-1).contiguous().view(torch.int64)
    values = codes.squeeze(-1).numpy().view(np.float64)
    number_id = loaded.token_ids.number_id
    assert number_id is not None
    rewards = [
        [
            question.reward(
                answer_json(decode_tokens([number_id], [value], loaded.token_ids), True)
            )
            for question, value in zip(questions, row, strict=True)
        ]
        for row in values.tolist()
    ]
    return torch.tensor(rewards)


def _encode(loaded: LoadedCheckpoint, item: Item) -> EncodedQuestion:
    question = ParsedQuestion(item.task, item.operator, item.operands)
    return encode_question(question, loaded.token_ids)
