"""Import of the study's raw files as a dataset and one run per model and reasoning level.

The dataset has the study's prompts verbatim and recomputed exact answers; the published labels are
stored in addition, for the `paper` protocol. It is the released dataset `paper` unless the files
have other questions. A run has every raw response verbatim.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from numbench._version import __version__
from numbench.dataset.audit import check_label, parse_label
from numbench.dataset.store import Dataset, released_dataset, write_dataset
from numbench.errors import BadInput
from numbench.journal import write_run
from numbench.records import Item, Response, RunInfo
from numbench.resources import PACKAGE
from numbench.scoring.paper_protocol import STUDY_LABEL_KEY
from numbench.scoring.published_labels import (
    PublishedLabel,
    read_published_labels,
    write_published_labels,
)
from numbench.study_csv import StudyRow, read_questions, read_responses
from numbench.tasks import TASKS
from numbench.tasks.items import make_item
from numbench.tasks.prompts import load_prompt_set

_FILE_NAME = re.compile(
    r"(?P<task>[A-Za-z]+)_decimal_uniform_test_500_shuffle"
    r"(?:_(?P<model>.+)_re_(?P<effort>[A-Za-z]+))?\.csv"
)
STUDY_FILES = "*_decimal_uniform_test_500_shuffle*.csv"
"""The names of the study's files, as a pattern."""

_RELEASED = "paper"
_DATASET = "dataset"


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


class StudyFile(NamedTuple):
    """One file of a task; for responses also the model and its reasoning effort."""

    path: Path
    task: str
    model: str | None
    effort: str | None


class _StudyItem(NamedTuple):
    """One question of the study: its item and the published label."""

    item: Item
    label: PublishedLabel


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
    on_message = _to_stderr if on_message is None else on_message
    sources = find_study_files(folder, on_message)
    entries = {task: _study_items(task, sources) for task in TASKS if _of_task(task, sources)}
    dataset = _find_or_write_dataset(out / _DATASET, entries)
    labels = read_published_labels(dataset.path)
    runs = _group_by_run([source for source in sources if source.model is not None], on_message)
    return [_import_run(run, dataset, labels, out, on_message) for run in runs]


def _to_stderr(message: str) -> None:
    print(message, file=sys.stderr)


@cache
def _study_names() -> _StudyNames:
    return msgspec.convert(tomllib.loads((PACKAGE / "study_models.toml").read_text()), _StudyNames)


def find_study_files(folder: Path, on_message: Callable[[str], None]) -> list[StudyFile]:
    """Return the study's files in `folder`, sorted by name.

    on_message: receives a warning for every other CSV file. Raises BadInput if there are none.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder")
    sources = []
    for path in sorted(folder.glob("*.csv")):
        match = _FILE_NAME.fullmatch(path.name)
        task = _study_names().tasks.get(match["task"]) if match else None
        if match is None or task is None:
            on_message(f"{path.name}: not one of the study's decimal test files, skipped")
            continue
        sources.append(StudyFile(path, task, match["model"], match["effort"]))
    if not sources:
        raise BadInput(
            f"{folder}: none of the study's files here (<Task>_decimal_uniform_test_500_shuffle"
            "[_<model>_re_<effort>].csv); they are in the history of its repository"
        )
    return sources


def _of_task(task: str, sources: Iterable[StudyFile]) -> list[StudyFile]:
    return [source for source in sources if source.task == task]


def _study_items(task: str, sources: list[StudyFile]) -> list[_StudyItem]:
    """Return the questions of a task: its benchmark file, otherwise its longest response file."""
    files = _of_task(task, sources)
    files = [source for source in files if source.model is None] or files
    candidates = [(source.path, list(read_questions(source.path))) for source in files]
    path, rows = max(candidates, key=lambda candidate: len(candidate[1]))
    seen: Counter[str] = Counter()
    return [_study_item(task, path, row, seen) for row in rows]


def _study_item(task: str, path: Path, row: StudyRow, seen: Counter[str]) -> _StudyItem:
    """Return the item of a row. The id of a repeated question ends in `-2`, `-3`, …"""
    location = f"{path}, line {row.line}"
    label = parse_label(location, "text_prompt", row.prompt, row.label)
    if label.task != task:
        raise BadInput(
            f"{location}, field text_prompt: a question of the task {label.task}, expected {task}"
        )
    try:
        item = make_item(task, label.operator, label.operands, {}, prompt=row.prompt)
    except ValueError as error:
        raise BadInput(f"{location}, field text_prompt: {error}") from error
    seen[item.id] += 1
    if seen[item.id] > 1:
        item = msgspec.structs.replace(item, id=f"{item.id}-{seen[item.id]}")
    return _StudyItem(item, PublishedLabel(item.id, row.label, check_label(label) is None))


def _find_or_write_dataset(path: Path, entries: dict[str, list[_StudyItem]]) -> Dataset:
    """Return the released dataset if it has all of these questions; otherwise write them."""
    released = released_dataset(_RELEASED)
    if all(
        _ids_and_prompts(entry.item for entry in rows) == _ids_and_prompts(released.by_task[task])
        for task, rows in entries.items()
    ):
        return released
    dataset = write_dataset(
        path,
        {task: [entry.item for entry in rows] for task, rows in entries.items()},
        name="study",
        generator="the paper's own; answers recomputed exactly",
        seed=None,
        split="test",
        settings={},
    )
    write_published_labels(
        path,
        (entry.label for rows in entries.values() for entry in rows),
    )
    return dataset


def _ids_and_prompts(items: Iterable[Item]) -> list[tuple[str, str]]:
    return [(item.id, item.prompt) for item in items]


def _group_by_run(sources: list[StudyFile], on_message: Callable[[str], None]) -> list[_RunFiles]:
    """Return the response files by model and level, with catalogue names if they exist."""
    runs: dict[tuple[str, str], _RunFiles] = {}
    unnamed: set[tuple[str, str]] = set()
    for source in sources:
        vendor, effort = str(source.model), str(source.effort)
        model, level = _model_and_level(vendor, effort)
        if vendor not in _study_names().models:
            unnamed.add((vendor, effort))
        existing = runs.get((model.name, level))
        if existing and (existing.vendor, existing.effort) != (vendor, effort):
            unnamed.add((vendor, effort))
            model, level = _StudyModel(vendor, vendor), effort
        key = (model.name, level)
        runs.setdefault(key, _RunFiles(model, level, vendor, effort, {}))
        runs[key].files[source.task] = source.path
    for vendor, effort in sorted(unnamed):
        on_message(
            f"{vendor} with effort {effort}: not in the catalogue (or its name is used by another "
            "file), imported under the name in the file"
        )
    return [runs[key] for key in sorted(runs)]


def _model_and_level(vendor: str, effort: str) -> tuple[_StudyModel, str]:
    model = _study_names().models.get(vendor, _StudyModel(vendor, vendor))
    return model, model.level or _study_names().levels.get(effort, effort)


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
        differing = sum(STUDY_LABEL_KEY in answer.extra for answer in answers)
        if differing:
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
    """Yield the responses of a file. Raises BadInput if its questions are not those of the task."""
    count = 0
    for count, (row, response) in enumerate(read_responses(path), 1):
        if count > len(items):
            raise BadInput(f"{path}, line {row.line}: more rows than the benchmark's {count - 1}")
        item = items[count - 1]
        if row.prompt != item.prompt:
            raise BadInput(
                f"{path}, line {row.line} (row {count}): the question is {row.prompt[:60]!r}, but "
                f"{item.prompt[:60]!r} in the benchmark; these files do not belong together"
            )
        extra = dict(response.extra)
        if row.label != labels[item.id]:
            extra[STUDY_LABEL_KEY] = row.label
        yield msgspec.structs.replace(response, item_id=item.id, served_model=served, extra=extra)
