"""The commands for datasets: generate and audit."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numbench import api
from numbench.cli.json_output import set_result
from numbench.cli.options import (
    console,
    given_values,
    plain_table,
    print_to_stderr,
    takes_arguments_of,
)
from numbench.core.signals import raise_keyboard_interrupt, stop_on_signals
from numbench.errors import NumbenchError
from numbench.records import answer_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from numbench.dataset.audit import AuditResult
    from numbench.dataset.generate import FileProgress


@takes_arguments_of(api.generate)
def generate(**values: Any) -> None:
    """Generate a benchmark or training set with exact answers.

    \b
    Examples:
      numbench generate --name hard --seed 7 --size 1000 --tasks mean,std
      numbench generate --name bytes --numbers '8 bits'
      numbench generate --name long --numbers 'size 40' --size 100
      numbench generate --name tables --tasks context --numbers 'size 16, 64'
      numbench generate --name train --split train --size 1000000 --workers 8
      numbench run --model baseline/float64 --dataset hard

    Writes to --out: one or more files per task and manifest.json (settings and SHA-256 hashes).
    """
    written = False

    def print_file(progress: FileProgress) -> None:
        nonlocal written
        written = True
        entry, finished, total, rate, remaining = progress
        count = f"{finished}/{total} files, {rate:,.0f} rows/s"
        rest = f", {remaining:.0f} s remaining" if finished < total else ""
        print_to_stderr(f"{entry.file}: {entry.items:,} questions ({count}{rest})")

    try:
        with stop_on_signals(raise_keyboard_interrupt):
            dataset = api.generate(**given_values(values), on_file=print_file)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; no dataset written") from None
    manifest = set_result(dataset.manifest)
    items = sum(entry.items for entry in manifest.files)
    state = "written" if written else "exists already and is unchanged"
    print(f"{dataset.path}: {items:,} questions, {state} (sha256 {manifest.sha256[:12]})")
    out = values["out"]
    print(f"next: {_next_command(dataset.tasks, Path(out) if out else values['name'])}")


@takes_arguments_of(api.audit)
def audit(**values: Any) -> None:
    """Check labels against exact answers and list the wrong ones.

    \b
    Examples:
      numbench audit v1
      numbench audit PATH/TO/labels.csv --json > wrong.json

    CSV files need the columns text_prompt (or prompt) and answer. The exit code is 1 if a label is
    wrong.
    """
    from rich.console import Group

    result = set_result(api.audit(**values))
    console().print(Group(*_audit_view(result)), soft_wrap=True)
    if wrong := sum(map(len, result.wrong.values())):
        verb = "is" if wrong == 1 else "are"
        total = sum(result.checked.values())
        raise NumbenchError(f"{wrong:,} of {total:,} labels {verb} wrong")


def _audit_view(result: AuditResult) -> Iterator[RenderableType]:
    """Yield every wrong label with its exact value and relative error, then counts per task."""
    from rich.text import Text

    from numbench.tasks import TASKS

    counts = plain_table("<>>>", "Task", "Labels", "Wrong", "Largest relative error")
    for task, checked in result.checked.items():
        errors = result.wrong.get(task, [])
        known = [each.relative_error for each in errors if each.relative_error is not None]
        shown = f"{max(known):.1e}" if known else "–"
        counts.add_row(TASKS[task].display, str(checked), str(len(errors)), shown)
        if errors:
            yield Text(f"{TASKS[task].display}: {len(errors)} wrong", style="bold")
        for label, truth, error in errors:
            text = Text(f"  {Path(label.location).name}: {label.prompt}\n")
            text.append(f"    label {answer_text(label.answer)}\n", style="red")
            text.append(f"    exact {answer_text(truth)}", style="green")
            yield text.append(
                f"   relative error {'undefined' if error is None else f'{error:.1e}'}"
            )
        if errors:
            yield Text()
    yield counts


def _next_command(tasks: Sequence[str], source: str | Path) -> str:
    """Return a command for a dataset that works without a key."""
    from numbench.models.baseline import has_rule

    if isinstance(source, Path) and not source.is_absolute() and len(source.parts) == 1:
        source = f"./{source}"
    dataset = shlex.quote(str(source))
    if all(map(has_rule, tasks)):
        return f"numbench run --model baseline/float64 --dataset {dataset}"
    return f"numbench audit {dataset}"
