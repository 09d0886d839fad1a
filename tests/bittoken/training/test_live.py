"""What a training shows: the pace, the table on a terminal, the sparse lines in a log."""

from __future__ import annotations

import errno
import io
import os
import signal
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch.utils.flop_counter import FlopCounterMode

from bench.bittoken.attention import Layout
from bench.bittoken.config import ModelShape
from bench.bittoken.data.packing import Samples
from bench.bittoken.data.sources import sources
from bench.bittoken.network import Network
from bench.bittoken.training import flops, session
from bench.bittoken.training.live import Log, Screen, View, display, line
from bench.bittoken.training.losses import Targets, predict
from bench.bittoken.training.measuring import _by_level, chance
from bench.bittoken.training.progress import Meter, Now
from bench.bittoken.training.recipe import DataPart, Recipe, TrainingPart
from bench.bittoken.training.trainer import Progress, StepResult
from bench.bittoken.vocabulary import BOS, EOQ, EOS, NUM, Vocabulary
from bench.screen import Drawing
from bench.tasks import TASKS

ABOUT = {
    "step": 0,
    "event": "started",
    "parameters": 117_182_272,
    "device": "NVIDIA H200",
    "processes": 1,
    "chance": {task: chance(task) for task in TASKS},
}
FOUND = {"score": 0.97321, "exact": 0.5, "items": 100}
OPEN = {"frontier": 5, "levels": 52, "opened_score": 0.812, "opened_exact": 0.7}
MEASURED = {
    "step": 4096,
    "ratio": dict.fromkeys((*TASKS, "text"), 0.1),
    "tasks": {task: FOUND | (OPEN if task == "mean" else {}) for task in (*TASKS, "text")},
    "harmonic_mean": 0.9321,
}


def now(**changes: Any) -> Now:
    whole = Now(
        step=4123,
        steps=50_862,
        tokens=810_000_000,
        budget=10_000_000_000,
        seconds=3700.0,
        learning=0.81,
        loss=1.2345,
        losses=dict.fromkeys((*TASKS, "text"), 1.5),
        speed=812_345.0,
        left=4 * 3600.0,
        used=0.414,
        measured=MEASURED,
        about=ABOUT,
        best=0.94,
        best_step=4000,
    )
    return whole._replace(**changes)


def recipe(layers: int = 2, **training: Any) -> Recipe:
    model = ModelShape(encoding="bittoken", layers=layers, heads=2, width=128)
    data = DataPart(tasks=("minmax", "addition"))
    return Recipe(
        name="small",
        model=model,
        data=data,
        training=TrainingPart(tokens=1000, batch_tokens=10, **training),
    )


def drawn(shown: Now, width: int = 80, height: int = 30, **how: bool) -> list[str]:
    console = Console(file=io.StringIO(), record=True, width=width, height=height)
    console.print(View("multi-bittoken", shown, **how))
    return [text.rstrip() for text in console.export_text().splitlines()]


def test_the_table_shows_what_each_task_can_do_beside_guessing() -> None:
    lines = drawn(now())
    assert lines[0] == "multi-bittoken · 117M parameters · NVIDIA H200"
    header = "Task Loss Score Exact Chance Share Open levels Score there"
    assert header.split() in [text.split() for text in lines]
    minmax = next(text for text in lines if text.startswith("MinMax"))
    assert minmax.split() == ["MinMax", "1.500", "97.3%", "50.0%", "32.1%", "10.0%", "–", "–"]
    mean = next(text for text in lines if text.startswith("Mean"))
    assert mean.split()[4:] == ["–", "10.0%", "6", "of", "52", "81.2%"]
    assert any(text.startswith("Text") for text in lines)
    assert lines[-1] == "validated at step 4,096 · harmonic mean 93.2% · best 94.0% at step 4,000"


def test_above_the_table_stands_how_it_goes() -> None:
    lines = drawn(now())
    assert " · ".join(lines[2:4]) == (
        "810M of 10B tokens · step 4,123 of 50,862 · 4:00:00 left · 1:01:40 gone · "
        "812k tokens/s · 41% of the card's peak · loss 1.234 · learning rate 81% of peak"
    )
    assert set(lines[1]) == {"━"}
    unknown = "\n".join(drawn(now(used=None, left=None, speed=None)))
    assert "peak" not in unknown.replace("of peak", "")
    assert " left" not in unknown


@pytest.mark.parametrize("width", [80, 60, 40])
def test_it_fits_the_terminal_with_nothing_cut_off(width: int) -> None:
    lines = drawn(now(), width=width)
    assert max(map(len, lines)) <= width
    assert "97.3%" in "\n".join(lines)
    assert not any("…" in text for text in lines[1:])
    assert ("Open levels" in "\n".join(lines)) == (width == 80)


def test_on_a_low_terminal_the_tasks_go_but_not_at_the_end() -> None:
    assert len(drawn(now(), height=10)) < 10
    assert any(text.startswith("Std") for text in drawn(now(), height=10, ended=True))


def test_before_the_first_validation_scores_are_unknown() -> None:
    lines = drawn(now(measured={}, best=None))
    minmax = next(text for text in lines if text.startswith("MinMax"))
    assert minmax.split() == ["MinMax", "1.500", "–", "–", "32.1%", "–", "–", "–"]
    assert not any("validated" in text for text in lines)


def test_a_request_to_stop_is_seen() -> None:
    assert drawn(now(), stopping=True)[-1].startswith("stopping after this step")


def test_a_line_holds_all_of_it() -> None:
    text = line(now(measured=MEASURED | {"tasks": {"addition": FOUND}}))
    assert text.startswith("810M of 10B tokens · step 4,123 of 50,862 · 4:00:00 left")
    assert text.endswith("loss 1.234 · learning rate 81% of peak · Add 97.3%")
    assert "left" not in line(now(), ended=True)


def test_a_log_has_a_first_line_few_others_and_the_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = Log("small", seconds=30.0)
    log.watch(now(step=0, speed=None, seconds=0.0))
    for second in range(100):
        log.watch(now(step=second, seconds=float(second)), stopping=second > 90)
    log.close()
    log.close()
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "small: 117M parameters · NVIDIA H200"
    steps = [text.split("step ")[1].split(" ")[0] for text in said if " of 50,862" in text]
    assert steps == ["0", "30", "60", "90", "99"]
    assert sum("stopping" in text for text in said) == 1
    assert len(said) == 7


def test_the_screen_is_drawn_a_few_times_a_second_and_ends_with_the_last() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, height=30)
    screen = Screen("small", Drawing(console, seconds=0.25))
    for step in range(1, 401):
        screen.watch(now(step=step, seconds=step / 100))
    screen.close()
    text = file.getvalue()
    assert 14 <= text.count("MinMax") <= 20
    assert "step 400 of" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def test_a_terminal_that_has_gone_does_not_end_a_training() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.EIO, "Input/output error")

    screen = Screen("small", Drawing(Console(file=Gone(), force_terminal=True), seconds=0.0))
    screen.watch(now())
    screen.watch(now(seconds=9999.0))
    screen.close()


def test_of_several_processes_only_one_speaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank, speaks in (("1", False), ("0", True)):
        monkeypatch.setenv("RANK", rank)
        with display(recipe(), lambda: False) as watch:
            watch.measured(ABOUT)
        assert bool(capsys.readouterr().err) == speaks


class Trained:
    """A trainer as far as a meter sees it."""

    def __init__(self) -> None:
        own = recipe()
        self.recipe, self.progress = own, Progress()
        self.network = Network(own.config(len(Vocabulary("bittoken"))))

    def rate(self) -> float:
        return 0.5

    def step(self, losses: list[float], targets: list[float], tokens: int) -> StepResult:
        self.progress.step += 1
        self.progress.tokens += tokens
        return StepResult(np.array(losses), np.array(targets), tokens, 10 * tokens)


def metered(seconds: float, **training: Any) -> tuple[Meter, Trained]:
    """A meter after nine steps of 100 tokens, one every so many seconds."""
    time = SimpleNamespace(now=100.0)
    meter, trained = Meter(recipe(**training), lambda: time.now), Trained()
    meter.heard(ABOUT)
    for _ in range(9):
        time.now += seconds
        meter.stepped(trained, trained.step([2.0, 1.0], [30.0, 10.0], 100))  # type: ignore[arg-type]
    return meter, trained


def test_the_pace_is_that_of_the_last_steps() -> None:
    meter, _ = metered(2.0)
    shown = meter.now
    assert (shown.step, shown.steps, shown.tokens, shown.seconds) == (9, 100, 900, 18.0)
    assert shown.speed == 50.0
    assert shown.left == 91 * 2.0
    assert shown.learning == 0.5
    assert metered(40.0)[0].now.speed == 2.5


def test_an_old_pace_is_forgotten() -> None:
    time = SimpleNamespace(now=0.0)
    meter, trained = Meter(recipe(), lambda: time.now), Trained()
    for seconds in (*[40.0] * 9, *[2.0] * 40):
        time.now += seconds
        meter.stepped(trained, trained.step([2.0, 1.0], [30.0, 10.0], 100))  # type: ignore[arg-type]
    assert meter.now.speed == 50.0


def test_losses_are_means_per_target() -> None:
    meter, trained = metered(2.0)
    assert meter.now.losses == pytest.approx({"minmax": 2.0, "addition": 1.0})
    assert meter.now.loss == pytest.approx(70 / 40)
    for _ in range(200):
        meter.stepped(trained, trained.step([2.0, 0.5], [0.0, 10.0], 100))  # type: ignore[arg-type]
    assert meter.now.losses["addition"] == pytest.approx(0.5, rel=1e-3)
    assert meter.now.losses["minmax"] == pytest.approx(2.0)


def test_the_use_of_the_card_is_told_for_known_cards_in_bfloat16_alone() -> None:
    meter, trained = metered(2.0)
    sizes = flops.Sizes.of(trained.network)
    needed = flops.step_flops(recipe(), sizes, StepResult(np.zeros(2), np.full(2, 20.0), 100, 1000))
    assert meter.now.used == pytest.approx(needed / 2.0 / 989e12)
    assert metered(2.0, precision="float32")[0].now.used is None
    assert flops.peak("NVIDIA H200 MIG 1g.18gb", "bf16") is None
    meter.heard(ABOUT | {"processes": 8})
    meter.stepped(trained, trained.step([2.0, 1.0], [30.0, 10.0], 100))  # type: ignore[arg-type]
    assert meter.now.used is not None
    assert meter.now.used < needed / 2.0 / 989e12 / 7


def test_operations_are_those_that_torch_counts() -> None:
    own = recipe(layers=1)
    vocabulary = Vocabulary("bittoken")
    network = Network(own.config(len(vocabulary)))
    ids = [vocabulary.ids[token] for token in (BOS, NUM, NUM, EOQ, NUM, EOS)]
    count = 5
    codes, lengths = np.zeros((6 * count, 1), np.int64), np.full(count, 6)
    samples = Samples(np.array(ids * count), codes, lengths, np.full(count, 4))
    targets = Targets.of(samples)
    with FlopCounterMode(display=False) as counter:
        tokens = torch.from_numpy(samples.tokens)
        hidden = network(tokens, torch.from_numpy(codes), Layout.of(lengths))
        said = predict(network, hidden, targets)
        assert said.outputs is not None
        (said.logits.sum() + said.outputs.sum()).backward()
    counted = counter.get_flop_counts()["Global"]
    products = sum(n for op, n in counted.items() if "mm" in str(op) and "bmm" not in str(op))
    done = StepResult(np.zeros(2), np.array([2.0 * count, 0.0]), 6 * count, 0)
    needed = flops.step_flops(own, flops.Sizes.of(network), done)
    # Norms and biases, which the counter leaves out, are the difference.
    assert needed == pytest.approx(products, rel=0.015)
    with_pairs = flops.step_flops(own, flops.Sizes.of(network), done._replace(pairs=21 * count))
    assert with_pairs - needed == 12 * 128 * 21 * count


@pytest.mark.parametrize("task", ["minmax", "interval", "sorting"])
def test_chance_is_what_guessing_gives_on_the_questions_as_they_are(task: str) -> None:
    answers = {"minmax": [0, 0, 2, 3, 4, 5], "interval": [0, 0, 0, 3, 4, 5, 6]}
    possible = answers.get(task, [0, 0, 2, 6, 24, 120])
    (whole,) = sources(task, split="val", seed=1, process=0, max_digits=15, easy=False, base=10)
    operands = [row for block in range(6) for row in whole.block(block)["operands"].to_pylist()]
    assert len(operands) > 1000
    guessed = np.mean([1 / possible[len(row)] for row in operands])
    assert chance(task) == pytest.approx(guessed, rel=0.08)


def test_where_an_answer_is_computed_guessing_gives_nothing() -> None:
    assert [chance(task) for task in ("addition", "std", "text")] == [0.0] * 3


def test_a_level_without_questions_has_no_score() -> None:
    scores = _by_level(np.array([0, 0, 3]), np.array([1.0, 0.5, 0.0]), 5)
    assert scores == [0.75, None, None, 0.0, None]


def test_a_signal_asks_to_stop_and_a_second_interrupt_ends() -> None:
    for first in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asked = threading.Event()
        before = signal.getsignal(signal.SIGINT)
        with session._stopped_by_signals(asked):
            os.kill(os.getpid(), first)
            assert asked.wait(10)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is before
