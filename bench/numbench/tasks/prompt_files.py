"""Reading of a prompt set's folder: `questions.toml` and `system/*.txt`, checked field by field.

questions.toml      one table per task, one wording per operator, and these options:
  description       what the set is for, in one sentence
  questions         "paper": the wordings of the set `paper`; the file has no tables then
  system            "paper": its system prompts; "none": no system prompt; omitted: own files
  working           true if the prompts let a model write text before its answer
  paraphrase_of     the set whose meaning the wordings keep, for the prompt spread
system/TASK.txt     the system prompt of one task, or
system/GROUP.txt    of the tasks of a group (`Task.system_prompt`)
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from numbench.errors import BadInput
from numbench.records import PAPER
from numbench.resources import resource_folder
from numbench.tasks import TASKS
from numbench.tasks.base import template_fields

Templates = dict[str, dict[str, str]]
"""Task → operator → wording."""

QUESTIONS = "questions.toml"
NO_SYSTEM_PROMPT = "none"
_OPTIONS = {
    "description": str,
    "questions": str,
    "system": str,
    "working": bool,
    "paraphrase_of": str,
}
_SCALED = "scaled"
"""The folder with the prompts of the scaled tasks, which is no set."""


class PromptFiles(Struct, frozen=True):
    """The content of a prompt set. systems: task → system prompt, None for none.

    sha256: over the names and bytes of all its files.
    """

    templates: Templates
    systems: dict[str, str | None]
    sha256: str
    description: str = ""
    working: bool = False
    paraphrase_of: str = ""


def bundled_sets() -> tuple[str, ...]:
    """Return the names of the bundled prompt sets, `paper` first."""
    folders = [path.parent for path in resource_folder("prompts").glob(f"*/{QUESTIONS}")]
    names = sorted({folder.name for folder in folders} - {PAPER, _SCALED})
    return (PAPER, *names)


def read_prompt_files(folder: Path) -> PromptFiles:
    """Return the content of the prompt set in `folder`.

    Raises BadInput, naming file and field, if it is malformed.
    """
    path = folder / QUESTIONS
    content = _read_toml(path)
    options: dict[str, object] = {}
    for name, kind in _OPTIONS.items():
        if not isinstance(content.get(name, {}), dict):
            options[name] = content.pop(name)
            if type(options[name]) is not kind:
                raise BadInput(f"{path}: {name} is not a {'text' if kind is str else 'true/false'}")
    is_paper = folder == _paper_folder()
    templates = _templates(path, content, options, is_paper)
    systems = {task: _system_prompt(folder, task, options) for task in templates}
    return PromptFiles(
        templates,
        systems,
        _folder_hash(folder),
        str(options.get("description", "")),
        options.get("working") is True,
        str(options.get("paraphrase_of", "")),
    )


def _read_toml(path: Path) -> dict[str, object]:
    """Return the content of a TOML file. Raises BadInput, naming the file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; a prompt set needs this file") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: {error}") from error


def _paper_folder() -> Path:
    return resource_folder("prompts") / PAPER


def _templates(
    path: Path, tables: Mapping[str, object], options: Mapping[str, object], is_paper: bool
) -> Templates:
    """Return the wordings of a set; those of another set than `paper` are checked."""
    source = options.get("questions")
    if source is not None:
        if source != PAPER:
            raise BadInput(f"{path}: questions is {source!r}; give {PAPER!r}, or tables of tasks")
        if tables:
            raise BadInput(f"{path}: {min(tables)} and questions exclude each other; remove one")
        return _read_paper_templates()
    if not tables:
        raise BadInput(f'{path}: no wordings; add a table per task, or questions = "{PAPER}"')
    if is_paper:
        return _read_paper_templates()
    return {task: _task_templates(path, task, table) for task, table in tables.items()}


def _read_paper_templates() -> Templates:
    text = (_paper_folder() / QUESTIONS).read_text(encoding="utf-8")
    return tomllib.loads(text)


def _task_templates(path: Path, task: str, table: object) -> dict[str, str]:
    """Return the wordings of one task. Raises BadInput if an operator or a field is wrong."""
    if not isinstance(table, dict):
        names = ", ".join(_OPTIONS)
        raise BadInput(f"{path}: {task} is neither an option ({names}) nor the table of a task")
    if task not in TASKS:
        raise BadInput(f"{path}: unknown task {task!r}; use {', '.join(TASKS)}")
    declared = TASKS[task].prompts
    model = dict(declared.questions) if declared else _read_paper_templates()[task]
    for operator in (*model, *table):
        place = f"{path}, {task}.{operator}"
        if operator not in table:
            raise BadInput(f"{place}: the wording is missing")
        if operator not in model:
            raise BadInput(f"{place}: not an operator of the task; use {', '.join(model)}")
        if not isinstance(table[operator], str):
            raise BadInput(f"{place}: not a text")
        fields, needed = (_fields(place, text) for text in (table[operator], model[operator]))
        if sorted(fields) != sorted(needed):
            names = " and ".join(f"{{{name}}}" for name in sorted(set(needed)))
            raise BadInput(f"{place}: needs the fields {names}, each once; {{{{ is a brace")
    return table


def _fields(place: str, template: str) -> list[str]:
    """Return the names of the fields of a wording. Raises BadInput for other braces."""
    try:
        return template_fields(template)
    except ValueError as error:
        raise BadInput(f"{place}: {error}") from error


def _system_prompt(folder: Path, task: str, options: Mapping[str, object]) -> str | None:
    """Return the system prompt of a task, without the final newline of its file."""
    source = options.get("system")
    if source == NO_SYSTEM_PROMPT:
        return None
    if source not in (None, PAPER):
        raise BadInput(
            f"{folder / QUESTIONS}: system is {source!r}; give {PAPER!r}, {NO_SYSTEM_PROMPT!r}, "
            "or omit it for own files"
        )
    base = folder if source is None else _paper_folder()
    names = dict.fromkeys((task, TASKS[task].system_prompt))
    paths = [base / "system" / f"{name}.txt" for name in names if name]
    for path in paths:
        if path.is_file():
            try:
                text = path.read_text(encoding="utf-8").rstrip("\n")
            except UnicodeDecodeError as error:
                raise BadInput(f"{path}: not UTF-8 text") from error
            if not text.strip():
                raise BadInput(f'{path}: empty; for no system prompt, set system = "none"')
            return text
    declared = TASKS[task].prompts
    if declared is not None and source == PAPER:
        return declared.system
    raise BadInput(f"{' or '.join(map(str, paths))}: the system prompt of {task} is missing")


def _folder_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in set_files(folder):
        digest.update(f"{path.relative_to(folder).as_posix()}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def set_files(folder: Path) -> list[Path]:
    """Return the files that a prompt set consists of, in the order in which they are hashed."""
    return sorted((*folder.glob(QUESTIONS), *folder.glob("system/*.txt")))
