"""Tables that commands print: rich renderables that fit 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from numbench import jsonl
from numbench.csv_files import encode_csv
from numbench.dataset.audit import AuditResult, LabelError
from numbench.records import Answer
from numbench.tasks import TASKS


def audit_tables(result: AuditResult) -> RenderableType:
    """Return every wrong label with its exact value and relative error, then counts per task."""
    return Group(*_label_errors(result), _counts(result))


def write_audit_csv(result: AuditResult, path: Path) -> None:
    """Write the wrong labels to a CSV file, one per row."""
    rows: list[tuple[object, ...]] = [
        ("task", "place", "prompt", "label", "exact", "relative_error")
    ]
    for task, errors in result.wrong.items():
        for label, truth, relative_error in errors:
            row = (task, label.location, label.prompt, _answer_text(label.answer))
            rows.append((*row, _answer_text(truth), relative_error))
    jsonl.write_atomically(path, encode_csv(rows).encode())


def _label_errors(result: AuditResult) -> Iterator[RenderableType]:
    for task, errors in result.wrong.items():
        yield Text(f"{TASKS[task].display}: {len(errors)} wrong", style="bold")
        for error in errors:
            yield _label_error(error)
        yield Text()


def _label_error(error: LabelError) -> Text:
    label, truth, relative_error = error
    shown_error = "undefined" if relative_error is None else f"{relative_error:.1e}"
    text = Text(f"  {Path(label.location).name}: {label.prompt}\n")
    text.append(f"    label {_answer_text(label.answer)}\n", style="red")
    text.append(f"    exact {_answer_text(truth)}", style="green")
    return text.append(f"   relative error {shown_error}")


def _counts(result: AuditResult) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("Task")
    for column in ("Labels", "Wrong", "Largest relative error"):
        table.add_column(column, justify="right")
    for task, checked in result.checked.items():
        errors = result.wrong.get(task, [])
        largest = max((error.relative_error or 0.0 for error in errors), default=0.0)
        shown = f"{largest:.1e}" if errors else "–"
        table.add_row(TASKS[task].display, str(checked), str(len(errors)), shown)
    return table


def _answer_text(answer: Answer) -> str:
    return answer if isinstance(answer, str) else ", ".join(answer)
