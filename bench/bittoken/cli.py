"""The command `bittoken`: train small models and measure them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import msgspec
import typer

from numbench.cli import run_app
from numbench.cli.options import print_to_stderr
from numbench.models.local_inference import require_local_extra

if TYPE_CHECKING:
    from bittoken.recipe import Recipe
    from bittoken.train import LogEntry
    from bittoken.train import Progress as TrainingProgress

TRAINING_FOLDER = Path("results/training")

app = typer.Typer(
    name="bittoken",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train small language models whose numbers are single tokens, and measure them.",
)


def main() -> NoReturn:
    """Run the `bittoken` command."""
    run_app(app, "bittoken")


@app.callback()
def _commands() -> None:
    """Keep `train` a command by name; typer omits the name of a single command."""


@app.command()
def train(
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="RECIPE", help="A bundled recipe or a TOML file. [default: a list]"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder to write. [default: results/training/NAME]"),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a field of the recipe. Repeatable."
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="MINUTES", help="Save and stop after this time. [default: no limit]"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be trained.")
    ] = False,
) -> None:
    """Train a small model, or list the bundled recipes. Resumes an interrupted training.

    \b
    Examples:
      bittoken train                            the bundled recipes
      bittoken train cpu                        ten minutes on a CPU
      bittoken train multi-bittoken --dry-run   the complete recipe and its size
      bittoken train solo-bittoken --set 'data.tasks=["mean"]' --out mean

    Writes to --out: recipe.json, metrics.jsonl, checkpoint/ (the best one so far) and
    state.pt (to resume from). Ctrl-C finishes the step and saves; a second Ctrl-C exits at once.
    docs/bittoken.md describes recipes. Needs pip install 'numbench[local]'.
    """
    require_local_extra("bittoken train", ("torch", "safetensors", "tokenizers"))
    from bittoken.recipe import bundled_recipes, load_recipe

    if recipe is None:
        for name, description in bundled_recipes().items():
            print(f"{name:<18} {description}")
        return
    settings = load_recipe(recipe, set_ or ())
    if dry_run:
        _show(settings)
        return
    import torch

    if settings.training.threads:
        torch.set_num_threads(settings.training.threads)
    _train(settings, out or TRAINING_FOLDER / settings.name, minutes)


def _show(recipe: Recipe) -> None:
    """Print the complete recipe and the size of the network."""
    import torch

    from bittoken.network import Network
    from bittoken.tokens import Vocabulary

    with torch.device("meta"):
        network = Network(recipe.config(len(Vocabulary(recipe.model.encoding))))
    parameters = sum(p.numel() for p in network.parameters())
    print(msgspec.json.format(msgspec.json.encode(recipe), indent=2).decode())
    per_token = 2 * recipe.model.width  # an embedding and a row of the head
    more = f" and {per_token:,} for each token of text" if recipe.data.text else ""
    print(f"{parameters:,} parameters{more}; {recipe.training.steps:,} steps")


def _train(recipe: Recipe, folder: Path, minutes: float | None) -> None:
    from bittoken.train import train
    from numbench.core.signals import stop_on_signals

    stop, deadline = threading.Event(), None if minutes is None else time.monotonic() + 60 * minutes

    def on_signal() -> None:
        stop.set()
        print_to_stderr("stopping after this step and saving; press Ctrl-C again to exit at once")

    with stop_on_signals(on_signal), _progress(recipe) as (show_step, on_log_entry):

        def on_step(progress: TrainingProgress, loss: float) -> bool:
            show_step(progress, loss)
            return stop.is_set() or (deadline is not None and time.monotonic() >= deadline)

        result = train(recipe, folder, on_step, on_log_entry)
    reason, more = "complete", ""
    if not result.is_complete:
        reason = "stopped" if stop.is_set() else "time limit reached"
        more = "; run the same command again to continue"
    steps = recipe.training.steps
    print_to_stderr(f"{folder}: {reason} after step {result.step:,} of {steps:,}{more}")
    if stop.is_set() and not result.is_complete:
        raise typer.Exit(130)
    _print_result(recipe, folder)


@contextmanager
def _progress(
    recipe: Recipe,
) -> Iterator[tuple[Callable[[TrainingProgress, float], None], Callable[[LogEntry], None]]]:
    """Show a line of progress on a terminal, and one line for every validation."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    screen = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=screen, disable=not screen.is_terminal) as bar:
        line = bar.add_task(recipe.name, total=recipe.training.steps, loss=float("nan"))

        def on_step(progress: TrainingProgress, loss: float) -> None:
            bar.update(line, completed=progress.step, loss=loss)

        def on_log_entry(entry: LogEntry) -> None:
            resuming = "resuming after " if entry.get("event") == "resumed" else ""
            text = f"{recipe.name}: {resuming}step {entry['step']:,} of {recipe.training.steps:,}"
            if "tasks" in entry:
                scores = (f"{task} {m['score']:.1%}" for task, m in entry["tasks"].items())
                rate = entry["tokens"] / max(entry["seconds"], 1e-9)
                text += f" · {', '.join(scores)} · {rate:,.0f} tokens/s"
            else:
                text += f" · {entry['parameters']:,} parameters · {entry['device']}"
            screen.print(text, highlight=False, markup=False, soft_wrap=True)

        yield on_step, on_log_entry


def _print_result(recipe: Recipe, folder: Path) -> None:
    """Print the scores of the best checkpoint, and how to evaluate it."""
    from bittoken.train import CHECKPOINT_FOLDER, best_validation

    best, path = best_validation(folder), folder / CHECKPOINT_FOLDER
    if best is None:
        print("no scores yet: the training ended before its first validation")
        return
    for task, metrics in best["tasks"].items():
        print(f"{task:<15} score {metrics['score']:6.1%}   exact {metrics['exact']:6.1%}")
    mean, bits = best["harmonic_mean"], recipe.data.bits
    print(f"best checkpoint: {path} (step {best['step']:,}, harmonic mean {mean:.1%})")
    tasks = f"--tasks {','.join(task for task in best['tasks'] if task != 'text')}"
    dataset = "v1" if bits is None else f"bits{bits}"
    if bits is not None:
        print(f"its questions: numbench generate --name {dataset} --numbers '{bits} bits' {tasks}")
    print(f"to evaluate it: numbench run --model checkpoint/{path} --dataset {dataset} {tasks}")
