"""The commands on the paper's small models: encodings, perplexity."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bench.cli.options import TextSplit, console
from bench.errors import BadInput


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

    Perplexity of all tokens, and of those that are neither a number nor a piece of one. Where a
    number is one token, that it stands there counts, not its value. One document in a hundred
    is val, by its content.
    """
    _need("perplexity", "torch", "safetensors", "tokenizers")
    folder = Path(model.removeprefix("checkpoint/")).expanduser()
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
