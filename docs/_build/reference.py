"""The generated parts of docs/reference.md: commands, functions and records, from the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import msgspec
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

import numbench
from numbench import records
from numbench.cli import app
from numbench.cli.json_output import field_names
from numbench.cli.listings import ListedDataset, ListedModel, ListedPrompts, ListedTask
from numbench.cli.run import PlannedRun
from numbench.dataset.audit import AuditResult, LabelError
from numbench.ecosystem.export import Exported
from numbench.horizon.estimate import TaskHorizon
from numbench.item_view import ShownTask
from numbench.journal.merge import MergedRun
from numbench.leaderboard import Leaderboard
from numbench.memory_test.outcome import Outcome, PairedTask
from numbench.memory_test.registration import Registration
from numbench.reporting.horizon_runs import HorizonRun
from numbench.reporting.regression import ComparedRun, ComparedTask, Regression
from numbench.runner.estimates import TaskPlan
from numbench.runner.progress import RunReport
from numbench.scoring import ScoredItem
from numbench.stats.paired import Difference
from numbench.verification import Finding, Verification

RECORDS = (
    records.Item,
    records.Response,
    records.Usage,
    records.Failure,
    records.Score,
    records.Manifest,
    records.FileEntry,
    records.RunInfo,
    records.Round,
    records.RecordedRequest,
    records.Job,
)


def complete(markdown: str) -> str:
    """Replace each `<!-- generated: PART -->` of a page by that part."""
    parts = {
        "commands": commands, "python": python, "records": record_fields, "results": results,
    }  # fmt: skip
    return re.sub(
        r"<!-- generated: (\w+) -->", lambda match: "\n".join(parts[match[1]]()), markdown
    )


def commands() -> Iterator[str]:
    """Yield what each command prints with --help."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    for name in group.commands:
        text = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "96"}).stdout
        yield f"### numbench {name}\n\n```text\n{text.strip()}\n```\n"


def python() -> Iterator[str]:
    """Yield the public names with the first sentence of their docstrings."""
    yield "| name | purpose |\n|---|---|"
    for name in sorted(numbench.__all__, key=str.lower):
        value = getattr(numbench, name)
        if callable(value):
            first, _, _ = (inspect.getdoc(value) or "").partition("\n\n")
            yield f"| `{name}` | {_cell(first)} |"


def record_fields() -> Iterator[str]:
    """Yield for each record its docstring and the types of its fields."""
    for record in RECORDS:
        yield f"### {record.__name__}\n\n{inspect.getdoc(record)}\n"
        yield "| field | type |\n|---|---|"
        for field in msgspec.structs.fields(record):
            plain = field.type.__name__ if inspect.isclass(field.type) else str(field.type)
            kind = re.sub(r"\b[a-z_]+[.]", "", plain)
            yield f"| `{field.encode_name}` | `{_cell(kind)}` |"
        yield ""


RESULTS = {
    "run": "a list of `RunReport`; with `--dry-run`, of `PlannedRun`",
    "compare": "`Regression`",
    "report": "its folder `out`, `sentences` and `warnings`; `report.json` has the numbers",
    "export": "`Exported`",
    "import": "a list of run folders",
    "merge": "`MergedRun`",
    "leaderboard": "`Leaderboard`",
    "generate": "the manifest of the dataset, with the records below",
    "models": "a list of `ListedModel`",
    "audit": "`AuditResult`; its labels are `LabelError`",
    "datasets": "a list of `ListedDataset`",
    "tasks": "a list of `ListedTask`",
    "prompts": "a list of `ListedPrompts`",
    "show": "task → `ShownTask`; its answers are `ScoredItem`, with the records below",
    "verify": "a list of `Verification`",
    "horizon": "`HorizonRun`; with `--dry-run`, as of `run`",
    "memory-test": "`Outcome`; with `--dry-run`, as of `run`",
}
RESULT_TYPES = (
    RunReport, PlannedRun, TaskPlan, Regression, ComparedRun, ComparedTask, ListedModel,
    AuditResult, LabelError, ListedDataset, ListedTask, ListedPrompts, ShownTask, ScoredItem,
    Exported, MergedRun, Leaderboard, Verification, Finding, HorizonRun, TaskHorizon, Outcome, PairedTask, Difference, Registration,
)  # fmt: skip


def results() -> Iterator[str]:
    """Yield the types of the results of `--json`, with their fields and properties."""
    yield "| command | result |\n|---|---|"
    yield from (f"| `{command}` | {text} |" for command, text in RESULTS.items())
    yield ""
    for kind in RESULT_TYPES:
        names = ", ".join(f"`{name}`" for name in field_names(kind))
        yield f"**{kind.__name__}**: {names}\n\n{inspect.getdoc(kind)}\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
