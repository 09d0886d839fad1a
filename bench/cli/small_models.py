"""The commands on the paper's small models: encodings."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from bench.cli.options import console
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
    _need_torch("encodings")
    from bench.bittoken.desiderata import measure_encodings

    measured = measure_encodings(out, dataset, trained)
    console().print(measured.shown)
    print()
    for path in measured.written:
        print(path)


def _need_torch(command: str) -> None:
    if find_spec("torch") is None:
        raise BadInput(f"numbench {command} needs an extra: pip install 'numbench[local]'")
