"""The commands that exchange runs and datasets: export, import, verify, leaderboard."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from numbench.cli.json_output import set_result
from numbench.cli.options import Out, option, print_lines, print_to_stderr
from numbench.errors import BadInput, NumbenchError

Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders of runs.")]
ExportTarget = Literal["inspect", "lm-eval", "huggingface", "baseline"]


def export(
    source: Annotated[
        list[str] | None,
        typer.Argument(help="Run folders (inspect), or a dataset. [default: dataset v1]"),
    ] = None,
    *,
    to: Annotated[
        ExportTarget,
        typer.Option(
            help="inspect: runs as Inspect logs. lm-eval: a dataset as lm-evaluation-harness "
            "tasks. huggingface: a dataset as Hugging Face dataset. baseline: the scores of a run "
            "as a file for numbench compare."
        ),
    ],
    out: Annotated[Path, option("FOLDER|FILE", "Folder to write; of a baseline, the file.")],
) -> None:
    """Write runs or a dataset in the format of another tool.

    \b
    Examples:
      numbench export --to inspect --out logs results/RUN
      numbench export --to lm-eval --out tasks v1
      numbench export --to huggingface --out hub v1
      numbench export --to baseline --out baseline.json results/RUN

    Writes to --out, and ends with the command that uses the result.
    """
    from numbench.dataset.store import open_dataset
    from numbench.jsonl import check_output_folder

    if to in ("inspect", "baseline"):
        if not source:
            raise BadInput(f"--to {to} exports runs: name a run folder")
        if missing := [each for each in source if not Path(each).exists()]:
            raise BadInput(f"{missing[0]} is not a folder of runs, which --to {to} exports")
    if to == "baseline":
        from numbench.reporting.baseline import write_baseline

        assert source
        if len(source) > 1:
            raise BadInput("--to baseline exports one run")
        write_baseline(Path(source[0]), out)
        print(f"next: numbench compare {out} results/NEW")
        return
    check_output_folder(out)
    if to == "inspect":
        from numbench.ecosystem.inspect_log import export_runs

        assert source
        print_lines(*export_runs(list(map(Path, source)), out))
        print(f"next: inspect view --log-dir {out}")
        return
    if source and len(source) > 1:
        raise BadInput(f"--to {to} takes one dataset, not {len(source)}")
    dataset = open_dataset(source[0] if source else "v1")
    if to == "lm-eval":
        from numbench.ecosystem.lm_eval_harness import export_lm_eval

        group = export_lm_eval(dataset, out)
        print(
            f"{out}: {group}\nnext: lm_eval run --include_path {out} --tasks {group} "
            "--apply_chat_template --model MODEL --model_args ARGUMENTS"
        )
    else:
        from numbench.ecosystem.huggingface import export_huggingface

        print(f"{out}: {len(export_huggingface(dataset, out))} files")
        print(f"next: hf upload {shlex.join(['OWNER/NAME', str(out)])} . --repo-type dataset")


def import_(
    paths: Annotated[list[Path], typer.Argument(help="Logs, or folders of logs.")],
    *,
    dataset: Annotated[
        str | None,
        option("NAME|FOLDER", "The questions of the logs. [default: the dataset that a log names]"),
    ] = None,
    out: Out = Path("results/imported"),
) -> None:
    """Convert logs of Inspect to runs.

    \b
    Examples:
      numbench import logs                      .eval and .json files
      numbench report results/imported

    Logs must be of numbench's own task. What a log does not hold is unknown in the run. Writes one
    run folder per log.
    """
    from numbench.ecosystem.inspect_import import import_logs

    runs = import_logs(paths, out, dataset)
    print_lines(*runs, f"{out}: {_count(len(runs), 'run')}")
    print(f"next: numbench report {out}")


def verify(
    runs: Runs,
    *,
    repair: Annotated[
        bool, typer.Option("--repair", help="Keep every readable line, and back up the original.")
    ] = False,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete", help="Fail for runs that do not answer 99% of each task of their dataset."
        ),
    ] = False,
) -> None:
    """Check that runs are complete, intact and plausible.

    Checks every line of the journal, the hashes of questions and prompts, that questions are
    answered once per sample, and whether token counts and answers are plausible. An error makes a
    run invalid (exit code 1), a warning does not.

    \b
    Examples:
      numbench verify results/RUN
      numbench verify submissions --complete   for a leaderboard
      numbench verify results/RUN --repair   keep what can be read

    With --repair, only damaged lines are repaired; the run requests again what is lost.
    Writes no files without --repair.
    """
    if repair:
        if complete:
            raise BadInput("--complete cannot be used with --repair")
        for run in runs:
            _repair(run)
        return
    from numbench.verification import verify as verify_runs

    results = set_result(verify_runs(runs, on_progress=print_to_stderr, require_complete=complete))
    for each in results:
        print_lines(f"{each.path}: {'valid' if each.is_valid else 'NOT VALID'}")
        for severity, check, text in each.findings:
            print_lines(f"  {severity:<8} {check:<12} {text}")
    if invalid := sum(not each.is_valid for each in results):
        verb = "is" if invalid == 1 else "are"
        raise NumbenchError(f"{invalid} of {_count(len(results), 'run')} {verb} not valid")


def _repair(run: Path) -> None:
    from numbench.journal_repair import verify_run

    state = verify_run(run, repair=True)
    for damage in state.damage:
        item = f" (question {damage.item_id})" if damage.item_id else ""
        print_lines(f"{damage.path}, line {damage.line}{item}: lost: {damage.reason}")
    repaired = f"{_count(len(state.damage), 'line')} repaired"
    print(f"{run}: {_count(state.responses, 'response')}, {repaired}")


def leaderboard(
    runs: Runs,
    *,
    published: Annotated[
        bool,
        typer.Option(
            show_default=False,
            help="Also show the paper's published scores, if all runs are on its questions or v1. "
            "[default: yes]",
        ),
    ] = True,
    out: Annotated[Path, option("FOLDER", "Folder to write: new, or an earlier site.")] = Path(
        "leaderboard"
    ),
    repository: Annotated[str | None, option("URL", "Where runs are submitted; linked.")] = None,
) -> None:
    """Write a leaderboard: a static web site of runs.

    Runs that lack more than 1% of the answers to a task are listed below, without ranks.

    \b
    Examples:
      numbench leaderboard results/RUN1 results/RUN2
      numbench leaderboard submissions --out leaderboard   folder of checked runs

    Writes to --out: index.html, about.html, a page per run, and data/ (report.json,
    scores.parquet, tables as CSV, checksums of the run folders). The pages need no server, no
    script and no other host.
    """
    from numbench.leaderboard import write_leaderboard

    site = write_leaderboard(
        runs, out, published=published, on_progress=print_to_stderr, repository=repository
    )
    print(f"{site.out}: {_count(site.runs, 'run') if site.runs else 'no runs yet'}, ", end="")
    print(_count(site.pages, "page"))
    if site.incomplete:
        verb = "is" if len(site.incomplete) == 1 else "are"
        names = ", ".join(site.incomplete)
        count = _count(len(site.incomplete), "run")
        print_lines(f"{count} {verb} incomplete and not ranked: {names}")
    print(f"next: open {site.out / 'index.html'} in a browser")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
