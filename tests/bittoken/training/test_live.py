"""Progress of a training: speed, the table on a terminal, lines in a log; chance and FLOPs."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch.utils.flop_counter import FlopCounterMode

from bittoken.attention import PackedLayout
from bittoken.config import ModelShape
from bittoken.data.packing import Samples
from bittoken.data.question_sources import generated_sources
from bittoken.network import Network
from bittoken.training import flops
from bittoken.training.live import (
    ProgressMeter,
    ProgressSnapshot,
    log_line,
    progress_format,
    show_progress,
    training_view,
)
from bittoken.training.losses import Targets, predict
from bittoken.training.recipe import DataPart, Recipe, TrainingPart
from bittoken.training.trainer import StepResult, TrainerProgress
from bittoken.training.validation import _mean_by_level, expected_chance_accuracy
from bittoken.vocabulary import BOS, EOQ, EOS, NUM, Vocabulary
from numbench.progress_display import LogDisplay
from numbench.tasks import PAPER_TASKS

START = {
    "step": 0,
    "event": "started",
    "parameters": 117_182_272,
    "device": "NVIDIA H200",
    "processes": 1,
    "chance": {task: expected_chance_accuracy(task) for task in PAPER_TASKS},
}
METRICS = {"score": 0.97321, "exact": 0.5, "items": 100}
CURRICULUM = {"frontier": 5, "levels": 52, "opened_score": 0.812, "opened_exact": 0.7}
VALIDATION = {
    "step": 4096,
    "ratio": dict.fromkeys((*PAPER_TASKS, "text"), 0.1),
    "tasks": {
        task: METRICS | (CURRICULUM if task == "mean" else {}) for task in (*PAPER_TASKS, "text")
    },
    "harmonic_mean": 0.9321,
}


def snapshot(**changes: Any) -> ProgressSnapshot:
    full = ProgressSnapshot(
        step=4123,
        total_steps=50_862,
        tokens=810_000_000,
        seconds=3700.0,
        losses=dict.fromkeys((*PAPER_TASKS, "text"), 1.5),
        tokens_per_second=812_345.0,
        remaining_seconds=4 * 3600.0,
        flop_utilization=0.414,
        last_validation=VALIDATION,
        start_entry=START,
        best=0.94,
        best_step=4000,
    )
    return full._replace(**changes)


def recipe(layers: int = 2, **training: Any) -> Recipe:
    model = ModelShape(encoding="bittoken", layers=layers, heads=2, width=128)
    data = DataPart(tasks=("minmax", "addition"))
    return Recipe(
        name="small",
        model=model,
        data=data,
        training=TrainingPart(tokens=1000, batch_tokens=10, **training),
    )


def rendered(snapshot: ProgressSnapshot, ended: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), record=True, width=80)
    console.print(training_view("multi-bittoken", snapshot, ended))
    return [text.rstrip() for text in console.export_text().splitlines()]


def row(lines: list[str], name: str) -> list[str]:
    return next(text.split() for text in lines if text.startswith(name))


def test_table_shows_the_metrics_of_each_task_with_the_chance_level() -> None:
    lines = rendered(snapshot())
    assert lines[0] == "multi-bittoken · 117M parameters · NVIDIA H200"
    assert set(lines[1]) == {"━"}
    assert row(lines, "Task") == [
        "Task", "Loss", "Score", "Exact", "Chance", "Share", "Unlocked", "levels",
    ]  # fmt: skip
    assert row(lines, "MinMax") == ["MinMax", "1.500", "97.3%", "50.0%", "32.1%", "10.0%", "–"]
    assert row(lines, "Mean")[4:] == ["–", "10.0%", "6", "of", "52"]
    assert row(lines, "Text")
    assert max(map(len, lines)) <= 80 and "…" not in "".join(lines)


def test_progress_is_shown_above_the_table() -> None:
    text = " ".join(rendered(snapshot())[2:4])
    assert text == (
        "step 4,123 of 50,862 · 810M tokens · 4:00:00 remaining · 1:01:40 elapsed · 812k tokens/s "
        "· MFU 41% · harmonic mean 93.2% · best 94.0% at step 4,000"
    )
    unknown = "\n".join(
        rendered(snapshot(flop_utilization=None, remaining_seconds=None, tokens_per_second=None))
    )
    assert "MFU" not in unknown
    assert "remaining" not in unknown
    assert "remaining" not in "\n".join(rendered(snapshot(), ended=True))


def test_scores_are_unknown_before_the_first_validation() -> None:
    lines = rendered(snapshot(last_validation={}, best=None))
    assert row(lines, "MinMax") == ["MinMax", "1.500", "–", "–", "32.1%", "–", "–"]
    assert "harmonic" not in "".join(lines)


def test_stop_request_is_shown_until_the_end() -> None:
    now = snapshot(stopping=True)
    assert any(text.startswith("stopping after this step") for text in rendered(now))
    assert not any("stopping" in text for text in rendered(now, ended=True))


def test_log_line_has_progress_and_scores() -> None:
    text = log_line(snapshot(last_validation=VALIDATION | {"tasks": {"addition": METRICS}}))
    assert text.startswith("step 4,123 of 50,862 · 810M tokens · 4:00:00 remaining")
    assert text.endswith("best 94.0% at step 4,000 · Add 97.3%")


def test_log_has_first_line_periodic_lines_and_last_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = LogDisplay("small", progress_format("small"), interval_seconds=30.0)
    log.update(snapshot(step=0, tokens_per_second=None, seconds=0.0))
    for second in range(100):
        log.update(snapshot(step=second, seconds=float(second), stopping=second > 90))
    log.close()
    log.close()
    lines = capsys.readouterr().err.splitlines()
    # Each line begins with its time.
    assert lines[0].endswith(" small: 117M parameters · NVIDIA H200")
    steps = [text.split("step ")[1].split(" ")[0] for text in lines if " of 50,862" in text]
    assert steps == ["0", "30", "60", "90", "99"]
    assert sum("stopping" in text for text in lines) == 1
    assert len(lines) == 7


def test_only_the_main_process_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank, prints in (("1", False), ("0", True)):
        monkeypatch.setenv("RANK", rank)
        with show_progress(recipe(), lambda: False) as callback:
            callback.on_log_entry(START)
        assert bool(capsys.readouterr().err) == prints


class FakeTrainer:
    """The part of a trainer that ProgressMeter uses."""

    def __init__(self) -> None:
        self.recipe, self.progress = recipe(), TrainerProgress()
        self.network = Network(self.recipe.config(len(Vocabulary("bittoken"))))

    def step(self, losses: list[float], targets: list[float], tokens: int) -> StepResult:
        self.progress.step += 1
        self.progress.tokens += tokens
        return StepResult(np.array(losses), np.array(targets), tokens, 10 * tokens, 10)


def run_meter(seconds: float, **training: Any) -> tuple[ProgressMeter, FakeTrainer]:
    """Return a meter after nine steps of 100 tokens, `seconds` apart."""
    time = SimpleNamespace(now=100.0)
    meter, trainer = ProgressMeter(recipe(**training), lambda: time.now), FakeTrainer()
    meter.on_log_entry(START)
    for _ in range(9):
        time.now += seconds
        meter.on_step(trainer, trainer.step([2.0, 1.0], [30.0, 10.0], 100))  # type: ignore[arg-type]
    return meter, trainer


def test_speed_is_measured_over_recent_steps() -> None:
    meter, _ = run_meter(2.0)
    now = meter.snapshot
    assert (now.step, now.total_steps, now.tokens, now.seconds) == (9, 100, 900, 18.0)
    assert now.tokens_per_second == 50.0
    assert now.remaining_seconds == 91 * 2.0
    assert run_meter(40.0)[0].snapshot.tokens_per_second == 2.5


def test_best_validation_includes_the_last_one() -> None:
    meter, _ = run_meter(2.0)
    assert meter.snapshot.best is None
    for step, mean in ((9, 0.2), (18, 0.5), (27, 0.4)):
        meter.on_log_entry(VALIDATION | {"step": step, "harmonic_mean": mean})
    assert (meter.snapshot.best, meter.snapshot.best_step) == (0.5, 18)


def test_speed_forgets_old_steps() -> None:
    time = SimpleNamespace(now=0.0)
    meter, trainer = ProgressMeter(recipe(), lambda: time.now), FakeTrainer()
    for seconds in (*[40.0] * 9, *[2.0] * 40):
        time.now += seconds
        meter.on_step(trainer, trainer.step([2.0, 1.0], [30.0, 10.0], 100))  # type: ignore[arg-type]
    assert meter.snapshot.tokens_per_second == 50.0


def test_displayed_losses_are_means_per_target() -> None:
    meter, trainer = run_meter(2.0)
    assert meter.snapshot.losses == pytest.approx({"minmax": 2.0, "addition": 1.0})
    for _ in range(200):
        meter.on_step(trainer, trainer.step([2.0, 0.5], [0.0, 10.0], 100))  # type: ignore[arg-type]
    assert meter.snapshot.losses["addition"] == pytest.approx(0.5, rel=1e-3)
    assert meter.snapshot.losses["minmax"] == pytest.approx(2.0)


def test_utilization_is_shown_only_for_known_gpus_in_bfloat16() -> None:
    meter, trainer = run_meter(2.0)
    sizes = flops.ParameterCounts.of(trainer.network)
    expected = flops.step_flops(
        recipe(), sizes, StepResult(np.zeros(2), np.full(2, 20.0), 100, 1000, 10)
    )
    assert meter.snapshot.flop_utilization == pytest.approx(expected / 2.0 / 989e12)
    assert run_meter(2.0, precision="float32")[0].snapshot.flop_utilization is None
    assert flops.peak_flops("NVIDIA H200 MIG 1g.18gb", "bf16") is None
    meter.on_log_entry(START | {"processes": 8})
    meter.on_step(trainer, trainer.step([2.0, 1.0], [30.0, 10.0], 100))  # type: ignore[arg-type]
    assert meter.snapshot.flop_utilization is not None
    assert meter.snapshot.flop_utilization < expected / 2.0 / 989e12 / 7


def test_step_flops_agree_with_torchs_counter() -> None:
    small = recipe(layers=1)
    vocabulary = Vocabulary("bittoken")
    network = Network(small.config(len(vocabulary)))
    ids = [vocabulary.ids[token] for token in (BOS, NUM, NUM, EOQ, NUM, EOS)]
    count = 5
    codes, lengths = np.zeros((6 * count, 1), np.int64), np.full(count, 6)
    samples = Samples(np.array(ids * count), codes, lengths, np.full(count, 4))
    targets = Targets.of(samples)
    with FlopCounterMode(display=False) as counter:
        tokens = torch.from_numpy(samples.tokens)
        hidden = network(tokens, torch.from_numpy(codes), PackedLayout.from_lengths(lengths))
        predictions = predict(network, hidden, targets)
        assert predictions.outputs is not None
        (predictions.logits.sum() + predictions.outputs.sum()).backward()
    counted = counter.get_flop_counts()["Global"]
    products = sum(n for op, n in counted.items() if "mm" in str(op) and "bmm" not in str(op))
    result = StepResult(np.zeros(2), np.array([2.0 * count, 0.0]), 6 * count, 0, count)
    expected = flops.step_flops(small, flops.ParameterCounts.of(network), result)
    # The counter ignores norms and biases.
    assert expected == pytest.approx(products, rel=0.015)
    with_pairs = flops.step_flops(
        small, flops.ParameterCounts.of(network), result._replace(attention_pairs=21 * count)
    )
    assert with_pairs - expected == 12 * 128 * 21 * count


@pytest.mark.parametrize("task", ["minmax", "interval", "sorting"])
def test_expected_chance_accuracy_matches_generated_questions(task: str) -> None:
    answers = {"minmax": [0, 0, 2, 3, 4, 5], "interval": [0, 0, 0, 3, 4, 5, 6]}
    choices = answers.get(task, [0, 0, 2, 6, 24, 120])
    (source,) = generated_sources(
        task, split="val", seed=1, rank=0, max_digits=15, easy=False, base=10
    )
    operands = [row for block in range(6) for row in source.block(block)["operands"].to_pylist()]
    assert len(operands) > 1000
    accuracy = np.mean([1 / choices[len(row)] for row in operands])
    assert expected_chance_accuracy(task) == pytest.approx(accuracy, rel=0.08)


def test_chance_accuracy_is_0_for_computed_answers() -> None:
    assert [expected_chance_accuracy(task) for task in ("addition", "std", "text")] == [0.0] * 3


def test_level_without_questions_has_no_score() -> None:
    scores = _mean_by_level(np.array([0, 0, 3]), np.array([1.0, 0.5, 0.0]), 5)
    assert scores == [0.75, None, None, 0.0, None]
