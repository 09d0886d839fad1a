"""What commands print for people: rich renderables that fit 80 columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench import jsonl
from bench.dataset.audit import Audit, Wrong
from bench.models.catalogue import entries
from bench.records import Answer
from bench.runner.prices import Price, price_of
from bench.shipped import shipped
from bench.tasks import TASKS


def audit_report(found: Audit) -> RenderableType:
    """Every wrong label with published, exact and relative error, then the counts per task."""
    return Group(*_wrong_labels(found), _counts(found))


def write_audit(found: Audit, path: Path) -> None:
    """The wrong labels as CSV, one a row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["task", "place", "prompt", "label", "exact", "relative_error"])
    for task, faults in found.wrong.items():
        for label, truth, error in faults:
            place, answer = label.place, _plain(label.answer)
            writer.writerow([task, place, label.prompt, answer, _plain(truth), error])
    jsonl.write_atomically(path, text.getvalue().encode())


def catalogue_table() -> RenderableType:
    """The named models with their levels and prices, the keys, and how to reach other models."""
    listed = entries()
    table = Table(box=None, pad_edge=False)
    for column in ("Model", "Levels", "Through"):
        table.add_column(column, overflow="fold")
    for column in ("$ in", "$ out"):
        table.add_column(column, justify="right")
    for entry in listed:
        provider = entry.route.partition("/")[0]
        table.add_row(
            entry.name, ", ".join(entry.levels), provider, *_shown_price(price_of(entry.route))
        )
    keys = {entry.key: "set" if entry.key_is_set else "not set" for entry in listed}
    shown = "".join(f"\n  {key} ({state})" for key, state in keys.items())
    notes = (
        "$: US dollars per million tokens, ≈ where providers differ (means), ? unknown;\n"
        "numbench-prices.toml may name your own.\n"
        f"Keys:{shown}\n\n"
        "Any other model by its route: openai/NAME, openrouter/VENDOR/NAME, gemini/NAME,\n"
        "litellm/PROVIDER/NAME; a server of your own: openai/NAME with --base-url.\n"
        "Without a key: baseline/float64, baseline/float32, baseline/bfloat16, hf/PATH,\n"
        "checkpoint/PATH, replay/RUN.\n"
        f"Small models that come along: {', '.join(f'checkpoint/{name}' for name in shipped())}."
    )
    return Group(table, Text("\n" + notes))


def _shown_price(price: Price | None) -> tuple[str, str]:
    if price is None:
        return "?", "?"
    about = "≈" if price.varies else ""
    return f"{about}{price.input:.3g}", f"{about}{price.output:.3g}"


def _wrong_labels(found: Audit) -> Iterator[RenderableType]:
    for task, faults in found.wrong.items():
        yield Text(f"{TASKS[task].display}: {len(faults)} wrong", style="bold")
        for fault in faults:
            yield _wrong_label(fault)
        yield Text()


def _wrong_label(fault: Wrong) -> Text:
    error = "undefined" if fault.relative_error is None else f"{fault.relative_error:.1e}"
    text = Text(f"  {Path(fault.label.place).name}: {fault.label.prompt}\n")
    text.append(f"    published {_plain(fault.label.answer)}\n", style="red")
    text.append(f"    exact     {_plain(fault.truth)}", style="green")
    return text.append(f"   relative error {error}")


def _counts(found: Audit) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("Task")
    for column in ("Labels", "Wrong", "Largest relative error"):
        table.add_column(column, justify="right")
    for task, checked in found.checked.items():
        faults = found.wrong.get(task, [])
        largest = max((fault.relative_error or 0.0 for fault in faults), default=0.0)
        shown = f"{largest:.1e}" if faults else "–"
        table.add_row(TASKS[task].display, str(checked), str(len(faults)), shown)
    return table


def _plain(answer: Answer) -> str:
    return answer if isinstance(answer, str) else ", ".join(answer)
