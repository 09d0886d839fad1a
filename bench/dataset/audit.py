"""The audit of labels: anybody's answers held against exact truth."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from decimal import Context, Decimal
from pathlib import Path
from typing import NamedTuple

from bench.dataset.store import Dataset
from bench.errors import BadInput
from bench.numerals import parse
from bench.records import Answer
from bench.tasks import TASKS
from bench.tasks.phrasing import prompts


class Label(NamedTuple):
    """A question and the answer that somebody published for it."""

    place: str
    task: str
    prompt: str
    operator: str
    operands: tuple[str, ...]
    answer: Answer


class Wrong(NamedTuple):
    """A label that differs from the exact answer; relative error |label − truth| / |truth|."""

    label: Label
    truth: Answer
    relative_error: float | None


class Audit(NamedTuple):
    """What an audit found: labels checked per task, and the wrong ones."""

    checked: dict[str, int]
    wrong: dict[str, list[Wrong]]


def audit(source: Path) -> Audit:
    """Check every label of a dataset folder, a CSV file, or a folder of CSV files.

    A CSV needs the columns `text_prompt` (or `prompt`) and `answer`; in a folder, files that
    hold responses are passed over. BadInput names the file, line and column that cannot be read.
    """
    checked: dict[str, int] = {}
    wrong: dict[str, list[Wrong]] = {}
    for label in read_labels(source):
        checked[label.task] = checked.get(label.task, 0) + 1
        try:
            fault = check(label)
        except ValueError as error:
            raise BadInput(f"{label.place}: {error}") from error
        if fault is not None:
            wrong.setdefault(label.task, []).append(fault)
    return Audit({task: checked[task] for task in TASKS if task in checked}, wrong)


def check(label: Label) -> Wrong | None:
    """The fault of one label, None if it is right. ValueError for an undefined question."""
    truth = TASKS[label.task].truth(label.operator, label.operands)
    if _same(label.answer, truth):
        return None
    return Wrong(label, truth, _relative_error(label.answer, truth))


def read_labels(source: Path) -> Iterator[Label]:
    """The labels of a dataset folder, a CSV file or a folder of CSV files."""
    if source.is_file():
        return _from_csv(source)
    if (source / "manifest.json").is_file():
        return _from_dataset(Dataset(source))
    files = sorted(path for path in source.glob("*.csv") if not _holds_responses(path))
    if not files:
        raise BadInput(f"{source}: no dataset, CSV file or folder of CSV files to audit")
    return (label for path in files for label in _from_csv(path))


def _from_dataset(dataset: Dataset) -> Iterator[Label]:
    for task, items in dataset.by_task.items():
        for line, item in enumerate(items, 1):
            place = f"{dataset.path / task}.jsonl, line {line}"
            yield read_label(place, "prompt", item.prompt, item.answer)


def _from_csv(path: Path) -> Iterator[Label]:
    for place, row in read_csv(path):
        prompt, answer = row.get("text_prompt") or row.get("prompt"), row.get("answer")
        if prompt is None or answer is None:
            raise BadInput(f"{place}: the columns text_prompt and answer are needed")
        yield read_label(place, "text_prompt", prompt, answer)


def read_label(place: str, column: str, prompt: str, answer: Answer) -> Label:
    """The label of a question as it is asked: operands are read from the wording alone.

    BadInput with `place` and `column` for wording that is no question.
    """
    try:
        task, operator, operands = prompts().read(prompt)
    except ValueError as error:
        raise BadInput(f"{place}, field {column}: {error}") from error
    if TASKS[task].answer_kind == "list" and isinstance(answer, str):
        answer = tuple(answer.strip("[]").split(", "))
    return Label(place, task, prompt, operator, operands, answer)


def read_csv(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV file of any cell size, each with its place for messages."""
    csv.field_size_limit(sys.maxsize)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            for row in reader:
                yield f"{path}, line {reader.line_num}", row
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}") from error


def _holds_responses(path: Path) -> bool:
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        return "raw_response" in next(csv.reader(file), [])


def _same(label: Answer, truth: Answer) -> bool:
    if isinstance(truth, tuple):
        return len(label) == len(truth) and all(map(_same, label, truth))
    if not isinstance(label, str):
        return False
    if label == truth:
        return True
    try:
        return Decimal(label) == Decimal(truth) if parse(label) and parse(truth) else False
    except ValueError:
        return False


def _relative_error(label: Answer, truth: Answer) -> float | None:
    try:
        published, exact = Decimal(str(label)), Decimal(str(truth))
        parse(str(label)), parse(str(truth))
    except (ArithmeticError, ValueError):
        return None
    if not exact:
        return None
    context = Context(prec=40)
    return float(context.divide(abs(context.subtract(published, exact)), abs(exact)))
