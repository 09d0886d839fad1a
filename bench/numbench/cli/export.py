"""The command that writes the formats of other tools: export."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from numbench.errors import BadInput
from numbench.output_folders import check_output_folder

if TYPE_CHECKING:
    from numbench.dataset.store import Dataset


class ExportTarget(str, Enum):  # noqa: UP042 - typer needs str members
    inspect = "inspect"
    lm_eval = "lm-eval"
    huggingface = "huggingface"
    eval_results = "eval-results"


def export(
    to: Annotated[
        ExportTarget,
        typer.Option(
            help="inspect: runs as Inspect logs. lm-eval: a dataset as lm-evaluation-harness "
            "tasks. huggingface: a dataset as Hugging Face dataset and benchmark. eval-results: "
            "the scores of runs for a model repository on the Hugging Face hub."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write.")],
    source: Annotated[
        list[str] | None,
        typer.Argument(
            help="Run folders (inspect, eval-results), or a dataset. [default: dataset v1]"
        ),
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option(
            metavar="OWNER/NAME", help="eval-results: the benchmark's dataset on the hub."
        ),
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option(metavar="COMMIT", help="eval-results: the commit of that dataset."),
    ] = None,
    source_url: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="URL", help="eval-results: where the report or responses are."
        ),
    ] = None,
) -> None:
    """Write runs or a dataset in the format of another tool.

    \b
    Examples:
      numbench export --to inspect --out logs results/RUN
      numbench export --to lm-eval --out tasks v1
      numbench export --to huggingface --out hub v1
      numbench export --to eval-results --benchmark LAB/NAME --out hub results/RUN

    Writes to --out, and ends with the command that uses the result.
    """
    for_results = {"--benchmark": benchmark, "--revision": revision, "--source": source_url}
    check_output_folder(out)
    _check_options(to, for_results)
    if to is ExportTarget.inspect:
        _export_runs(source or [], out)
    elif to is ExportTarget.eval_results:
        _export_eval_results(source or [], out, (benchmark, revision, source_url))
    else:
        from numbench.dataset.store import open_dataset

        if source and len(source) > 1:
            raise BadInput(f"--to {to.value} takes one dataset, not {len(source)}")
        _export_dataset(open_dataset(source[0] if source else "v1"), to, out)


def _check_options(to: ExportTarget, for_results: Mapping[str, str | None]) -> None:
    for option, value in for_results.items():
        if value is not None and to is not ExportTarget.eval_results:
            raise BadInput(f"{option} is an option of --to eval-results")


def _export_runs(sources: list[str], out: Path) -> None:
    from numbench.ecosystem.inspect_log import export_runs

    if not sources:
        raise BadInput("--to inspect exports runs: name a run folder, or a folder of runs")
    for path in export_runs([Path(source) for source in sources], out):
        print(path)
    print(f"next: inspect view --log-dir {out}")


def _export_eval_results(
    sources: list[str],
    out: Path,
    reference: tuple[str | None, str | None, str | None],
) -> None:
    from numbench.ecosystem.huggingface_results import (
        RESULTS_FOLDER,
        Benchmark,
        export_eval_results,
    )

    if not sources:
        raise BadInput("--to eval-results exports runs: name a run folder, or a folder of runs")
    repository, revision, source_url = reference
    if repository is None:
        raise BadInput("--to eval-results needs --benchmark OWNER/NAME: the dataset on the hub")
    paths = [Path(source) for source in sources]
    files = export_eval_results(paths, Benchmark(repository, revision, source_url), out)
    for path in files:
        print(path)
    upload = ["OWNER/MODEL", str(out / RESULTS_FOLDER), RESULTS_FOLDER, "--create-pr"]
    print(f"next: hf upload {shlex.join(upload)}")


def _export_dataset(dataset: Dataset, to: ExportTarget, out: Path) -> None:
    from numbench.ecosystem.huggingface_dataset import export_huggingface
    from numbench.ecosystem.lm_eval_harness import export_lm_eval

    if to is ExportTarget.lm_eval:
        group = export_lm_eval(dataset, out)
        print(
            f"{out}: {group}\nnext: lm_eval run --include_path {out} --tasks {group} "
            "--apply_chat_template --model MODEL --model_args ARGUMENTS"
        )
        return
    files = export_huggingface(dataset, out)
    upload = ["OWNER/NAME", str(out), ".", "--repo-type", "dataset"]
    print(f"{out}: {len(files)} files\nnext: hf upload {shlex.join(upload)}")
