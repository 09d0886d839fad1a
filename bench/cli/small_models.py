"""The commands on the paper's small models: encodings, train, perplexity."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from bench.cli.options import TextSplit, console, note
from bench.errors import BadInput
from bench.shipped import checkpoint_folder

if TYPE_CHECKING:
    from bench.bittoken.training.recipe import Recipe

TRAININGS = Path("results/training")


def encodings(
    out: Annotated[Path, typer.Option(help="Folder.")] = Path("results/encodings"),
    dataset: Annotated[str, typer.Option(help="Whose numbers: a dataset, or its folder.")] = "v1",
    trained: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Scores for D9; columns encoding, task, score."),
    ] = None,
) -> None:
    """Measure the paper's desiderata for every number encoding."""
    _need("encodings", "torch")
    from bench.bittoken.desiderata import measure_encodings

    measured = measure_encodings(out, dataset, trained)
    console().print(measured.shown)
    print()
    for path in measured.written:
        print(path)


def train(
    config: Annotated[
        str | None,
        typer.Option(metavar="RECIPE", help="A TOML file, or a name from --list."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder. [default: results/training/NAME]")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a field. Repeatable."),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Save and stop after so many minutes.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads. [default: the recipe's]")
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Show the recipes that come along.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be trained.")
    ] = False,
    plots: Annotated[
        bool, typer.Option("--plots", help="Only draw the figures of a training again.")
    ] = False,
) -> None:
    """Train a small model. The same command again goes on where it stopped.

    \b
    numbench train --list                                  the recipes
    numbench train --config cpu                            ten minutes on a CPU
    numbench train --config multi-bittoken --dry-run       what it would take
    numbench train --config solo-bittoken --set 'data.tasks=["mean"]' --set name=solo-mean
    torchrun --nproc-per-node 8 --no-python numbench train --config multi-bittoken

    Everything lies in one folder (--out): recipe.json, metrics.jsonl, figures/, the best
    checkpoint so far, and the state to go on from. Ctrl-C finishes the step and saves; a
    second one ends at once. docs/training.md says how a recipe looks.
    """
    _need("train", "torch", "safetensors", "tokenizers")
    from bench.bittoken.training.plan import plan, plan_table, recipe_table
    from bench.bittoken.training.recipe import load_recipe

    if list_ + dry_run + plots > 1:
        raise BadInput("--list, --dry-run and --plots exclude one another: give one of them")
    if list_:
        console().print(recipe_table())
        return
    if config is None:
        raise BadInput("give --config RECIPE: a TOML file, or a name from numbench train --list")
    recipe = load_recipe(config, set_ or ())
    folder = out or TRAININGS / recipe.name
    if dry_run:
        console().print(plan_table(plan(recipe)))
    elif plots:
        _draw(folder)
    else:
        _set_threads(threads or recipe.training.threads)
        _train(recipe, folder, minutes)


def _train(recipe: Recipe, folder: Path, minutes: float | None) -> None:
    from bench.bittoken.training.run import reached
    from bench.bittoken.training.session import Interrupted, attend

    before, steps = reached(recipe, folder), recipe.training.steps
    if before >= steps:
        _end(folder, f"{folder}: this training has ended, all {steps:,} steps are done")
        return
    if before:
        _say(f"{folder}: goes on after step {before:,} of {steps:,}")
    try:
        done = attend(recipe, folder, minutes)
    except Interrupted as interruption:
        step = interruption.outcome.step
        _say(f"{folder}: stopped after step {step:,} of {steps:,}; the same command goes on")
        raise typer.Exit(130) from None
    if done.ended:
        _end(folder, f"{folder}: all {steps:,} steps are done", draw=True)
    else:
        said = f"{folder}: time is up after step {done.step:,} of {steps:,}"
        _end(folder, f"{said}; the same command goes on", draw=True)


def _end(folder: Path, said: str, draw: bool = False) -> None:
    """Say what came of a training, in one of its processes."""
    from bench.bittoken.training.plots import redraw
    from bench.bittoken.training.summary import summary

    if _speaks():
        note(said)
        console().print(summary(folder), soft_wrap=True)
        for path in redraw(folder) if draw else ():
            if path.suffix == ".png":
                print(path)


def _draw(folder: Path) -> None:
    from bench.bittoken.training.plots import redraw

    drawn = redraw(folder)
    if not drawn:
        raise BadInput(f"{folder}: nothing is measured yet, so there is nothing to draw")
    for path in drawn:
        print(path)


def _set_threads(threads: int) -> None:
    if threads:
        import torch

        torch.set_num_threads(threads)


def _say(text: str) -> None:
    if _speaks():
        note(text)


def _speaks() -> bool:
    """Whether this is the one process of a training that speaks for all."""
    return os.environ.get("RANK", "0") == "0"


def perplexity(
    model: Annotated[str, typer.Option(metavar="checkpoint/PATH", help="A trained small model.")],
    text: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Text: .parquet (column text) or .txt files.")
    ],
    tokens: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="So many tokens at most. [default: all]"),
    ] = None,
    split: Annotated[
        TextSplit, typer.Option(help="Whose documents; val is never trained on.")
    ] = TextSplit.val,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Measure how well a small model predicts text.

    Perplexity of all tokens and of those that are neither a number nor a piece of one. A number
    token counts as one, whatever its value. Tokens differ between encodings, so compare the second
    figure. One document in a hundred is val, by its content.
    """
    _need("perplexity", "torch", "safetensors", "tokenizers")
    folder = checkpoint_folder(model.removeprefix("checkpoint/"))
    if not model.startswith("checkpoint/") or not folder.is_dir():
        raise BadInput(f"{model}: no small model here; give --model checkpoint/PATH of a folder")
    from bench.bittoken.predicting import text_perplexity

    found = text_perplexity(folder, text, split.value, tokens)
    if json:
        about = {"model": model, "text": str(text), "split": split.value}
        measured = {
            "perplexity": found.all,
            "tokens": found.all_tokens,
            "text_perplexity": found.text,
            "text_tokens": found.text_tokens,
        }
        print(msgspec.json.encode(about | measured).decode())
        return
    print(
        f"{model} on {text} ({split.value}): perplexity {_shown(found.all)} of "
        f"{found.all_tokens:,} tokens; {_shown(found.text)} of the {found.text_tokens:,} that are "
        "no number"
    )


def _shown(perplexity: float | None) -> str:
    return "unknown" if perplexity is None else f"{perplexity:,.4g}"


def _need(command: str, *packages: str) -> None:
    if any(find_spec(package) is None for package in packages):
        raise BadInput(f"numbench {command} needs an extra: pip install 'numbench[local]'")
