"""The commands that exchange runs and datasets: export, import, verify, leaderboard."""

from __future__ import annotations

from typing import Any

from numbench import api
from numbench.cli.json_output import set_result
from numbench.cli.options import (
    given_values,
    print_lines,
    print_to_stderr,
    takes_arguments_of,
)
from numbench.errors import NumbenchError


@takes_arguments_of(api.export)
def export(**values: Any) -> None:
    """Write runs or a dataset in the format of another tool.

    \b
    Examples:
      numbench export --to inspect --out logs results/RUN
      numbench export --to lm-eval --out tasks v1
      numbench export --to huggingface --out hub v1
      numbench export --to baseline --out baseline.json results/RUN

    Writes to --out, and ends with the command that uses the result.
    """
    exported = api.export(**given_values(values))
    print_lines(*exported.files, f"next: {exported.next_command}")


@takes_arguments_of(api.import_logs)
def import_(**values: Any) -> None:
    """Convert logs of Inspect to runs.

    \b
    Examples:
      numbench import logs                      .eval and .json files
      numbench report results/imported

    Logs must be of numbench's own task. What a log does not hold is unknown in the run. Writes one
    run folder per log.
    """
    runs = api.import_logs(**given_values(values))
    print_lines(*runs, f"{values['out']}: {_count(len(runs), 'run')}")
    print_lines(f"next: numbench report {values['out']}")


@takes_arguments_of(api.verify)
def verify(**values: Any) -> None:
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
    results = set_result(api.verify(**given_values(values), on_progress=print_to_stderr))
    for each in results:
        state = "repaired" if values["repair"] else "valid" if each.is_valid else "NOT VALID"
        print_lines(f"{each.path}: {state}")
        for severity, check, text in each.findings:
            print_lines(f"  {severity:<8} {check:<12} {text}")
    if invalid := sum(not each.is_valid for each in results):
        verb = "is" if invalid == 1 else "are"
        raise NumbenchError(f"{invalid} of {_count(len(results), 'run')} {verb} not valid")


@takes_arguments_of(api.write_leaderboard)
def leaderboard(**values: Any) -> None:
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
    site = api.write_leaderboard(**given_values(values), on_progress=print_to_stderr)
    runs = _count(site.runs, "run") if site.runs else "no runs yet"
    print_lines(f"{site.out}: {runs}, {_count(site.pages, 'page')}")
    if site.incomplete:
        verb = "is" if len(site.incomplete) == 1 else "are"
        names = ", ".join(site.incomplete)
        count = _count(len(site.incomplete), "run")
        print_lines(f"{count} {verb} incomplete and not ranked: {names}")
    print_lines(f"next: open {site.out / 'index.html'} in a browser")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
