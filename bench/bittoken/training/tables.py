"""Tables of `bittoken train`: recipes, the plan of a training, and its results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from bittoken.network import Network
from bittoken.text.bpe import GPT2_VOCABULARY_SIZE
from bittoken.training.flops import ParameterCounts
from bittoken.training.metrics_log import LogEntry, best_validation, read_log
from bittoken.training.recipe import (
    TEXT,
    Recipe,
    TrainingPart,
    bundled_recipes,
    recipe_description,
    task_display_name,
)
from bittoken.training.run import CHECKPOINT_FOLDER
from bittoken.training.text_data import load_text_vocabulary
from bittoken.vocabulary import Vocabulary
from numbench.progress_display import format_percent, short_count
from numbench.tasks import PAPER_TASKS

_BYTES_PER_PARAMETER = 4
"""Bytes per stored value: weights and optimiser states are float32."""


class TrainingPlan(NamedTuple):
    """The sizes that follow from a recipe.

    vocabulary_size: number of tokens; the maximum if the text vocabulary will be trained, and
    GPT-2's size if the file of the text vocabulary does not exist yet. checkpoint_bytes,
    state_bytes: approximate sizes on disk.
    """

    recipe: Recipe
    vocabulary_size: int
    parameters: ParameterCounts
    checkpoint_bytes: int
    state_bytes: int


def plan_training(recipe: Recipe) -> TrainingPlan:
    """Return the plan of a training.

    Raises BadInput if the recipe's text vocabulary exists but cannot be loaded.
    """
    vocabulary = len(Vocabulary(recipe.model.encoding)) + _text_vocabulary_size(recipe)
    with torch.device("meta"):
        sizes = ParameterCounts.of(Network(recipe.config(vocabulary)))
    # Current and best weights, plus one moment per parameter for Muon and two for Adam. Nearly all
    # parameters of the layers are in matrices, which Muon updates.
    state = 2 * sizes.total + sizes.layers + 2 * (sizes.heads + sizes.embedding)
    return TrainingPlan(
        recipe, vocabulary, sizes, _BYTES_PER_PARAMETER * sizes.total, _BYTES_PER_PARAMETER * state
    )


def _text_vocabulary_size(recipe: Recipe) -> int:
    path = recipe.data.text_vocabulary
    if TEXT not in recipe.data.tasks:
        return 0
    if path is None:
        return recipe.data.text_size
    return len(load_text_vocabulary(Path(path))) if Path(path).exists() else GPT2_VOCABULARY_SIZE


def training_plan_table(plan: TrainingPlan) -> Table:
    """Return the table of a plan, for `bittoken train --dry-run`."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _rows(plan):
        table.add_row(name, value)
    return table


def recipe_table() -> Table:
    """Return the table of bundled recipes with their descriptions."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Recipe", no_wrap=True)
    table.add_column("Description", overflow="fold")
    for name in bundled_recipes():
        table.add_row(name, recipe_description(name))
    return table


def _rows(plan: TrainingPlan) -> list[tuple[str, str]]:
    recipe, training, model = plan.recipe, plan.recipe.training, plan.recipe.model
    data = recipe.data
    is_spelled = Vocabulary(model.encoding).encoding is None
    numbers = (
        "spelled as text" if is_spelled else f"combined by {model.combination}, {model.head} head"
    )
    checkpoint, state = _format_bytes(plan.checkpoint_bytes), _format_bytes(plan.state_bytes)
    return [
        ("recipe", recipe.name),
        ("numbers", f"{model.encoding}, {numbers}"),
        ("network", f"{model.layers} layers, {model.heads} heads, width {model.width}"),
        ("parameters", _parameters_description(plan)),
        ("tasks", ", ".join(task_display_name(task) for task in data.tasks)),
        ("text", _text_description(recipe)),
        ("curriculum", _curriculum_description(recipe)),
        ("operands", _operands_description(recipe)),
        ("training", _length_description(training)),
        ("validation", _validation_description(training)),
        ("on disk", f"checkpoint {checkpoint}, state for resuming {state}"),
    ]


def _parameters_description(plan: TrainingPlan) -> str:
    layers, heads, embedding = (short_count(size) for size in plan.parameters)
    return f"{plan.parameters.total:,} (layers {layers}, heads {heads}, embedding {embedding})"


def _text_description(recipe: Recipe) -> str:
    data = recipe.data
    if data.text is None:
        return "none"
    folder = data.text if Path(data.text).is_dir() else f"{data.text} (folder missing)"
    if data.text_vocabulary is not None:
        is_missing = not Path(data.text_vocabulary).exists()
        note = " (file missing; size assumed as GPT-2's)" if is_missing else ""
        return f"{folder}, vocabulary {data.text_vocabulary}{note}"
    return f"{folder}, with a vocabulary of at most {data.text_size:,} tokens trained on it"


def _operands_description(recipe: Recipe) -> str:
    data = recipe.data
    if data.bits is None:
        return f"at most {data.digits} digits"
    shifted = f", divided by powers of ten up to 10^{data.shift}" if data.shift else ""
    return f"integers from 1 to 2^{data.bits} - 1{shifted}"


def _length_description(training: TrainingPart) -> str:
    length = f"{training.tokens:,} tokens"
    batch = f"{training.batch_tokens:,} tokens per step"
    if training.batch_questions:
        length = f"{training.questions:,} questions"
        batch = f"{training.batch_questions:,} questions per step"
    if training.micro_tokens:
        batch += f", in micro-batches of {training.micro_tokens:,} tokens"
    return f"{length}: {training.steps:,} steps, {batch}"


def _validation_description(training: TrainingPart) -> str:
    size = f"{training.validation_items:,} questions of each task"
    if training.validation_tokens:
        size = f"{training.validation_tokens:,} tokens"
    text = f"every {training.validate_every:,} steps on {size}, saved every {training.save_every:,}"
    if training.stop_exact:
        text += f"; ends at {training.stop_exact:.0%} exact match"
    return text


def _curriculum_description(recipe: Recipe) -> str:
    data = recipe.data
    names = [task_display_name(task) for task in data.tasks if task in data.curriculum]
    return f"{', '.join(names)}, by digits in base {recipe.base}" if names else "none"


def _format_bytes(count: float) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1e3:.0f} kB"


class TrainingSummary(NamedTuple):
    """The result of a training: its folder and best validation, None before the first one."""

    folder: Path
    start_entry: LogEntry
    best: LogEntry | None

    @property
    def evaluation_command(self) -> str:
        """The command that evaluates the checkpoint."""
        names = [task for task in self.best["tasks"] if task != TEXT] if self.best else []
        is_all = not names or len(names) == len(PAPER_TASKS)
        tasks = "" if is_all else f" --tasks {','.join(names)}"
        return (
            f"numbench run --model checkpoint/{self.folder / CHECKPOINT_FOLDER} --dataset v1{tasks}"
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render scores by task, the checkpoint's path, and the command that evaluates it."""
        if self.best is None:
            yield Text("no scores yet: the training ended before its first validation")
        else:
            yield self._table(self.best)
            mean = format_percent(self.best["harmonic_mean"])
            yield Text(f"validation at step {self.best['step']:,}, harmonic mean {mean}")
        yield from (Text(text) for text in self._paths())

    def _table(self, best: LogEntry) -> Table:
        table = Table(box=None, pad_edge=False)
        for name in ("Task", "Score", "Exact", "Chance"):
            table.add_column(name, justify="left" if name == "Task" else "right")
        for task, metrics in best["tasks"].items():
            chance = self.start_entry.get("chance", {}).get(task)
            shares = (metrics["score"], metrics["exact"], chance or None)
            table.add_row(task_display_name(task), *(format_percent(share) for share in shares))
        return table

    def _paths(self) -> Iterator[str]:
        yield f"best checkpoint: {self.folder / CHECKPOINT_FOLDER}"
        yield f"to evaluate it: {self.evaluation_command}"


def summarize_training(folder: Path) -> TrainingSummary:
    """Return the summary of the training in `folder`. Raises BadInput if there is none."""
    entries = read_log(folder)
    return TrainingSummary(folder, entries[0] if entries else {}, best_validation(entries))
