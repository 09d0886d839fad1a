"""Measure training, data loading and decoding of the small models. Prints Markdown.

    python benchmarks/small_models.py [--rounds 5]

The methods of a table are measured in turn, on the same batches and one thread. Every ratio is the
median over the rounds of the ratio within a round, because a busy machine slows down both sides.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.plain_training import PlainTraining
from bittoken.attention import PackedLayout
from bittoken.data.packing import Samples
from bittoken.generation import GeneratedAnswer, generate
from bittoken.network import Network
from bittoken.token_ids import TokenIds
from bittoken.tokenizer import EncodedQuestion
from bittoken.training.distributed import DistributedContext
from bittoken.training.flops import ParameterCounts, peak_flops, step_flops
from bittoken.training.mixture import Batch, BatchSize, DataLoader, Mixture
from bittoken.training.recipe import Recipe, load_recipe
from bittoken.training.trainer import StepResult, Trainer
from bittoken.vocabulary import Vocabulary

SIX_TASKS = [
    "data.tasks=['minmax', 'interval', 'sorting', 'addition', 'multiplication', 'division']",
    "data.curriculum=['multiplication', 'division']",
    "data.digits=15",
]
WIDER = ["model.layers=6", "model.width=256", "training.batch_tokens=8192"]
PAPER_BATCH = 192 * 1024
BATCHES = 4
"""Number of different batches of a training."""
TOKENS = 8192
"""Minimum number of tokens of a training's turn."""
LOADED_TOKENS = 1 << 18
"""Minimum number of tokens of a data loader's turn."""
QUESTIONS = 256
LOSS_TOLERANCE = 1e-3
"""Maximum difference between the losses of two methods with the same weights."""
H200_TOKENS, H200_SECONDS = (2e9, 3e9), 600
Turn = Callable[[], int]
"""Measures a method once and returns the number of work items."""


class Throughput(NamedTuple):
    """Work items per CPU-second and per second of wall time."""

    cpu: float
    wall: float


Throughputs = dict[str, list[Throughput]]


def interleave_rounds(methods: dict[str, Turn], rounds: int) -> Throughputs:
    """Return the throughputs of every method by round; an additional first round is not counted."""
    throughputs: Throughputs = {name: [] for name in methods}
    for _ in range(rounds + 1):
        for name, turn in methods.items():
            throughputs[name].append(measure_throughput(turn))
    return {name: found[1:] for name, found in throughputs.items()}


def measure_throughput(turn: Turn) -> Throughput:
    """Return the throughput of one turn, including pending GPU work."""
    cpu, wall = time.process_time(), time.perf_counter()
    done = turn()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return Throughput(done / (time.process_time() - cpu), done / (time.perf_counter() - wall))


def median_throughput(throughputs: Sequence[Throughput]) -> Throughput:
    return Throughput(*(median(column) for column in zip(*throughputs, strict=True)))


def ratio(throughputs: Sequence[Throughput], base: Sequence[Throughput]) -> Throughput:
    """Return the throughput relative to `base`."""
    return median_throughput(
        [Throughput(a.cpu / b.cpu, a.wall / b.wall) for a, b in zip(throughputs, base, strict=True)]
    )


def batch_maker(recipe: Recipe) -> Callable[[int], Batch]:
    """Return a function that makes batches of a training."""
    loader = DataLoader(recipe, Vocabulary(recipe.model.encoding), "train", 0, None)
    mixture = Mixture(recipe, loader.scales)
    return lambda tokens: mixture.batch(loader, BatchSize(tokens))


def make_trainer(recipe: Recipe) -> Trainer:
    return Trainer(recipe, Vocabulary(recipe.model.encoding), DistributedContext())


def step_plainly(training: PlainTraining, batch: Batch) -> float:
    """Train on a batch, laid out in rows."""
    return training.step(batch.samples)


def steps(step: Callable[[Batch], object], batches: Sequence[Batch]) -> Turn:
    """Return a turn of steps on the next batches."""
    upcoming = cycle(batches)

    def turn() -> int:
        done = 0
        while done < TOKENS:
            batch = next(upcoming)
            step(batch)
            done += len(batch.samples.tokens)
        return done

    return turn


def mean_loss(result: StepResult) -> float:
    """Return the mean loss per target over all tasks."""
    return float((result.losses * result.target_counts).sum() / result.target_counts.sum())


def training(name: str, overrides: list[str], rounds: int) -> None:
    """Print the table of the trainer's step and straightforward implementations."""
    recipe = load_recipe("cpu", overrides)
    exact = load_recipe("cpu", [*overrides, "training.precision=float32"])
    make, trainer, precise = batch_maker(recipe), make_trainer(recipe), make_trainer(exact)
    batches = [make(recipe.training.batch_tokens) for _ in range(BATCHES)]
    config = trainer.network.config
    plain = {
        "plain, packed": PlainTraining(config, trainer.device, is_padded=False),
        "plain, padded": PlainTraining(config, trainer.device, is_padded=True),
    }
    weights = trainer.network.state_dict()
    for method in plain.values():
        method.network.load_state_dict(weights)
    precise.network.load_state_dict(weights)
    losses = {n: method.step(batches[0].samples) for n, method in plain.items()}
    expected = mean_loss(precise.step(batches[0]))
    for method_name, loss in losses.items():
        if not abs(loss - expected) < LOSS_TOLERANCE:
            raise AssertionError(f"{method_name}: loss {loss}, expected {expected}")
    methods = {
        "numbench": steps(trainer.step, batches),
        "numbench, float32": steps(precise.step, batches),
    }
    for method_name, plainly in plain.items():
        methods[method_name] = steps(partial(step_plainly, plainly), batches)
    parameters = sum(weight.numel() for weight in trainer.network.parameters())
    print(
        f"### {name}: {parameters:,} parameters, {recipe.training.batch_tokens:,} tokens per step, "
        f"{np.mean([b.samples.lengths.mean() for b in batches]):.1f} per sample\n"
    )
    print("| training | tokens per CPU-second | per second | speed-up of numbench | by wall time |")
    print("|---|---:|---:|---:|---:|")
    throughputs = interleave_rounds(methods, rounds)
    for method_name, found in throughputs.items():
        usual, times = median_throughput(found), ratio(throughputs["numbench"], found)
        print(
            f"| {method_name} | {usual.cpu:,.0f} | {usual.wall:,.0f} | {times.cpu:.2f} "
            f"| {times.wall:.2f} |"
        )
    print()


def feeding(rounds: int) -> None:
    """Print the table of the speed of data loading relative to training."""
    print("## Data\n")
    print(
        "Batches of six tasks with 15 digits, two of them with a curriculum, generated without "
        "training:\nsamples and tokens per CPU-second, and their multiple of the training's "
        "tokens.\n"
    )
    print(
        "| encoding | tokens per batch | samples | tokens | relative to 4×128 | relative to 6×256 |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    fastest = {}
    for encoding in ("bittoken", "digit"):
        recipes = [
            load_recipe("cpu", [f"model.encoding={encoding}", *SIX_TASKS, *shape])
            for shape in ([], WIDER)
        ]
        make = batch_maker(recipes[0])
        methods = {}
        for number, recipe in enumerate(recipes):
            batches = [make(recipe.training.batch_tokens) for _ in range(BATCHES)]
            methods[f"training {number}"] = steps(make_trainer(recipe).step, batches)
        lengths = {}
        for tokens in (recipes[0].training.batch_tokens, PAPER_BATCH):
            lengths[tokens] = float(make(tokens).samples.lengths.mean())
            methods[f"data {tokens}"] = batches_of(batch_maker(recipes[0]), tokens)
        throughputs = interleave_rounds(methods, rounds)
        for tokens, length in lengths.items():
            found = throughputs[f"data {tokens}"]
            rate = median_throughput(found).cpu
            times = [ratio(found, throughputs[f"training {n}"]).cpu for n in (0, 1)]
            print(
                f"| {encoding} | {tokens:,} | {rate / length:,.0f} | {rate:,.0f} | {times[0]:.0f} "
                f"| {times[1]:.0f} |"
            )
        fastest[encoding] = median_throughput(throughputs[f"data {PAPER_BATCH}"]).cpu
    print()
    low, high = (tokens / H200_SECONDS for tokens in H200_TOKENS)
    needed = [math.ceil(rate / fastest["bittoken"]) for rate in (low, high)]
    print(
        f"One H200 is estimated (not measured) to train 6×256 on {H200_TOKENS[0] / 1e9:.0f} to "
        f"{H200_TOKENS[1] / 1e9:.0f} billion tokens in\nten minutes, {low / 1e6:.1f} to "
        f"{high / 1e6:.1f} million per second. Generating the data with BitTokens needs "
        f"{needed[0]} to {needed[1]} processes\non cores like this one; a training generates them "
        "in one thread of each process.\n"
    )


def batches_of(make: Callable[[int], Batch], tokens: int) -> Turn:
    """Return a turn that makes batches of `tokens` tokens without training on them."""

    def turn() -> int:
        done = 0
        while done < LOADED_TOKENS:
            done += len(make(tokens).samples.tokens)
        return done

    return turn


def on_the_gpu(rounds: int) -> None:
    """Print the table of tokens per second on a GPU, and MFU."""
    print("## On a GPU\n")
    if not torch.cuda.is_available():
        print("Not measured: this machine has no CUDA device.\n")
        return
    device = torch.cuda.get_device_name()
    print(f"{device}, 6×256, {PAPER_BATCH:,} tokens per step.\n")
    print("| training | tokens per second | MFU |")
    print("|---|---:|---:|")
    wide = [*SIX_TASKS, *WIDER, f"training.batch_tokens={PAPER_BATCH}"]
    for name, compiled in (("eager", "false"), ("compiled", "true")):
        trainer = make_trainer(load_recipe("cpu", [*wide, f"training.compile={compiled}"]))
        make = batch_maker(trainer.recipe)
        batches = [make(PAPER_BATCH) for _ in range(BATCHES)]
        # Compiles for all batches before the measurement.
        done = [trainer.step(batch) for batch in batches]
        found = median_throughput(
            interleave_rounds({name: steps(trainer.step, batches)}, rounds)[name]
        )
        sizes, most = ParameterCounts.of(trainer.network), peak_flops(device, "bf16")
        work = np.mean([step_flops(trainer.recipe, sizes, step) / step.tokens for step in done])
        used = f"{found.wall * work / most:.1%}" if most else "–"
        print(f"| {name} | {found.wall:,.0f} | {used} |")
    print()


def decoding(rounds: int) -> None:
    """Print the table of decoding with and without the KV cache."""
    print("## Answers\n")
    print(
        f"{QUESTIONS} questions of the six tasks in one batch, greedy decoding, answers as long as "
        "the correct ones,\nrandom weights.\n"
    )
    print(
        "| encoding | network | tokens per answer | answers per CPU-second | without cache "
        "| speed-up | by wall time |"
    )
    print("|---|---|---:|---:|---:|---:|---:|")
    for encoding in ("bittoken", "digit"):
        for name, shape in (("4×128", []), ("6×256", WIDER)):
            recipe = load_recipe("cpu", [f"model.encoding={encoding}", *SIX_TASKS, *shape])
            network = make_trainer(recipe).network.eval()
            token_ids = TokenIds.from_vocabulary(Vocabulary(encoding))
            questions, limits = extract_questions(batch_maker(recipe)(64 * QUESTIONS).samples)
            check_answers(network, token_ids, questions, limits)
            methods = {
                "with": answers(generate, network, token_ids, questions, limits),
                "without": answers(without_cache, network, token_ids, questions, limits),
            }
            throughputs = interleave_rounds(methods, rounds)
            times = ratio(throughputs["with"], throughputs["without"])
            with_, without = (
                median_throughput(throughputs[method]).cpu for method in ("with", "without")
            )
            print(
                f"| {encoding} | {name} | {np.mean(limits):.1f} | {with_:,.0f} | {without:,.0f} "
                f"| {times.cpu:.1f} | {times.wall:.1f} |"
            )
    print()


def extract_questions(samples: Samples) -> tuple[list[EncodedQuestion], list[int]]:
    """Return evenly spaced questions, and the number of tokens of their correct answers."""
    rows = np.linspace(0, len(samples.lengths) - 1, QUESTIONS).astype(np.int64)
    starts = np.cumsum(samples.lengths) - samples.lengths
    ends = starts + samples.prompt_lengths
    questions = [
        EncodedQuestion(samples.tokens[starts[r] : ends[r]], samples.codes[starts[r] : ends[r]])
        for r in rows
    ]
    return questions, (samples.lengths - samples.prompt_lengths)[rows].tolist()


Generate = Callable[[Network, TokenIds, list[EncodedQuestion], list[int]], list[GeneratedAnswer]]


def answers(
    method: Generate,
    network: Network,
    token_ids: TokenIds,
    questions: list[EncodedQuestion],
    limits: list[int],
) -> Turn:
    return lambda: len(method(network, token_ids, questions, limits))


def check_answers(
    network: Network, token_ids: TokenIds, questions: list[EncodedQuestion], limits: list[int]
) -> None:
    """Check that both methods give the same answers, except for ties broken by rounding."""
    cached = generate(network, token_ids, questions, limits)
    plain = without_cache(network, token_ids, questions, limits)
    same = sum(a.tokens == b.tokens for a, b in zip(cached, plain, strict=True))
    if same < 0.97 * len(questions):
        raise AssertionError(f"only {same} of {len(questions)} answers are the same without cache")


@torch.inference_mode()
def without_cache(
    network: Network, token_ids: TokenIds, questions: list[EncodedQuestion], limits: list[int]
) -> list[GeneratedAnswer]:
    """Generate answers as `generate` does, but recompute all previous tokens for every token."""
    device, encoding = network.lm_head.weight.device, network.encoding
    tokens, codes = ([list(part) for part in column] for column in zip(*questions, strict=True))
    unfinished = list(range(len(questions)))
    while unfinished:
        flat = torch.tensor([t for n in unfinished for t in tokens[n]], device=device)
        values = torch.from_numpy(np.stack([c for n in unfinished for c in codes[n]])).to(device)
        layout = PackedLayout.from_lengths(np.array([len(tokens[n]) for n in unfinished]), device)
        hidden = network(flat, values, layout)[layout.cu_seqlens[1:].long() - 1]
        predicted = network.logits(hidden).argmax(-1).tolist()
        numbers = np.zeros((len(unfinished), 0), np.int64)
        if encoding is not None:
            numbers = encoding.torch_predict_codes(network.number_outputs(hidden)).cpu().numpy()
        for n, token, code in zip(unfinished, predicted, numbers, strict=True):
            tokens[n].append(token)
            codes[n].append(code)
        unfinished = [
            n
            for n in unfinished
            if tokens[n][-1] != token_ids.eos_id
            and len(tokens[n]) - len(questions[n].tokens) < limits[n]
        ]
    replies = [t[len(q.tokens) :] for t, q in zip(tokens, questions, strict=True)]
    return [GeneratedAnswer(reply, [], reply[-1:] == [token_ids.eos_id]) for reply in replies]


def main() -> None:
    """Measure and print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    busy = os.getloadavg()[0]
    shared = f"shared machine with load {busy:.1f} at the start" if busy > 0.5 else "idle machine"
    print("# Speed of the small models\n")
    print(
        f"`make bench`, Python {platform.python_version()}, PyTorch {torch.__version__}, one "
        f"thread on {platform.machine()}, {shared}.\nMedians of {rounds} alternating rounds; a "
        "ratio is the median of the ratios within a round.\n"
    )
    print("## Training\n")
    print(
        "`Trainer.step` (bfloat16 autocast, Muon and Adam) compared with a straightforward loop in "
        "eager PyTorch\nwith the same parameters, loss and batches: float32, AdamW, logits at "
        "every position, bits by a loop of shifts,\nrows of 1,024 tokens with a dense mask "
        "(packed), or a row per sample (padded). With the same weights all\n"
        f"losses agree within {LOSS_TOLERANCE:g}.\n"
    )
    training("4×128, recipe `cpu`", [], rounds)
    training("6×256, six tasks", [*SIX_TASKS, *WIDER], rounds)
    feeding(rounds)
    on_the_gpu(rounds)
    decoding(rounds)


if __name__ == "__main__":
    main()
