"""How fast small models are trained, fed and asked, against the plain ways. Prints Markdown.

    python benchmarks/small_models.py [--rounds 5]

All ways of a table are measured by turns, on the same batches and one thread; every ratio is the
median over the rounds of the ratio within a round, so that a busy machine slows both sides down.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from plain_training import PlainTraining

from bench.bittoken.attention import Layout
from bench.bittoken.data.packing import Samples
from bench.bittoken.generate import Generated, generate
from bench.bittoken.lexicon import Lexicon
from bench.bittoken.network import Network
from bench.bittoken.question import Encoded
from bench.bittoken.training.crew import Crew
from bench.bittoken.training.flops import Sizes, peak, step_flops
from bench.bittoken.training.mixture import Batch, Feed, Mixture
from bench.bittoken.training.recipe import Recipe, load_recipe
from bench.bittoken.training.trainer import StepResult, Trainer
from bench.bittoken.vocabulary import Vocabulary

SIX_TASKS = [
    "data.tasks=['minmax', 'interval', 'sorting', 'addition', 'multiplication', 'division']",
    "data.curriculum=['multiplication', 'division']",
    "data.digits=15",
]
WIDER = ["model.layers=6", "model.width=256", "training.batch_tokens=8192"]
PAPER_BATCH = 192 * 1024
BATCHES = 4
"""Different batches of a training, by turns."""
TOKENS = 8192
"""Tokens of a training's turn, at least."""
FED = 1 << 18
"""Tokens of a feed's turn, at least."""
QUESTIONS = 256
CLOSE = 1e-3
"""How far apart the losses of two ways may be at the same weights."""
H200_TOKENS, H200_SECONDS = (2e9, 3e9), 600

Turn = Callable[[], int]
"""One turn of a way: how many pieces of work it did."""


class Pace(NamedTuple):
    """Pieces of work per CPU-second and per second of wall time."""

    cpu: float
    wall: float


Paces = dict[str, list[Pace]]


def by_turns(ways: dict[str, Turn], rounds: int) -> Paces:
    """The paces of every way, round by round; a first round is not counted."""
    paces: Paces = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, turn in ways.items():
            paces[name].append(pace(turn))
    return {name: found[1:] for name, found in paces.items()}


def pace(turn: Turn) -> Pace:
    """Of one turn, whatever it left to the GPU included."""
    cpu, wall = time.process_time(), time.perf_counter()
    done = turn()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return Pace(done / (time.process_time() - cpu), done / (time.perf_counter() - wall))


def typical(paces: Sequence[Pace]) -> Pace:
    return Pace(*(median(column) for column in zip(*paces, strict=True)))


def ratio(paces: Sequence[Pace], base: Sequence[Pace]) -> Pace:
    """How many times the pace of `base`."""
    return typical([Pace(a.cpu / b.cpu, a.wall / b.wall) for a, b in zip(paces, base, strict=True)])


def fed(recipe: Recipe) -> Callable[[int], Batch]:
    """The batches of a training, made by the mixture."""
    feed = Feed(recipe, Vocabulary(recipe.model.encoding), "train", 0, None)
    mixture = Mixture(recipe, feed.scales)
    return lambda tokens: mixture.batch(feed, tokens)


def trained(recipe: Recipe) -> Trainer:
    return Trainer(recipe, Vocabulary(recipe.model.encoding), Crew())


def steps(step: Callable[[Batch], object], batches: Sequence[Batch]) -> Turn:
    """Steps on the next batches, one after the other."""
    coming = cycle(batches)

    def turn() -> int:
        done = 0
        while done < TOKENS:
            batch = next(coming)
            step(batch)
            done += len(batch.samples.tokens)
        return done

    return turn


def mean_loss(found: StepResult) -> float:
    """Of a target, over all tasks."""
    return float((found.losses * found.targets).sum() / found.targets.sum())


def training(name: str, overrides: list[str], rounds: int) -> None:
    """Table: our step against the plain ways to write it."""
    recipe = load_recipe("cpu", overrides)
    exact = load_recipe("cpu", [*overrides, "training.precision=float32"])
    make, ours, precise = fed(recipe), trained(recipe), trained(exact)
    batches = [make(recipe.training.batch_tokens) for _ in range(BATCHES)]
    config = ours.network.config
    plain = {
        "plain, packed": PlainTraining(config, ours.device, is_padded=False),
        "plain, padded": PlainTraining(config, ours.device, is_padded=True),
    }
    weights = ours.network.state_dict()
    for way in plain.values():
        way.network.load_state_dict(weights)
    precise.network.load_state_dict(weights)
    losses = {n: way.step(batches[0].samples) for n, way in plain.items()}
    expected = mean_loss(precise.step(batches[0]))
    for way_name, loss in losses.items():
        if not abs(loss - expected) < CLOSE:
            raise AssertionError(f"{way_name}: loss {loss}, ours {expected}")
    ways = {"ours": steps(ours.step, batches), "ours, float32": steps(precise.step, batches)}
    for way_name, plainly in plain.items():
        ways[way_name] = steps(lambda batch, way=plainly: way.step(batch.samples), batches)
    parameters = sum(weight.numel() for weight in ours.network.parameters())
    print(
        f"### {name}: {parameters:,} parameters, {recipe.training.batch_tokens:,} tokens a step, "
        f"{np.mean([b.samples.lengths.mean() for b in batches]):.1f} a sample\n"
    )
    print("| training | tokens per CPU-second | per second | ours : it | by wall time |")
    print("|---|---:|---:|---:|---:|")
    paces = by_turns(ways, rounds)
    for way_name, found in paces.items():
        usual, times = typical(found), ratio(paces["ours"], found)
        print(
            f"| {way_name} | {usual.cpu:,.0f} | {usual.wall:,.0f} | {times.cpu:.2f} "
            f"| {times.wall:.2f} |"
        )
    print()


def feeding(rounds: int) -> None:
    """Table: how much faster data are made than they are trained on."""
    print("## Data\n")
    print(
        "Six tasks of 15 digits, two of them with a curriculum, made on the fly: the mixture's "
        "batches alone,\nand how many times the tokens that the training takes, by CPU time.\n"
    )
    print("| encoding | tokens a batch | samples | tokens | : training 4×128 | : 6×256 |")
    print("|---|---:|---:|---:|---:|---:|")
    fastest = {}
    for encoding in ("bittoken", "digit"):
        recipes = [
            load_recipe("cpu", [f"model.encoding={encoding}", *SIX_TASKS, *shape])
            for shape in ([], WIDER)
        ]
        make = fed(recipes[0])
        ways = {}
        for number, recipe in enumerate(recipes):
            batches = [make(recipe.training.batch_tokens) for _ in range(BATCHES)]
            ways[f"training {number}"] = steps(trained(recipe).step, batches)
        lengths = {}
        for tokens in (recipes[0].training.batch_tokens, PAPER_BATCH):
            lengths[tokens] = float(make(tokens).samples.lengths.mean())
            ways[f"data {tokens}"] = batches_of(fed(recipes[0]), tokens)
        paces = by_turns(ways, rounds)
        for tokens, length in lengths.items():
            found = paces[f"data {tokens}"]
            rate = typical(found).cpu
            times = [ratio(found, paces[f"training {n}"]).cpu for n in (0, 1)]
            print(
                f"| {encoding} | {tokens:,} | {rate / length:,.0f} | {rate:,.0f} | {times[0]:.0f} "
                f"| {times[1]:.0f} |"
            )
        fastest[encoding] = typical(paces[f"data {PAPER_BATCH}"]).cpu
    print()
    low, high = (tokens / H200_SECONDS for tokens in H200_TOKENS)
    needed = [math.ceil(rate / fastest["bittoken"]) for rate in (low, high)]
    print(
        f"One H200 is estimated (not measured) to train 6×256 on {H200_TOKENS[0] / 1e9:.0f} to "
        f"{H200_TOKENS[1] / 1e9:.0f} billion tokens in\nten minutes, {low / 1e6:.1f} to "
        f"{high / 1e6:.1f} million a second. Data with BitTokens are made so fast by {needed[0]} "
        f"to {needed[1]} processes\non cores such as this one; a training makes them in one thread "
        "beside each of its processes.\n"
    )


def batches_of(make: Callable[[int], Batch], tokens: int) -> Turn:
    """Batches of so many tokens each, without training on them."""

    def turn() -> int:
        done = 0
        while done < FED:
            done += len(make(tokens).samples.tokens)
        return done

    return turn


def on_the_gpu(rounds: int) -> None:
    """Table: tokens per second on a GPU, and the share of what it could do."""
    print("## On a GPU\n")
    if not torch.cuda.is_available():
        print("Not measured: this machine has no GPU that CUDA sees.\n")
        return
    device = torch.cuda.get_device_name()
    print(f"{device}, 6×256, {PAPER_BATCH:,} tokens a step.\n")
    print("| training | tokens per second | model FLOP utilisation |")
    print("|---|---:|---:|")
    wide = [*SIX_TASKS, *WIDER, f"training.batch_tokens={PAPER_BATCH}"]
    for name, compiled in (("eager", "false"), ("compiled", "true")):
        trainer = trained(load_recipe("cpu", [*wide, f"training.compile={compiled}"]))
        make = fed(trainer.recipe)
        batches = [make(PAPER_BATCH) for _ in range(BATCHES)]
        found = typical(by_turns({name: steps(trainer.step, batches)}, rounds)[name])
        done = [trainer.step(batch) for batch in batches]
        sizes = Sizes.of(trainer.network)
        work = sum(step_flops(trainer.recipe, sizes, d) for d in done) / sum(d.tokens for d in done)
        top = peak(device, trainer.recipe.training.precision)
        used = f"{found.wall * work / top:.1%}" if top else "–"
        print(f"| {name} | {found.wall:,.0f} | {used} |")
    print()


def decoding(rounds: int) -> None:
    """Table: answers with the cache of keys and values, and without."""
    print("## Answers\n")
    print(
        f"{QUESTIONS} questions of the six tasks at once, greedy, each answer as long as the right "
        "one, random weights.\n"
    )
    print(
        "| encoding | network | tokens an answer | answers per CPU-second | without cache "
        "| with : without | by wall time |"
    )
    print("|---|---|---:|---:|---:|---:|---:|")
    for encoding in ("bittoken", "digit"):
        for name, shape in (("4×128", []), ("6×256", WIDER)):
            recipe = load_recipe("cpu", [f"model.encoding={encoding}", *SIX_TASKS, *shape])
            network = trained(recipe).network.eval()
            lexicon = Lexicon.of(Vocabulary(encoding))
            questions, limits = asked(fed(recipe)(64 * QUESTIONS).samples)
            check_answers(network, lexicon, questions, limits)
            ways = {
                "with": answers(generate, network, lexicon, questions, limits),
                "without": answers(without_cache, network, lexicon, questions, limits),
            }
            paces = by_turns(ways, rounds)
            times = ratio(paces["with"], paces["without"])
            with_, without = (typical(paces[way]).cpu for way in ("with", "without"))
            print(
                f"| {encoding} | {name} | {np.mean(limits):.1f} | {with_:,.0f} | {without:,.0f} "
                f"| {times.cpu:.1f} | {times.wall:.1f} |"
            )
    print()


def asked(samples: Samples) -> tuple[list[Encoded], list[int]]:
    """Questions from all over the samples, and the tokens of their right answers."""
    rows = np.linspace(0, len(samples.lengths) - 1, QUESTIONS).astype(np.int64)
    starts = np.cumsum(samples.lengths) - samples.lengths
    ends = starts + samples.questions
    questions = [
        Encoded(samples.tokens[starts[r] : ends[r]], samples.codes[starts[r] : ends[r]])
        for r in rows
    ]
    return questions, (samples.lengths - samples.questions)[rows].tolist()


Generate = Callable[[Network, Lexicon, list[Encoded], list[int]], list[Generated]]


def answers(
    way: Generate,
    network: Network,
    lexicon: Lexicon,
    questions: list[Encoded],
    limits: list[int],
) -> Turn:
    return lambda: len(way(network, lexicon, questions, limits))


def check_answers(
    network: Network, lexicon: Lexicon, questions: list[Encoded], limits: list[int]
) -> None:
    """Both ways say the same; sums in another order may turn a tie."""
    ours = generate(network, lexicon, questions, limits)
    plain = without_cache(network, lexicon, questions, limits)
    same = sum(a.tokens == b.tokens for a, b in zip(ours, plain, strict=True))
    if same < 0.97 * len(questions):
        raise AssertionError(f"only {same} of {len(questions)} answers are the same without cache")


@torch.inference_mode()
def without_cache(
    network: Network, lexicon: Lexicon, questions: list[Encoded], limits: list[int]
) -> list[Generated]:
    """`generate`, every token from all tokens before it."""
    device, encoding = network.lm_head.weight.device, network.encoding
    tokens, codes = ([list(part) for part in column] for column in zip(*questions, strict=True))
    open_ = list(range(len(questions)))
    while open_:
        flat = torch.tensor([t for n in open_ for t in tokens[n]], device=device)
        values = torch.from_numpy(np.stack([c for n in open_ for c in codes[n]])).to(device)
        layout = Layout.of(np.array([len(tokens[n]) for n in open_]), device)
        hidden = network(flat, values, layout)[layout.starts[1:].long() - 1]
        chosen = network.logits(hidden).argmax(-1).tolist()
        numbers = np.zeros((len(open_), 0), np.int64)
        if encoding is not None:
            numbers = encoding.torch_decide(network.numbers(hidden)).cpu().numpy()
        for n, token, code in zip(open_, chosen, numbers, strict=True):
            tokens[n].append(token)
            codes[n].append(code)
        open_ = [
            n
            for n in open_
            if tokens[n][-1] != lexicon.end
            and len(tokens[n]) - len(questions[n].tokens) < limits[n]
        ]
    replies = [t[len(q.tokens) :] for t, q in zip(tokens, questions, strict=True)]
    return [Generated(reply, [], reply[-1:] == [lexicon.end]) for reply in replies]


def main() -> None:
    """Measure and print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    busy = os.getloadavg()[0]
    shared = f"shared machine: load {busy:.1f} before it began" if busy > 0.5 else "idle machine"
    print("# Speed of the small models\n")
    print(
        f"`make bench`, Python {platform.python_version()}, PyTorch {torch.__version__}, one "
        f"thread on {platform.machine()}, {shared}.\nMedians of {rounds} rounds by turns; a ratio "
        "is the median of the ratios within a round.\n"
    )
    print("## Training\n")
    print(
        "`Trainer.step` (bfloat16 autocast, Muon and Adam) against a plain loop in eager PyTorch "
        "with the same\nparameters, loss and batches: float32, AdamW, logits at every position, "
        "bits by a loop of shifts, rows of\n1,024 tokens under a dense mask (packed), or a row for "
        f"each sample (padded). At the same weights all\nlosses agree within {CLOSE:g}.\n"
    )
    training("4×128, recipe `cpu`", [], rounds)
    training("6×256, six tasks", [*SIX_TASKS, *WIDER], rounds)
    feeding(rounds)
    on_the_gpu(rounds)
    decoding(rounds)


if __name__ == "__main__":
    main()
