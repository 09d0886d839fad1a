"""The command `bittoken`: train small models and measure them."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import msgspec
import typer

from bittoken.bundled_checkpoints import checkpoint_folder
from numbench.cli import run_app
from numbench.cli.options import TextSplit, console, print_to_stderr
from numbench.errors import BadInput

if TYPE_CHECKING:
    from bittoken.training.recipe import Recipe

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


@app.command()
def encodings(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write.")] = Path(
        "results/encodings"
    ),
    dataset: Annotated[
        str, typer.Option(help="Name or folder of the dataset with the numbers to encode.")
    ] = "v1",
    trained: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Scores of trained models for desideratum D9; columns encoding, task, score.",
        ),
    ] = None,
) -> None:
    """Measure the paper's desiderata for every number encoding.

    \b
    Examples:
      bittoken encodings
      bittoken encodings --dataset v1 --out results/encodings

    Writes tables and figures to --out. Needs pip install 'numbench[local]'.
    """
    _require_packages("encodings", "torch")
    from rich.console import Console

    from bittoken.desiderata.report import measure_encodings

    _set_threads(1)  # The arrays are small: more threads wait for each other.
    with Console(stderr=True).status("measuring every encoding"):
        result = measure_encodings(out, dataset, trained)
    console().print(result.console_output)
    print()
    for path in result.paths:
        print(path)


@app.command()
def train(
    config: Annotated[
        str | None,
        typer.Option(metavar="RECIPE", help="A TOML file, or a name from --list."),
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
    threads: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Number of CPU threads. [default: the recipe's]"),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Only list the bundled recipes.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be trained.")
    ] = False,
    plots: Annotated[
        bool, typer.Option("--plots", help="Only redraw the figures of a training.")
    ] = False,
) -> None:
    """Train a small model. Resumes an interrupted training.

    \b
    Examples:
      bittoken train --list                              the bundled recipes
      bittoken train --config cpu                        ten minutes on a CPU
      bittoken train --config multi-bittoken --dry-run   size, tokens, disk space
      bittoken train --config solo-bittoken --set 'data.tasks=["mean"]' --out mean
      torchrun --nproc-per-node 8 --no-python bittoken train --config cpu

    Writes to --out: recipe.json, metrics.jsonl, figures/, checkpoint/ (the best one so far) and
    state/ (to resume from). Ctrl-C finishes the step and saves; a second Ctrl-C exits at once.
    docs/training.md describes recipes. Needs pip install 'numbench[local]'.
    """
    _require_packages("train", "torch", "safetensors", "tokenizers")
    from bittoken.training.recipe import load_recipe
    from bittoken.training.tables import plan_training, recipe_table, training_plan_table

    if list_ + dry_run + plots > 1:
        raise BadInput("--list, --dry-run and --plots are mutually exclusive: give one of them")
    if list_:
        console().print(recipe_table())
        return
    if config is None:
        raise BadInput("give --config RECIPE: a TOML file, or a name from `bittoken train --list`")
    recipe = load_recipe(config, set_ or ())
    folder = out or TRAINING_FOLDER / recipe.name
    if dry_run:
        console().print(training_plan_table(plan_training(recipe)))
    elif plots:
        _draw(folder)
    else:
        _set_threads(threads or recipe.training.threads)
        _train(recipe, folder, minutes)


def _train(recipe: Recipe, folder: Path, minutes: float | None) -> None:
    from bittoken.training.run import TrainingInterrupted, resume_step, train_interactive

    completed, steps = resume_step(recipe, folder), recipe.training.steps
    if completed >= steps:
        _print_summary(folder, f"{folder}: this training is complete, all {steps:,} steps are done")
        return
    if completed:
        _print_from_main_process(f"{folder}: resuming after step {completed:,} of {steps:,}")
    hint = "run the same command again to continue"
    try:
        result = train_interactive(recipe, folder, minutes)
    except TrainingInterrupted as interruption:
        step = interruption.result.step
        _print_from_main_process(f"{folder}: stopped after step {step:,} of {steps:,}; {hint}")
        raise typer.Exit(130) from None
    if result.is_complete:
        message = f"{folder}: all {steps:,} steps are done"
    else:
        message = f"{folder}: time limit reached after step {result.step:,} of {steps:,}; {hint}"
    _print_summary(folder, message, draw=True)


def _print_summary(folder: Path, message: str, draw: bool = False) -> None:
    """Print the result of a training, with the command to use next, from its main process."""
    from bittoken.training.plots import plot_training
    from bittoken.training.tables import summarize_training

    if _is_main_process():
        print_to_stderr(message)
        for path in plot_training(folder) if draw else ():
            if path.suffix == ".png":
                print(path)
        console().print(summarize_training(folder), soft_wrap=True)


def _draw(folder: Path) -> None:
    from bittoken.training.plots import plot_training

    paths = plot_training(folder)
    if not paths:
        raise BadInput(f"{folder}: no validation results yet, so there is nothing to draw")
    for path in paths:
        print(path)


def _set_threads(threads: int) -> None:
    if threads:
        import torch

        torch.set_num_threads(threads)


def _print_from_main_process(text: str) -> None:
    if _is_main_process():
        print_to_stderr(text)


def _is_main_process() -> bool:
    """Return whether this process prints for all processes of a distributed training."""
    return os.environ.get("RANK", "0") == "0"


@app.command()
def perplexity(
    model: Annotated[str, typer.Option(metavar="checkpoint/PATH", help="A trained small model.")],
    text: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Folder of .parquet (column text) or .txt files."),
    ],
    tokens: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Use at most this many tokens. [default: all]"),
    ] = None,
    split: Annotated[
        TextSplit,
        typer.Option(help="Documents to use; one in a hundred is val and never trained on."),
    ] = TextSplit.val,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure how well a small model predicts text.

    \b
    Examples:
      bittoken perplexity --model checkpoint/my-model --text data/fineweb
      bittoken perplexity --model checkpoint/my-model --text data/fineweb --json

    Prints the perplexity of all tokens, and of the tokens that are neither a number nor a part of
    one. A number token counts as one token, whatever its value. Encodings differ in their tokens,
    so compare models by the second figure. Writes no files. Needs pip install 'numbench[local]'.
    """
    _require_packages("perplexity", "torch", "safetensors", "tokenizers")
    folder = checkpoint_folder(model.removeprefix("checkpoint/"))
    if not model.startswith("checkpoint/") or not folder.is_dir():
        raise BadInput(
            f"{model}: not a small model; give --model checkpoint/PATH with the path of its folder"
        )
    from bittoken.perplexity import text_perplexity

    result = text_perplexity(folder, text, split.value, tokens)
    if json:
        content = {
            "model": model,
            "text": str(text),
            "split": split.value,
            "perplexity": result.all,
            "tokens": result.all_tokens,
            "text_perplexity": result.text,
            "text_tokens": result.text_tokens,
        }
        print(msgspec.json.encode(content).decode())
        return
    print(
        f"{model} on {text} ({split.value}): perplexity {_format_perplexity(result.all)} over "
        f"{result.all_tokens:,} tokens; {_format_perplexity(result.text)} over the "
        f"{result.text_tokens:,} that are not part of a number"
    )


def _format_perplexity(perplexity: float | None) -> str:
    return "unknown" if perplexity is None else f"{perplexity:,.4g}"


def _require_packages(command: str, *packages: str) -> None:
    if any(find_spec(package) is None for package in packages):
        raise BadInput(f"bittoken {command} needs an extra: pip install 'numbench[local]'")
