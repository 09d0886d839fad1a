"""Prompt sets: formatting a question in the words of a set, and parsing it back.

A prompt set is a folder:

questions.toml      one table per task, one wording per operator, and these options:
  description       what the set is for, in one sentence
  questions         "paper": the wordings of the set `paper` for the tasks without a table
  system            "paper": its system prompts; "none": no system prompt; omitted: own files
  working           true if the prompts let a model write text before its answer
  tools             true if the prompts let a model use tools (`--tools`)
  paraphrase_of     the set whose meaning the wordings keep
system/TASK.txt     the system prompt of one task, or
system/GROUP.txt    of the tasks of a group (`Task.system_prompt`)
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from itertools import chain, pairwise
from pathlib import Path
from string import Formatter, ascii_lowercase
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from numbench.core import jsonl
from numbench.core.installation import resource_folder
from numbench.errors import BadInput, bad_input_at
from numbench.records import PAPER, PromptRef
from numbench.tasks import PAPER_TASKS, TASKS
from numbench.tasks.base import LETTERS, template_fields

ALL_PARAPHRASES = "paraphrases"
"""The name that stands for all bundled paraphrases of the paper's questions."""

QUESTIONS = "questions.toml"
_SCALED = "scaled"
"""The folder with the prompts of the scaled tasks, which is not a set of prompts."""

_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_FIELD_PATTERNS = {
    "list": rf"{_NUMBER}(?:, {_NUMBER})*",
    "choices": r"[A-Z]: .+",
}
"""Regular expressions of the fields that are not a single number."""
_ANY_TEXT = r"[\s\S]+?"
_BOUNDARY = re.compile(rf"x < ({_NUMBER})")

Templates = dict[str, dict[str, str]]
"""Task → operator → wording."""


class SetOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of `questions.toml`; see above."""

    description: str = ""
    questions: Literal["", "paper"] = ""
    system: Literal["", "paper", "none"] = ""
    working: bool = False
    tools: bool = False
    paraphrase_of: str = ""


class Question(NamedTuple):
    """A question as parsed from a prompt."""

    task: str
    operator: str
    operands: tuple[str, ...]


class PromptSet:
    """The system prompts and question wordings of a folder.

    In the set `paper`, a task that the folder does not contain uses the prompts of its declaration
    (`Task.prompts`). Any other set has only the tasks of its folder.
    """

    def __init__(self, name: str, folder: Path) -> None:
        """Load the set in `folder`. Raises BadInput, naming file and field, if it is malformed."""
        self.name = name
        self.folder = folder
        self.options, tables = _read_questions(folder / QUESTIONS)
        self._templates = tables if name == PAPER else self._check_wordings(tables)
        self._systems = {task: self._read_system_prompt(task) for task in self._templates}
        for task in TASKS.values() if name == PAPER else ():
            if task.name in self._templates or task.prompts is None:
                continue
            questions = dict(task.prompts.questions)
            for other, wordings in self._templates.items():
                if shared := set(wordings.values()) & set(questions.values()):
                    raise BadInput(
                        f"task {task.name!r} has the same question as task {other!r}: "
                        f"{min(shared)!r}; change its Task.prompts"
                    )
            self._templates[task.name] = questions
            self._systems[task.name] = task.prompts.system

    def _check_wordings(self, tables: dict[str, Any]) -> Templates:
        """Return the wordings of another set than `paper`."""
        path, paper = self.folder / QUESTIONS, load_prompt_set()._templates
        for task, table in tables.items():
            _check_table(path, task, table, paper.get(task, {}))
        bundled = {task: paper[task] for task in PAPER_TASKS} if self.options.questions else {}
        if not (templates := bundled | tables):
            raise BadInput(f'{path}: no wordings; add a table per task, or questions = "paper"')
        return templates

    def _read_system_prompt(self, task: str) -> str | None:
        """Return the system prompt of a task, without the final newline of its file."""
        if self.options.system == "none":
            return None
        if self.options.system == PAPER:
            return load_prompt_set().system_prompt(task)
        names = dict.fromkeys((task, TASKS[task].system_prompt))
        paths = [self.folder / "system" / f"{name}.txt" for name in names if name]
        for path in filter(Path.is_file, paths):
            text = _read_text(path).rstrip("\n")
            if not text.strip():
                raise BadInput(f'{path}: empty; for no system prompt, set system = "none"')
            return text
        raise BadInput(f"{' or '.join(map(str, paths))}: the system prompt of {task} is missing")

    @cached_property
    def sha256(self) -> str:
        """The hash over the names and bytes of all files of the set."""
        return _folder_hash(self.folder)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that the set has prompts for, in the order of the registry."""
        return tuple(task for task in TASKS if task in self._templates)

    def ref(self, tasks: Iterable[str]) -> PromptRef:
        """Return the reference that a run of `tasks` records.

        Raises BadInput for a task that the set has no prompts for.
        """
        tasks = tuple(tasks)
        if missing := [task for task in tasks if task not in self._templates]:
            raise BadInput(
                f"the prompt set {self.name} has no prompts for {', '.join(missing)}: choose "
                f"--tasks from {', '.join(self.tasks)}, or add them"
            )
        hashes = {task: self._task_hash(task) for task in tasks}
        return PromptRef(
            name=self.name, sha256=self.sha256, tasks=hashes, working=self.options.working
        )

    def _task_hash(self, task: str) -> str:
        """Return the SHA-256 of the system prompt and the question templates of a task."""
        content = [self.system_prompt(task), sorted(self._templates[task].items())]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def system_prompt(self, task: str) -> str | None:
        """Return the system prompt of a task; None if the set has no system prompts."""
        return self._systems[task]

    def format_question(
        self, task: str, operator: str, operands: Sequence[str], separator: str = ", "
    ) -> str:
        """Return the prompt of a question. separator: between the elements of a list."""
        templates = self._templates[task]
        template = templates[operator]
        fields = template_fields(template)
        if "choices" in fields:
            choices = separator.join(_choices(templates, operands[1:]))
            return template.format(reference=operands[0], choices=choices)
        if "list" in fields:
            return template.format(list=separator.join(operands))
        if operand_format := TASKS[task].operand_format:
            return template.format(**operand_format.format(operator, operands))
        return template.format(**dict(zip(ascii_lowercase, operands, strict=False)))

    def parse_question(self, prompt: str) -> Question:
        """Return the question of a prompt: the inverse of `format_question`.

        Raises ValueError if the text is not a question of this prompt set.
        """
        for task, operator, pattern in self._patterns:
            match = pattern.fullmatch(prompt)
            if match is None:
                continue
            fields, operand_format = match.groupdict(), TASKS[task].operand_format
            try:
                if operand_format is None:
                    operands = _operands(fields)
                else:
                    operands = operand_format.parse(operator, fields)
                if self.format_question(task, operator, operands) == prompt:
                    return Question(task, operator, operands)
            except ValueError:
                continue
        raise ValueError(f"not a question of the prompt set {self.name!r}: {prompt[:80]!r}")

    @cached_property
    def _patterns(self) -> list[tuple[str, str, re.Pattern[str]]]:
        return [
            (task, operator, _pattern(template, TASKS[task].operand_format is not None))
            for task, templates in self._templates.items()
            for operator, template in templates.items()
            if "{low}" not in template and "{high}" not in template
        ]


def bundled_sets() -> tuple[str, ...]:
    """Return the names of the bundled prompt sets, `paper` first."""
    folders = [path.parent for path in resource_folder("prompts").glob(f"*/{QUESTIONS}")]
    return (PAPER, *sorted({folder.name for folder in folders} - {PAPER, _SCALED}))


@cache
def load_prompt_set(name: str = PAPER) -> PromptSet:
    """Return the bundled prompt set `name`, loaded once. Raises BadInput if there is none."""
    if name not in bundled_sets():
        raise BadInput(
            f"no prompt set {name!r}; use {', '.join(bundled_sets())}, or a folder such as ./{name}"
        )
    return PromptSet(name, resource_folder("prompts") / name)


def expand_prompt_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names with `paraphrases` replaced by the bundled paraphrases of the paper's."""
    bundled = [load_prompt_set(name) for name in bundled_sets() if ALL_PARAPHRASES in names]
    paraphrases = [each.name for each in bundled if each.options.paraphrase_of == PAPER]
    expanded = (paraphrases if name == ALL_PARAPHRASES else [name] for name in names)
    return tuple(chain.from_iterable(expanded))


def open_prompt_set(name: str | Path) -> PromptSet:
    """Return the bundled set of a name, or the set in a folder: a `Path`, or text with a separator.

    Raises BadInput if there is none, if it is malformed, or if a folder has the name of a bundled
    set but other content.
    """
    if not isinstance(name, Path) and "/" not in name and os.sep not in name:
        return load_prompt_set(name)
    folder = Path(name).resolve()
    if not folder.is_dir():
        raise BadInput(f"{name}: no such folder; give one with questions.toml and system/")
    if not re.fullmatch(r"[\w.-]+", folder.name):
        raise BadInput(f"{name}: use letters, digits, '.', '_' and '-' in the name of the folder")
    if folder.name not in bundled_sets():
        return PromptSet(folder.name, folder)
    bundled = load_prompt_set(folder.name)
    if _folder_hash(folder) != bundled.sha256:
        raise BadInput(f"{name}: {folder.name} is the name of a bundled set; rename the folder")
    return bundled


def set_files(folder: Path) -> list[Path]:
    """Return the files that a prompt set consists of, in the order in which they are hashed."""
    return sorted((*folder.glob(QUESTIONS), *folder.glob("system/*.txt")))


def changed_prompts(before: PromptRef, now: PromptRef) -> list[str]:
    """Return the tasks that both runs contain and whose prompts differ between them.

    Where the hashes of tasks are not known, the whole sets are compared.
    """
    if not before.tasks or not now.tasks:
        tasks = sorted(before.tasks or now.tasks) or ["all"]
        return [] if before.sha256 == now.sha256 else tasks
    return [task for task, sha256 in before.tasks.items() if now.tasks.get(task, sha256) != sha256]


def _read_questions(path: Path) -> tuple[SetOptions, dict[str, Any]]:
    """Return the options of a set and its tables. Raises BadInput, naming file and field."""
    with bad_input_at(path, tomllib.TOMLDecodeError):
        tables = tomllib.loads(_read_text(path))
    wordings = {name: table for name, table in tables.items() if isinstance(table, dict)}
    options = {name: value for name, value in tables.items() if name not in wordings}
    try:
        return msgspec.convert(options, SetOptions), wordings
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {jsonl.decode_error_message(error)}") from error


def _check_table(path: Path, task: str, table: dict[str, Any], model: dict[str, str]) -> None:
    """Raise BadInput unless the wordings of a task have the operators and fields of `model`."""
    if task not in TASKS:
        raise BadInput(f"{path}: unknown task {task!r}; use {', '.join(TASKS)}")
    if table.keys() != model.keys():
        raise BadInput(f"{path}, {task}: give a wording for each of {', '.join(model)}")
    for operator, wording in table.items():
        location = f"{path}, {task}.{operator}"
        with bad_input_at(location, ValueError):
            fields, needed = map(template_fields, (str(wording), model[operator]))
        if sorted(fields) != sorted(needed):
            names = " and ".join(f"{{{name}}}" for name in sorted(set(needed)))
            raise BadInput(f"{location}: needs the fields {names}, each once; {{{{ is a brace")


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; a prompt set needs this file") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text") from error


def _folder_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in set_files(folder):
        digest.update(f"{path.relative_to(folder).as_posix()}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _choices(templates: dict[str, str], boundaries: Sequence[str]) -> list[str]:
    parts = [templates["first"].format(letter=LETTERS[0], high=boundaries[0])]
    for index, (low, high) in enumerate(pairwise(boundaries), 1):
        parts.append(templates["middle"].format(letter=LETTERS[index], low=low, high=high))
    parts.append(templates["last"].format(letter=LETTERS[len(boundaries)], low=boundaries[-1]))
    return parts


def _operands(fields: dict[str, str]) -> tuple[str, ...]:
    if "choices" in fields:
        return (fields["reference"], *_BOUNDARY.findall(fields["choices"]))
    if "list" in fields:
        return tuple(fields["list"].split(", "))
    return tuple(fields[name] for name in sorted(fields))


def _pattern(template: str, is_free: bool) -> re.Pattern[str]:
    """Return the pattern of the questions of a template. is_free: its fields have any text."""
    pattern, seen = "", set()
    for text, field, _, _ in Formatter().parse(template):
        pattern += re.escape(text)
        if field in seen:
            pattern += f"(?P={field})"
        elif field is not None:
            of_field = _ANY_TEXT if is_free else _FIELD_PATTERNS.get(field, _NUMBER)
            pattern += f"(?P<{field}>{of_field})"
            seen.add(field)
    return re.compile(pattern)
