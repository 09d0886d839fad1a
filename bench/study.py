"""The study's raw files as a dataset and one run per model and reasoning level.

The dataset keeps the study's prompts verbatim and has our exact answers; the published labels
lie beside them for the `paper` protocol. A run keeps every raw response verbatim.
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

from bench import __version__
from bench.dataset.store import Dataset, write_dataset
from bench.errors import BadInput
from bench.journal import write_run
from bench.paths import PACKAGE
from bench.records import DatasetRef, Item, Response, RunInfo
from bench.scoring.labels import Label, write_labels
from bench.study_files import StudyRow, read_responses, read_rows
from bench.tasks import TASKS
from bench.tasks.items import make_item
from bench.tasks.phrasing import prompts

_FILE = re.compile(
    r"(?P<task>[A-Za-z]+)_decimal_uniform_test_500_shuffle"
    r"(?:_(?P<model>.+)_re_(?P<effort>[A-Za-z]+))?\.csv"
)
_DATASET = "dataset"
_LABEL = "study_label"


class _Model(msgspec.Struct, frozen=True):
    """What one of the study's model names means; `level` where the checkpoint decides it."""

    name: str
    display: str
    level: str | None = None


class _Names(msgspec.Struct, frozen=True):
    """`study_models.toml`."""

    tasks: dict[str, str]
    levels: dict[str, str]
    models: dict[str, _Model]


class Source(NamedTuple):
    """One file: the task it asks, and for responses who was asked with which effort."""

    path: Path
    task: str
    model: str | None
    effort: str | None


class _Entry(NamedTuple):
    """One question of the study: our item, and the label that the study published."""

    item: Item
    label: str


class _RunFiles(NamedTuple):
    """The files of one run, by task."""

    model: _Model
    level: str
    vendor: str
    effort: str
    files: dict[str, Path]


def import_study(
    folder: Path,
    out: Path = Path("results/study"),
    say: Callable[[str], None] | None = None,
) -> list[Path]:
    """Read the study's CSV files in `folder`; return the run folders written below `out`.

    Writes `out/dataset/` and `out/<model>_<level>/`; a repeated import writes the same bytes.
    `say` takes what a person should know (models that are not in the catalogue, labels that
    differ between files); by default it goes to stderr. BadInput for a folder without such
    files, and for a file that cannot be read or does not line up with the others.
    """
    say = _to_stderr if say is None else say
    sources = find_sources(folder, say)
    entries = {task: _entries(task, sources) for task in TASKS if _of_task(task, sources)}
    dataset = _write_dataset(out / _DATASET, entries)
    runs = _group([source for source in sources if source.model is not None], say)
    return [_import_run(run, entries, dataset, out, say) for run in runs]


def _to_stderr(message: str) -> None:
    print(message, file=sys.stderr)


@cache
def _names() -> _Names:
    return msgspec.convert(tomllib.loads((PACKAGE / "study_models.toml").read_text()), _Names)


def find_sources(folder: Path, say: Callable[[str], None]) -> list[Source]:
    """The study's files in `folder`, sorted by name; `say` hears of CSV files that are none.

    BadInput for a folder without such files.
    """
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder")
    sources = []
    for path in sorted(folder.glob("*.csv")):
        match = _FILE.fullmatch(path.name)
        task = _names().tasks.get(match["task"]) if match else None
        if match is None or task is None:
            say(f"{path.name}: not one of the study's decimal test files, left out")
            continue
        sources.append(Source(path, task, match["model"], match["effort"]))
    if not sources:
        raise BadInput(
            f"{folder}: none of the study's files here (<Task>_decimal_uniform_test_500_shuffle"
            "[_<model>_re_<effort>].csv); they are in the history of its repository"
        )
    return sources


def _of_task(task: str, sources: Iterable[Source]) -> list[Source]:
    return [source for source in sources if source.task == task]


def _entries(task: str, sources: list[Source]) -> list[_Entry]:
    """The questions of a task: from its benchmark file, else from its longest response file."""
    own = _of_task(task, sources)
    plain = [source for source in own if source.model is None]
    candidates = [list(read_rows(source.path)) for source in plain or own]
    path, rows = max(
        zip([source.path for source in plain or own], candidates, strict=True),
        key=lambda pair: len(pair[1]),
    )
    seen: Counter[str] = Counter()
    return [_entry(task, path, row, seen) for row in rows]


def _entry(task: str, path: Path, row: StudyRow, seen: Counter[str]) -> _Entry:
    """One row as an item. A question that was asked before gets `-2`, `-3`, … behind its id."""
    try:
        question = prompts().read(row.prompt)
        if question.task != task:
            raise ValueError(f"a question of the task {question.task}, not {task}")
        item = make_item(task, question.operator, question.operands, {}, prompt=row.prompt)
    except ValueError as error:
        raise BadInput(f"{path}, line {row.line}, column text_prompt: {error}") from error
    seen[item.id] += 1
    if seen[item.id] > 1:
        item = msgspec.structs.replace(item, id=f"{item.id}-{seen[item.id]}")
    return _Entry(item, row.label)


def _write_dataset(path: Path, entries: dict[str, list[_Entry]]) -> Dataset:
    dataset = write_dataset(
        path,
        {task: [entry.item for entry in rows] for task, rows in entries.items()},
        name="study",
        generator="the study's own; answers recomputed exactly",
        seed=None,
        split="test",
        settings={},
    )
    write_labels(
        path, (Label(entry.item.id, entry.label) for rows in entries.values() for entry in rows)
    )
    return dataset


def _group(sources: list[Source], say: Callable[[str], None]) -> list[_RunFiles]:
    """The response files by model and level, under catalogue names where there is one."""
    runs: dict[tuple[str, str], _RunFiles] = {}
    own_names: set[tuple[str, str]] = set()
    for source in sources:
        vendor, effort = str(source.model), str(source.effort)
        model, level = _identify(vendor, effort)
        if vendor not in _names().models:
            own_names.add((vendor, effort))
        taken = runs.get((model.name, level))
        if taken and (taken.vendor, taken.effort) != (vendor, effort):
            own_names.add((vendor, effort))
            model, level = _Model(vendor, vendor), effort
        key = (model.name, level)
        runs.setdefault(key, _RunFiles(model, level, vendor, effort, {}))
        runs[key].files[source.task] = source.path
    for vendor, effort in sorted(own_names):
        say(
            f"{vendor} with effort {effort}: no catalogue name for it (or already given to "
            "another file), imported under its own name"
        )
    return [runs[key] for key in sorted(runs)]


def _identify(vendor: str, effort: str) -> tuple[_Model, str]:
    model = _names().models.get(vendor, _Model(vendor, vendor))
    return model, model.level or _names().levels.get(effort, effort)


def _import_run(
    run: _RunFiles,
    entries: dict[str, list[_Entry]],
    dataset: Dataset,
    out: Path,
    say: Callable[[str], None],
) -> Path:
    """Write one run folder and return it."""
    folder = out / f"{run.model.name}_{run.level}"
    tasks = tuple(task for task in TASKS if task in run.files)
    served = run.vendor.replace("__", "/", 1)
    responses: list[Response] = []
    for task in tasks:
        answers = list(_responses(run.files[task], entries[task], served))
        differing = sum(_LABEL in answer.extra for answer in answers)
        if differing:
            say(
                f"{run.files[task].name}: {differing} labels differ from the benchmark's; the "
                "paper protocol scores against this file's own"
            )
        responses += answers
    info = RunInfo(
        model=run.model.name,
        display=run.model.display,
        reasoning=run.level,
        dataset=DatasetRef(
            name=dataset.name, path=f"../{_DATASET}", sha256=dataset.manifest.sha256
        ),
        prompt=prompts().ref,
        tasks=tasks,
        limit=None,
        settings={"served_model": served, "effort": run.effort},
        versions={"numbench": __version__},
        created="",
        source="imported",
    )
    write_run(folder, info, responses)
    return folder


def _responses(path: Path, entries: list[_Entry], served: str) -> Iterator[Response]:
    """The responses of a file, each checked to answer the question of its row."""
    count = 0
    for count, (row, response) in enumerate(read_responses(path), 1):
        if count > len(entries):
            raise BadInput(f"{path}, line {row.line}: more rows than the benchmark's {count - 1}")
        entry = entries[count - 1]
        if row.prompt != entry.item.prompt:
            raise BadInput(
                f"{path}, line {row.line} (row {count}): asks {row.prompt[:60]!r} where the "
                f"benchmark has {entry.item.prompt[:60]!r}; these files do not belong together"
            )
        extra = dict(response.extra)
        if row.label != entry.label:
            extra[_LABEL] = row.label
        yield msgspec.structs.replace(
            response, item_id=entry.item.id, served_model=served, extra=extra
        )
