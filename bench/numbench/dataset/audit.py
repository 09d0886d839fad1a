"""Audit of labels: published answers compared with the exact ones."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from decimal import Context, Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

from numbench.core.csv_files import read_csv
from numbench.dataset.store import MANIFEST, RELEASED_DATASETS, Dataset, open_dataset
from numbench.errors import BadInput, bad_input_at
from numbench.records import Answer
from numbench.tasks import TASKS
from numbench.tasks.prompts import load_prompt_set


class LabeledQuestion(NamedTuple):
    """A question and its published answer. location: file and line, for messages."""

    location: str
    task: str
    prompt: str
    operator: str
    operands: tuple[str, ...]
    answer: Answer


class LabelError(NamedTuple):
    """A label that differs from the exact answer; relative error |label − truth| / |truth|."""

    label: LabeledQuestion
    truth: Answer
    relative_error: float | None


class AuditResult(NamedTuple):
    """The number of checked labels per task, and the wrong labels per task."""

    checked: dict[str, int]
    wrong: dict[str, list[LabelError]]


def audit(source: str | Path) -> AuditResult:
    """Check every label of a dataset, a CSV file, or a folder of CSV files.

    A CSV file needs the columns `text_prompt` (or `prompt`) and `answer`; files of responses in a
    folder are skipped. Raises BadInput with file, line and column for a row that cannot be read,
    and if there are no labels.
    """
    checked: dict[str, int] = {}
    wrong: dict[str, list[LabelError]] = {}
    for label in read_labeled_questions(source):
        checked[label.task] = checked.get(label.task, 0) + 1
        with bad_input_at(label.location, ValueError):
            truth = TASKS[label.task].exact_answer(label.operator, label.operands)
        if not _same_answer(label.answer, truth):
            error = LabelError(label, truth, _relative_error(label.answer, truth))
            wrong.setdefault(label.task, []).append(error)
    if not checked:
        raise BadInput(f"{source}: no labels to check")
    return AuditResult({task: checked[task] for task in TASKS if task in checked}, wrong)


def read_labeled_questions(source: str | Path) -> Iterator[LabeledQuestion]:
    """Yield the labels of a dataset (name or folder), a CSV file, or a folder of CSV files."""
    path = Path(source)
    if source in RELEASED_DATASETS or not path.exists() or (path / MANIFEST).is_file():
        return _from_dataset(open_dataset(source))
    if path.is_file():
        return _from_csv(path)
    files = sorted(file for file in path.glob("*.csv") if not _has_responses(file))
    if not files:
        raise BadInput(f"{path}: no dataset, CSV file or folder of CSV files to audit")
    return (label for file in files for label in _from_csv(file))


def _from_dataset(dataset: Dataset) -> Iterator[LabeledQuestion]:
    for task, items in dataset.by_task.items():
        for line, item in enumerate(items, 1):
            location = f"{dataset.path / task}.jsonl, line {line}"
            yield parse_label(location, "prompt", item.prompt, item.answer)


def _from_csv(path: Path) -> Iterator[LabeledQuestion]:
    for line, row in read_csv(path):
        location = f"{path}, line {line}"
        prompt, answer = row.get("text_prompt") or row.get("prompt"), row.get("answer")
        if prompt is None or answer is None:
            raise BadInput(f"{location}: the columns text_prompt and answer are needed")
        yield parse_label(location, "text_prompt", prompt, answer)


def parse_label(location: str, column: str, prompt: str, answer: Answer) -> LabeledQuestion:
    """Return the label of a question; operator and operands are read from the prompt alone.

    Raises BadInput with `location` and `column` if the prompt is not a known question.
    """
    with bad_input_at(f"{location}, field {column}", ValueError):
        task, operator, operands = load_prompt_set().parse_question(prompt)
    answer = answer.strip() if isinstance(answer, str) else answer
    if TASKS[task].answer_kind == "list" and isinstance(answer, str):
        answer = tuple(part.strip("\"' ") for part in answer.strip("[]").split(","))
    return LabeledQuestion(location, task, prompt, operator, operands, answer)


def _has_responses(path: Path) -> bool:
    """Return whether a CSV file has the study's column of model responses."""
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        return "raw_response" in next(csv.reader(file), [])


def _same_answer(label: Answer, truth: Answer) -> bool:
    if isinstance(truth, tuple):
        return len(label) == len(truth) and all(map(_same_answer, label, truth))
    published, exact = _number(label), _number(truth)
    return label == truth if published is None or exact is None else published == exact


def _relative_error(label: Answer, truth: Answer) -> float | None:
    published, exact = _number(label), _number(truth)
    if published is None or not exact:
        return None
    context = Context(prec=40, traps=[])
    return float(context.divide(abs(context.subtract(published, exact)), abs(exact)))


def _number(answer: Answer) -> Decimal | None:
    """Return the value of a finite decimal number; None for any other answer."""
    try:
        number = Decimal(str(answer))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
