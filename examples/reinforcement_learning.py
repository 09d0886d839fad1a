"""Train the bundled small model on rewards alone: minmax of integers longer than it knows.

    python examples/reinforcement_learning.py [--steps 600] [--learning-rate 1e-4] [--threads 1]

REINFORCE with a leave-one-out baseline (Kool, van Hoof and Welling 2019, "Buy 4 REINFORCE samples,
get a baseline for free!"). The policy samples the number of an answer: each bit of a BitToken is an
independent Bernoulli variable with the probability that the number head gives it. The other tokens
of an answer are those of greedy decoding and are not trained.

The model was trained on integers of at most 8 bits. The curriculum starts there and adds one bit
when the mean reward of the last steps reaches a threshold. Prints a table of the accuracy before
and after the training, with 95% intervals over items: greedy answers to questions of the
validation split, which is never trained on.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Sequence
from itertools import islice

import numpy as np
import torch
from torch import Tensor
from training_questions import Question, sample

from bittoken import BitToken, Samples, answer_json, encode_questions, generate, load_checkpoint
from bittoken.checkpoint import Checkpoint
from numbench.records import Completion, Item
from numbench.scoring import is_correct
from numbench.stats.design import Stratum
from numbench.stats.intervals import difference_intervals, wilson
from numbench.tasks.prompts import Question as ParsedQuestion
from numbench.tasks.shards import Shard, generate_items

TASK = "minmax"
LOWEST_BITS, HIGHEST_BITS = 8, 12
QUESTIONS_PER_STEP, ANSWERS_PER_QUESTION = 64, 16
REWARD_WINDOW = 10
"""Steps whose mean reward decides whether the questions become longer."""


def train(
    checkpoint: Checkpoint, steps: int, learning_rate: float, threshold: float, seed: int
) -> None:
    """Train the network in place, one batch of questions a step."""
    network = checkpoint.network
    random = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(network.parameters(), learning_rate, weight_decay=0.0)
    bits, rewards, start = LOWEST_BITS, deque[float](maxlen=REWARD_WINDOW), time.process_time()
    network.train()
    for step in range(steps):
        first = seed * 1_000_000 + step * QUESTIONS_PER_STEP
        seeds = range(first, first + QUESTIONS_PER_STEP)
        questions = [sample(TASK, bits, each, reward="exact", bits=True) for each in seeds]
        loss, reward = policy_loss(checkpoint, questions, random)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        rewards.append(reward)
        is_mastered = len(rewards) == REWARD_WINDOW and sum(rewards) / len(rewards) >= threshold
        if (step + 1) % 20 == 0 or is_mastered:
            elapsed = time.process_time() - start
            print(f"step {step + 1}: {bits} bits, reward {reward:.3f}, {elapsed:.0f} s", flush=True)
        if is_mastered and bits < HIGHEST_BITS:
            bits += 1
            rewards.clear()
    network.eval()


def policy_loss(
    checkpoint: Checkpoint, questions: Sequence[Question], random: torch.Generator
) -> tuple[Tensor, float]:
    """Return the loss whose gradient is the policy gradient, and the mean reward."""
    network, encoding = checkpoint.network, BitToken()
    rows = encode(checkpoint, [question.item for question in questions])
    hidden = network(torch.from_numpy(rows.tokens), torch.from_numpy(rows.codes))
    last = torch.from_numpy(rows.lengths) - 1
    logits = network.number_outputs(hidden[torch.arange(len(last)), last])  # (questions, 64)
    logits = logits.expand(ANSWERS_PER_QUESTION, -1, -1)
    with torch.no_grad():
        bits = torch.bernoulli(logits.sigmoid(), generator=random)
        codes = encoding.predict(bits - 0.5)  # A number's bits are the signs of its outputs.
        values = encoding.decode(codes.flatten(0, 1).numpy()).reshape(bits.shape[:2])
        end = [checkpoint.vocabulary.number_id, checkpoint.vocabulary.eos_id]
        rewards = torch.tensor(
            [
                [
                    question.reward(answer_json(end, [value], checkpoint.vocabulary))
                    for question, value in zip(questions, row, strict=True)
                ]
                for row in values.tolist()
            ]
        )
        scale = ANSWERS_PER_QUESTION / (ANSWERS_PER_QUESTION - 1)
        advantages = (rewards - rewards.mean(0)) * scale
    log_probability = -torch.nn.functional.binary_cross_entropy_with_logits(
        logits, bits, reduction="none"
    ).sum(-1)
    return -(advantages * log_probability).mean(), float(rewards.mean())


def encode(checkpoint: Checkpoint, items: Sequence[Item]) -> Samples:
    """Return the tokens of the questions of some items."""
    questions = [ParsedQuestion(item.task, item.operator, item.operands) for item in items]
    return encode_questions(questions, checkpoint.vocabulary)


def validation_items(bits: int, count: int) -> list[Item]:
    """Return questions of the validation split about integers of at most `bits` bits."""
    return list(islice(generate_items(Shard(TASK, 1, "val", max_bits=bits)), count))


def greedy_correct(checkpoint: Checkpoint, items: Sequence[Item]) -> list[bool]:
    """Return for each item whether its greedily generated answer is correct."""
    vocabulary = checkpoint.vocabulary
    answers = generate(checkpoint.network, vocabulary, encode(checkpoint, items))
    texts = [answer_json(answer.tokens, answer.values, vocabulary) for answer in answers]
    pairs = zip(items, texts, strict=True)
    return [is_correct(item, Completion(text=text)) is True for item, text in pairs]


def table_row(bits: int, before: list[bool], after: list[bool]) -> str:
    """Return the accuracies with Wilson's intervals, and the paired difference with its own."""
    cells = []
    for correct in (before, after):
        low, high = wilson(sum(correct), len(correct))
        cells.append(f"{100 * sum(correct) / len(correct):.1f} ({100 * low:.1f}–{100 * high:.1f})")
    gain, low, high = paired_difference(before, after)
    cells.append(f"{100 * gain:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})")
    return f"| {bits} | {' | '.join(cells)} |"


def paired_difference(before: list[bool], after: list[bool]) -> tuple[float, float, float]:
    """Return the gain in accuracy with its 95% interval, question by question."""
    gains = np.array(after, float) - np.array(before, float)
    mean, low, high = difference_intervals([Stratum("", gains[:, None])], maximum=1.0)
    return float(mean[0]), float(low[0]), float(high[0])


def main() -> None:
    """Train and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    checkpoint = load_checkpoint("small")
    items = {bits: validation_items(bits, options.items) for bits in (8, 9, 10)}
    before = {bits: greedy_correct(checkpoint, items[bits]) for bits in items}
    train(checkpoint, options.steps, options.learning_rate, options.threshold, options.seed)
    print(f"\n| {TASK}, bits | before, % | after, % | difference |\n|---:|---:|---:|---:|")
    for bits in items:
        print(table_row(bits, before[bits], greedy_correct(checkpoint, items[bits])))


if __name__ == "__main__":
    main()
