"""Measure the training of the small models against a plain loop. Prints Markdown.

    python benchmarks/small_models.py [--rounds 5]

Both train on the same questions in turn, with one thread. Every ratio is the median over the rounds
of the ratio within a round, because a busy machine slows down both sides.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch.nn import functional

from bittoken.data import Batch, TrainingData
from bittoken.evaluation import NUMBER_LOSS
from bittoken.mixture import Mixture
from bittoken.network import Network
from bittoken.recipe import Recipe, load_recipe
from bittoken.tokens import Samples, Vocabulary
from bittoken.train import Training

STEPS = 4
"""Steps of a turn."""
LOSS_TOLERANCE = 1e-3
"""Maximum difference between the losses of both loops with the same weights."""
NETWORKS = {
    "4×128, two tasks": ["data.digits=4"],
    "6×256, six tasks": [
        "data.tasks=['minmax', 'interval', 'sorting', 'addition', 'multiplication', 'division']",
        "model.layers=6",
        "model.width=256",
        "training.batch_tokens=8192",
    ],
}


class PlainLoop:
    """A loop as one would write it first.

    float32, AdamW, one matrix padded to the longest question, logits at every position.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._vocabulary = Vocabulary(recipe.model.encoding)
        torch.manual_seed(recipe.training.seed)
        self._network = Network(recipe.config(len(self._vocabulary)))
        self._optimizer = torch.optim.AdamW(self._network.parameters(), lr=1e-3)

    def step(self, samples: Samples) -> float:
        """Train on a batch and return its mean loss per target before the step."""
        tokens, codes, is_target = (
            torch.from_numpy(part) for part in (samples.tokens, samples.codes, samples.is_target)
        )
        hidden = self._network(tokens, codes)
        logits, following = self._network.logits(hidden[:, :-1]), is_target[:, 1:]
        losses = functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")
        loss = losses[following].sum()
        encoding = self._network.encoding
        if encoding is not None:
            outputs = self._network.number_outputs(hidden[:, :-1])
            is_number = following & (tokens[:, 1:] == self._vocabulary.number_id)
            numbers = encoding.loss(outputs[is_number], codes[:, 1:][is_number])
            loss = loss + NUMBER_LOSS * numbers.sum()
        mean = loss / is_target.sum()
        mean.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._optimizer.zero_grad()
        return float(mean.detach())


def one_matrix(step: list[Batch]) -> Samples:
    """Return all samples of a step, padded to the longest."""
    width = max(batch.samples.tokens.shape[1] for batch in step)
    columns = []
    for parts in zip(*(batch.samples[:-1] for batch in step), strict=True):
        missing = [(0, 0), (0, 0)]
        padded = [
            np.pad(p, [(0, 0), (0, width - p.shape[1]), *missing[: p.ndim - 2]]) for p in parts
        ]
        columns.append(np.concatenate(padded))
    lengths = np.concatenate([batch.samples.lengths for batch in step])
    tokens, codes, is_target = columns
    return Samples(tokens, codes, is_target, lengths)


def cpu_seconds(function: Callable[[], object]) -> float:
    """Return the CPU time of a call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def make_training(recipe: Recipe) -> Training:
    with tempfile.TemporaryDirectory() as folder:
        return Training(recipe, Path(folder))


def measure(encoding: str, overrides: Sequence[str], rounds: int) -> tuple[float, ...]:
    """Return tokens per CPU-second, the speed relative to the plain loop, and the data's share."""
    recipe = load_recipe("cpu", [f"model.encoding={encoding}", *overrides])
    data = TrainingData(recipe, Vocabulary(encoding))
    mixture = Mixture(recipe, data.levels)
    prepared: list[list[Batch]] = []
    data_seconds = cpu_seconds(
        lambda: prepared.extend(data.steps(mixture, 0, recipe.training.validate_every))
    )
    tokens_per_data_second = sum(map(count_tokens, prepared)) / data_seconds
    exact = load_recipe(
        "cpu", [f"model.encoding={encoding}", *overrides, "training.precision=float32"]
    )
    losses = make_training(exact).step(prepared[0]), PlainLoop(recipe).step(one_matrix(prepared[0]))
    if not abs(losses[0] - losses[1]) < LOSS_TOLERANCE:
        raise AssertionError(f"{encoding}: losses {losses} of the same weights differ")
    training, plain = make_training(recipe), PlainLoop(recipe)
    speeds, ratios = [], []
    for turn in range(rounds + 1):
        steps = [prepared[(turn * STEPS + i) % len(prepared)] for i in range(STEPS)]
        matrices = [one_matrix(step) for step in steps]
        own = cpu_seconds(lambda: [training.step(step) for step in steps])  # noqa: B023
        other = cpu_seconds(lambda: [plain.step(matrix) for matrix in matrices])  # noqa: B023
        if turn:  # The first round is a warm-up.
            speeds.append(sum(map(count_tokens, steps)) / own)
            ratios.append(other / own)
    return median(speeds), median(ratios), median(speeds) / tokens_per_data_second


def count_tokens(step: list[Batch]) -> int:
    return sum(int(batch.samples.lengths.sum()) for batch in step)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    print("# Speed of the small models\n")
    print(
        f"`make bench`, Python {platform.python_version()}, PyTorch {torch.__version__}, one "
        f"thread on {platform.machine()}, load {os.getloadavg()[0]:.1f} at the start.\nA step of "
        "`bittoken train` (bfloat16, Muon and Adam, questions of similar length together, logits\n"
        "of answers only) compared with a plain loop (float32, AdamW, one padded matrix, all "
        f"logits).\nMedians of {rounds} alternating rounds; with the same weights, losses agree "
        f"within {LOSS_TOLERANCE:g}.\n"
    )
    print("| network | encoding | tokens per CPU-second | relative to the plain loop | data |")
    print("|---|---|---:|---:|---:|")
    for name, overrides in NETWORKS.items():
        for encoding in ("bittoken", "fone", "digit"):
            speed, ratio, share = measure(encoding, overrides, rounds)
            print(f"| {name} | {encoding} | {speed:,.0f} | {ratio:.1f} | {share:.1%} |", flush=True)
    print("\ndata: CPU time to generate the questions, relative to the time of training on them.")


if __name__ == "__main__":
    main()
