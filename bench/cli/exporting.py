"""The command that writes what other people's tools read: export."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import BadInput

if TYPE_CHECKING:
    from bench.dataset.store import Dataset


class Target(str, Enum):  # noqa: UP042 - typer wants str members
    inspect = "inspect"
    lm_eval = "lm-eval"
    huggingface = "huggingface"


def export(
    to: Annotated[
        Target,
        typer.Option(
            help="Runs as logs of Inspect; a dataset as task folder of lm-evaluation-harness, "
            "or as folder for the Hugging Face hub."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    source: Annotated[
        list[str] | None,
        typer.Argument(help="Run folders (inspect), or a dataset. [default: dataset v1]"),
    ] = None,
) -> None:
    """Write runs or a dataset in the format of another tool."""
    if to is Target.inspect:
        _runs(source or [], out)
        return
    from bench.dataset.store import open_dataset

    if source and len(source) > 1:
        raise BadInput(f"--to {to.value} takes one dataset, not {len(source)}")
    _dataset(open_dataset(source[0] if source else "v1"), to, out)


def _runs(source: list[str], out: Path) -> None:
    from bench.ecosystem.inspect_log import export_runs

    if not source:
        raise BadInput("--to inspect exports runs: name a run folder, or a folder of runs")
    for path in export_runs([Path(name) for name in source], out):
        print(path)
    print(f"{out}: next: inspect view --log-dir {out}")


def _dataset(source: Dataset, to: Target, out: Path) -> None:
    from bench.ecosystem.harness_folder import export_harness
    from bench.ecosystem.huggingface import export_huggingface

    if to is Target.lm_eval:
        group = export_harness(source, out)
        print(f"{out}: next: lm_eval run --include_path {out} --tasks {group} --model ...")
    else:
        export_huggingface(source, out)
        first = source.tasks[0]
        print(f'{out}: next: datasets.load_dataset("{out}", "{first}")')
