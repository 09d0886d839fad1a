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
    parts = {"commands": commands, "python": python, "records": record_fields}
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


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
