"""Import of the study's raw files as a dataset and one run per model and reasoning level.

The dataset has the study's prompts verbatim and recomputed exact answers; the published labels are
stored in addition, for the `paper` protocol. It is the released dataset `paper` unless the files
have other questions. A run has every raw response verbatim.
"""

from __future__ import annotations

import math
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from numbench._version import __version__
from numbench.csv_files import read_csv
from numbench.dataset.audit import check_label, parse_label
from numbench.dataset.store import (
    Dataset,
    PublishedLabel,
    read_published_labels,
    released_dataset,
    write_dataset,
    write_published_labels,
)
from numbench.errors import BadInput
from numbench.journal import write_run
from numbench.records import Failure, Item, Response, RunInfo, Scalar, Usage
from numbench.resources import PACKAGE
from numbench.scoring.paper_protocol import STUDY_LABEL_KEY
from numbench.tasks import TASKS
from numbench.tasks.items import make_item
from numbench.tasks.prompts import load_prompt_set

STUDY_FILES = "*_decimal_uniform_test_500_shuffle*.csv"
"""The names of the study's files, as a pattern."""

_FILE_NAME = re.compile(
    r"(?P<task>[A-Za-z]+)_decimal_uniform_test_500_shuffle"
    r"(?:_(?P<model>.+)_re_(?P<effort>[A-Za-z]+))?\.csv"
)
_QUESTION_COLUMNS = ("text_prompt", "answer")

_TOKEN_LIMIT = "Token limit reached"
"""The study's text in place of a truncated response."""

_OUTPUT_LIMITS = (4096, 8000, 65535)
"""Output limits that responses of the study reached, in tokens: Qwen3 the first two at different
providers, Gemini 2.5 the third."""

_LIMIT_TOLERANCE = 15
# The study's script writes -1 if a reply reports no usage, as one that breaks off does.
_NO_USAGE = -1
_PUNCTUATION = re.compile(r'[\s{"\[:]+')
_COMPLETE_OBJECT = re.compile(r"\}\s*(?:```)?\s*\Z")


class _StudyModel(msgspec.Struct, frozen=True):
    """A model of the study. level: set if the checkpoint determines the reasoning level."""

    name: str
    display: str
    level: str | None = None


class _StudyNames(msgspec.Struct, frozen=True):
    """`study_models.toml`."""

    tasks: dict[str, str]
    levels: dict[str, str]
    models: dict[str, _StudyModel]


class _File(NamedTuple):
    """One file of a task; for responses also the model and its reasoning effort."""

    path: Path
    task: str
    vendor: str | None
    effort: str


class _RunFiles(NamedTuple):
    """The files of one run, by task."""

    model: _StudyModel
    level: str
    vendor: str
    effort: str
    files: dict[str, Path]


def import_study(
    folder: Path,
    out: Path = Path("results/study"),
    on_message: Callable[[str], None] | None = None,
) -> list[Path]:
    """Import the study's CSV files in `folder`; return the run folders written below `out`.

    Writes `out/<model>_<level>/`, and `out/dataset/` if the questions are not those of the released
    dataset `paper`; a repeated import writes the same bytes.
    on_message: receives warnings (models that are not in the catalogue, labels that differ between
    files), by default printed to stderr. Raises BadInput if the folder has no such files, or if a
    file cannot be read or does not match the others.
    """
    if on_message is None:
        on_message = partial(print, file=sys.stderr)
    files = _find_files(folder, on_message)
    present = {file.task for file in files}
    questions = {task: _read_questions(task, files) for task in TASKS if task in present}
    dataset = _find_or_write_dataset(out / "dataset", questions)
    labels = read_published_labels(dataset.path)
    runs = _group_by_run(files, on_message)
    return [_import_run(run, dataset, labels, out, on_message) for run in runs]


@cache
def _study_names() -> _StudyNames:
    return msgspec.convert(tomllib.loads((PACKAGE / "study_models.toml").read_text()), _StudyNames)


def _find_files(folder: Path, on_message: Callable[[str], None]) -> list[_File]:
    """Return the study's files in `folder`, sorted by name.

    on_message: receives a warning for every other CSV file. Raises BadInput if there are none.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder")
    files = []
    for path in sorted(folder.glob("*.csv")):
        match = _FILE_NAME.fullmatch(path.name)
        task = _study_names().tasks.get(match["task"]) if match else None
        if match and task:
            files.append(_File(path, task, match["model"], match["effort"] or ""))
        else:
            on_message(f"{path.name}: not one of the study's decimal test files, skipped")
    if not files:
        raise BadInput(
            f"{folder}: none of the study's files here (<Task>_decimal_uniform_test_500_shuffle"
            "[_<model>_re_<effort>].csv); they are in the history of its repository"
        )
    return files


def _read_questions(task: str, files: list[_File]) -> list[tuple[Item, PublishedLabel]]:
    """Return the questions of a task: its benchmark file, otherwise its longest response file.

    The id of a repeated question ends in `-2`, `-3`, …
    """
    paths = [file.path for file in files if file.task == task and file.vendor is None]
    paths = paths or [file.path for file in files if file.task == task]
    tables = [(path, list(read_csv(path, _QUESTION_COLUMNS))) for path in paths]
    path, rows = max(tables, key=lambda table: len(table[1]))
    seen: Counter[str] = Counter()
    questions = []
    for line, cells in rows:
        location, prompt = f"{path}, line {line}", cells["text_prompt"]
        label = parse_label(location, "text_prompt", prompt, cells["answer"])
        if label.task != task:
            raise BadInput(
                f"{location}, field text_prompt: a question of the task {label.task}, "
                f"expected {task}"
            )
        try:
            item = make_item(task, label.operator, label.operands, {}, prompt=prompt)
        except ValueError as error:
            raise BadInput(f"{location}, field text_prompt: {error}") from error
        seen[item.id] += 1
        if seen[item.id] > 1:
            item = msgspec.structs.replace(item, id=f"{item.id}-{seen[item.id]}")
        is_correct = check_label(label) is None
        questions.append((item, PublishedLabel(item.id, cells["answer"], is_correct)))
    return questions


def _find_or_write_dataset(
    path: Path, questions: dict[str, list[tuple[Item, PublishedLabel]]]
) -> Dataset:
    """Return the released dataset if it has all of these questions; otherwise write them."""

    def ids_and_prompts(items: Iterable[Item]) -> list[tuple[str, str]]:
        return [(item.id, item.prompt) for item in items]

    released = released_dataset("paper")
    items = {task: [item for item, _ in rows] for task, rows in questions.items()}
    if all(
        ids_and_prompts(of_task) == ids_and_prompts(released.by_task[task])
        for task, of_task in items.items()
    ):
        return released
    generator = "the paper's own; answers recomputed exactly"
    dataset = write_dataset(
        path, items, name="study", generator=generator, seed=None, split="test", settings={}
    )
    write_published_labels(path, (label for rows in questions.values() for _, label in rows))
    return dataset


def _group_by_run(files: list[_File], on_message: Callable[[str], None]) -> list[_RunFiles]:
    """Return the response files by model and level, with catalogue names if they exist."""
    names = _study_names()
    runs: dict[tuple[str, str], _RunFiles] = {}
    unnamed: set[tuple[str, str]] = set()
    for path, task, vendor, effort in files:
        if vendor is None:
            continue
        model = names.models.get(vendor, _StudyModel(vendor, vendor))
        level = model.level or names.levels.get(effort, effort)
        other = runs.get((model.name, level))
        is_taken = other is not None and (other.vendor, other.effort) != (vendor, effort)
        if is_taken:
            model, level = _StudyModel(vendor, vendor), effort
        if is_taken or vendor not in names.models:
            unnamed.add((vendor, effort))
        key = (model.name, level)
        runs.setdefault(key, _RunFiles(model, level, vendor, effort, {})).files[task] = path
    for vendor, effort in sorted(unnamed):
        on_message(
            f"{vendor} with effort {effort}: not in the catalogue (or its name is used by another "
            "file), imported under the name in the file"
        )
    return [runs[key] for key in sorted(runs)]


def _import_run(
    run: _RunFiles,
    dataset: Dataset,
    labels: dict[str, str],
    out: Path,
    on_message: Callable[[str], None],
) -> Path:
    """Write one run folder and return its path."""
    folder = out / f"{run.model.name}_{run.level}"
    tasks = tuple(task for task in TASKS if task in run.files)
    served = run.vendor.replace("__", "/", 1)
    responses: list[Response] = []
    for task in tasks:
        answers = list(_responses(run.files[task], dataset.by_task[task], labels, served))
        if differing := sum(STUDY_LABEL_KEY in answer.extra for answer in answers):
            on_message(
                f"{run.files[task].name}: {differing} labels differ from the benchmark's; the "
                "paper protocol uses the labels of this file"
            )
        responses += answers
    info = RunInfo(
        model=run.model.name,
        display=run.model.display,
        reasoning=run.level,
        dataset=dataset.ref(folder),
        prompt=load_prompt_set().ref(tasks),
        tasks=tasks,
        limit=None,
        settings={"served_model": served, "effort": run.effort},
        versions={"numbench": __version__},
        created="",
        source="imported",
    )
    write_run(folder, info, responses)
    return folder


def _responses(
    path: Path, items: list[Item], labels: dict[str, str], served: str
) -> Iterator[Response]:
    """Yield the responses of a file.

    A response without usage and without any part of an answer is a failed request. A response
    that is not complete and has the number of tokens of an output limit is truncated.
    `extra["study_tokens"]` is the file's `tokens` column, whose unit differs between providers.

    Raises BadInput if its questions are not those of the task.
    """
    rows = read_csv(path, (*_QUESTION_COLUMNS, "raw_response"))
    for number, (line, cells) in enumerate(rows, 1):
        location = f"{path}, line {line}"
        if number > len(items):
            raise BadInput(f"{location}: more rows than the benchmark's {len(items)}")
        item, prompt, text = items[number - 1], cells["text_prompt"], cells["raw_response"]
        if prompt != item.prompt:
            raise BadInput(
                f"{location} (row {number}): the question is {prompt[:60]!r}, but "
                f"{item.prompt[:60]!r} in the benchmark; these files do not belong together"
            )
        extra: dict[str, Scalar] = {}
        tokens = _number(location, cells, "tokens")
        if tokens is not None:
            extra["study_tokens"] = int(tokens) if tokens.is_integer() else tokens
        if cells["answer"] != labels[item.id]:
            extra[STUDY_LABEL_KEY] = cells["answer"]
        usage = _usage(location, cells)
        # For requests with the study's own provider key (BYOK), `usage.cost` is only the router's
        # fee, and the upstream cost is the price.
        own_key = cells.get("usage.is_byok", "").strip().lower() == "true"
        column = "usage.cost_details.upstream_inference_cost" if own_key else "usage.cost"
        yield Response(
            item_id=item.id,
            text=text,
            reasoning_text=cells.get("reasoning") or None,
            finish_reason="length" if _is_truncated(text, usage) else None,
            usage=usage,
            cost=_number(location, cells, column),
            served_model=served,
            error=_failure(text) if tokens == _NO_USAGE else None,
            extra=extra,
        )


def _is_truncated(text: str, usage: Usage) -> bool:
    """Return whether the output ended at a token limit.

    Gemini's counts of endless outputs end a few tokens before its limit.
    """
    if text.strip() == _TOKEN_LIMIT:
        return True
    if usage.generated is None or _COMPLETE_OBJECT.search(text[-100:]):
        return False
    return any(limit - _LIMIT_TOLERANCE <= usage.generated <= limit for limit in _OUTPUT_LIMITS)


def _failure(text: str) -> Failure | None:
    """Return the failure of a reply without usage; None if it contains part of an answer.

    `{"answer":` and every shorter beginning of the requested object contain none.
    """
    if not "answer".startswith(_PUNCTUATION.sub("", text)):
        return None
    message = "neither an answer nor usage in the reply (tokens = -1)"
    return Failure(kind="transient", message=message)


def _usage(location: str, cells: dict[str, str]) -> Usage:
    """Return the tokens of a row; values that it does not have are None.

    Gemini's rows (`usage_metadata`) count visible tokens as candidates and reasoning tokens as
    thoughts. Either is blank if there were none, which follows from the total, or from a response
    without text. OpenRouter's completion tokens include reasoning.
    """

    def count(column: str) -> int | None:
        value = _number(location, cells, f"usage.{column}")
        return int(value) if value is not None and value >= 0 else None

    visible = count("usage_metadata.candidates_token_count")
    reasoning = count("usage_metadata.thoughts_token_count")
    if visible is None and reasoning is None:
        prompt, generated = count("prompt_tokens"), count("completion_tokens")
        reasoning = count("completion_tokens_details.reasoning_tokens")
        if prompt is None and generated is None:
            return Usage()
        if generated is None or (reasoning or 0) > generated:
            reasoning = None
        if generated is not None and reasoning is not None:
            visible = generated - reasoning
    else:
        prompt = count("usage_metadata.prompt_token_count")
        total = count("usage_metadata.total_token_count")
        if visible is None and cells["raw_response"].strip() in ("", _TOKEN_LIMIT):
            visible = 0
        if prompt is not None and total is not None:
            rest = total - prompt - (visible or 0) - (reasoning or 0)
            if rest >= 0:
                visible = rest if visible is None else visible
                reasoning = rest if reasoning is None else reasoning
        generated = None if visible is None or reasoning is None else visible + reasoning
    return Usage(
        input=prompt, reasoning=reasoning, visible=visible, generated=generated, source="reported"
    )


def _number(location: str, cells: dict[str, str], column: str) -> float | None:
    """Return the finite number in a cell; None if it is blank, not finite, or has no column."""
    text = cells.get(column, "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise BadInput(f"{location}, column {column}: {text[:40]!r} is not a number") from None
    return value if math.isfinite(value) else None
