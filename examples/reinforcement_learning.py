"""Train the bundled small model on rewards alone: minmax of integers longer than it knows.

    python examples/reinforcement_learning.py [--steps 600] [--learning-rate 1e-4] [--threads 1]

The model was trained on integers of at most 8 bits. The curriculum starts there and adds one bit
when the mean reward of the last steps reaches a threshold. Prints a table of the accuracy before
and after the training, with 95 % intervals over items: greedy answers to questions of the
validation split, which is never trained on.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice

import torch

from bittoken.checkpoint import load
from bittoken.bundled_checkpoints import checkpoint_folder
from numbench.records import Item
from numbench.rl import Curriculum, Question, sample
from numbench.rl.policy_gradient import PolicyOptions, StepResult, greedy_correct, train_policy
from numbench.stats.intervals import wilson
from numbench.stats.mcnemar import DiscordantCounts, tango_interval
from numbench.tasks.shards import Shard, generate_items

TASK = "minmax"
LOWEST_BITS, HIGHEST_BITS = 8, 12


def validation_items(bits: int, count: int) -> list[Item]:
    """Return questions of the validation split about integers of at most `bits` bits."""
    return list(islice(generate_items(Shard(TASK, 1, "val", max_bits=bits)), count))


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
    loaded = load(checkpoint_folder("small"))
    sizes = (8, 9, 10)
    items = {bits: validation_items(bits, options.items) for bits in sizes}
    before = {bits: greedy_correct(loaded, items[bits]) for bits in sizes}
    start = time.process_time()
    curriculum = Curriculum(LOWEST_BITS, HIGHEST_BITS, threshold=options.threshold, window=10)

    def draw(seed: int) -> Question:
        number = options.seed * 1_000_000 + seed
        return sample(TASK, curriculum.difficulty, number, reward="exact", bits=True)

    def record(result: StepResult) -> None:
        bits = curriculum.difficulty
        curriculum.record(bits, result.reward)
        if result.step % 20 == 0 or curriculum.difficulty != bits:
            elapsed = time.process_time() - start
            print(
                f"step {result.step}: {bits} bits, reward {result.reward:.3f}, {elapsed:.0f} s",
                flush=True,
            )

    policy = PolicyOptions(
        steps=options.steps, learning_rate=options.learning_rate, seed=options.seed
    )
    train_policy(loaded, draw, policy, record)
    print(f"\n| {TASK}, bits | before, % | after, % | difference |\n|---:|---:|---:|---:|")
    for bits in sizes:
        print(table_row(bits, before[bits], greedy_correct(loaded, items[bits])))


def table_row(bits: int, before: list[bool], after: list[bool]) -> str:
    """Return the accuracies with Wilson's intervals, and the paired difference with Tango's."""
    cells = []
    for correct in (before, after):
        low, high = wilson(sum(correct), len(correct))
        cells.append(f"{100 * sum(correct) / len(correct):.1f} ({100 * low:.1f}–{100 * high:.1f})")
    pairs = list(zip(before, after, strict=True))
    counts = DiscordantCounts(pairs.count((False, True)), pairs.count((True, False)), len(pairs))
    low, high = tango_interval(counts)
    cells.append(f"{100 * counts.difference:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})")
    return f"| {bits} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
