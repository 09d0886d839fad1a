"""The command that writes the formats of other tools: export."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from numbench.errors import BadInput

if TYPE_CHECKING:
    from numbench.dataset.store import Dataset


class ExportTarget(str, Enum):  # noqa: UP042 - typer needs str members
    inspect = "inspect"
    lm_eval = "lm-eval"
    huggingface = "huggingface"


def export(
    to: Annotated[
        ExportTarget,
        typer.Option(
            help="inspect: runs as Inspect logs. lm-eval: a dataset as lm-evaluation-harness "
            "tasks. huggingface: a dataset as Hugging Face dataset."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write.")],
    source: Annotated[
        list[str] | None,
        typer.Argument(help="Run folders (inspect), or a dataset. [default: dataset v1]"),
    ] = None,
) -> None:
    """Write runs or a dataset in the format of another tool.

    \b
    Examples:
      numbench export --to inspect --out logs results/RUN
      numbench export --to lm-eval --out tasks v1
      numbench export --to huggingface --out hub v1

    Writes to --out, and ends with the command that uses the result.
    """
    if to is ExportTarget.inspect:
        _export_runs(source or [], out)
        return
    from numbench.dataset.store import open_dataset

    if source and len(source) > 1:
        raise BadInput(f"--to {to.value} takes one dataset, not {len(source)}")
    _export_dataset(open_dataset(source[0] if source else "v1"), to, out)


def _export_runs(sources: list[str], out: Path) -> None:
    from numbench.ecosystem.inspect_log import export_runs

    if not sources:
        raise BadInput("--to inspect exports runs: name a run folder, or a folder of runs")
    for path in export_runs([Path(source) for source in sources], out):
        print(path)
    print(f"{out}: next: inspect view --log-dir {out}")


def _export_dataset(dataset: Dataset, to: ExportTarget, out: Path) -> None:
    from numbench.ecosystem.huggingface_dataset import export_huggingface
    from numbench.ecosystem.lm_eval_harness import export_lm_eval

    if to is ExportTarget.lm_eval:
        group = export_lm_eval(dataset, out)
        print(f"{out}: next: lm_eval run --include_path {out} --tasks {group} --model ...")
    else:
        export_huggingface(dataset, out)
        print(f'{out}: next: datasets.load_dataset("{out}", "{dataset.tasks[0]}")')
