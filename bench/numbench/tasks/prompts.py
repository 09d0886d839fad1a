"""Prompts: formatting a question with the templates of a prompt set, and parsing it back."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from string import Formatter, ascii_lowercase
from typing import NamedTuple

from numbench.errors import BadInput
from numbench.records import PAPER, PromptRef
from numbench.resources import resource_folder
from numbench.tasks import TASKS
from numbench.tasks.base import LETTERS, TaskPrompts, template_fields
from numbench.tasks.prompt_files import bundled_sets, read_prompt_files

_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_FIELD_PATTERNS = {
    "list": rf"{_NUMBER}(?:, {_NUMBER})*",
    "choices": r"[A-Z]: .+",
    "expression": r"[-+*() \d]+",
}
"""Regular expressions of the fields that are not a single number."""
_BOUNDARY = re.compile(rf"x < ({_NUMBER})")


ALL_PARAPHRASES = "paraphrases"
"""The name that stands for all bundled paraphrases of the paper's questions."""


class Question(NamedTuple):
    """A question as parsed from a prompt."""

    task: str
    operator: str
    operands: tuple[str, ...]


class PromptSet:
    """The system prompts and question wordings of a folder (`numbench.tasks.prompt_files`).

    In the set `paper`, a task that the folder does not contain uses the prompts of its declaration
    (`Task.prompts`). Any other set has only the tasks of its folder.
    """

    def __init__(self, name: str, folder: Path) -> None:
        """Load the set in `folder`. Raises BadInput, naming file and field, if it is malformed."""
        self.name = name
        self.folder = folder
        self._files = read_prompt_files(folder)
        self._templates = dict(self._files.templates)
        self._systems = dict(self._files.systems)
        if name == PAPER:
            self._add_declared()

    def _add_declared(self) -> None:
        for task in TASKS.values():
            if task.name not in self._templates and task.prompts is not None:
                self._check_unique(task.name, task.prompts)
                self._templates[task.name] = dict(task.prompts.questions)
                self._systems[task.name] = task.prompts.system

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that the set has prompts for, in the order of the registry."""
        return tuple(task for task in TASKS if task in self._templates)

    @property
    def description(self) -> str:
        """What the set is for."""
        return self._files.description

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
        return PromptRef(
            name=self.name,
            sha256=self._files.sha256,
            tasks={task: self._task_hash(task) for task in tasks},
            working=self._files.working,
            paraphrase_of=self._files.paraphrase_of,
        )

    def _task_hash(self, task: str) -> str:
        """Return the SHA-256 of the system prompt and the question templates of a task."""
        content = [self.system_prompt(task), sorted(self._templates[task].items())]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def system_prompt(self, task: str) -> str | None:
        """Return the system prompt of a task, without the final newline of its file.

        None if the set has no system prompts.
        """
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
        expression = TASKS[task].expression
        if expression is not None:
            return template.format(expression=expression.format(operands))
        return template.format(**dict(zip(ascii_lowercase, operands, strict=False)))

    def parse_question(self, prompt: str) -> Question:
        """Return the question of a prompt: the inverse of `format_question`.

        Raises ValueError if the text is not a question of this prompt set.
        """
        for task, operator, pattern in self._patterns:
            match = pattern.fullmatch(prompt)
            if match is None:
                continue
            fields, expression = match.groupdict(), TASKS[task].expression
            try:
                operands = (
                    expression.parse(fields["expression"]) if expression else _operands(fields)
                )
            except ValueError:
                continue
            if self.format_question(task, operator, operands) == prompt:
                return Question(task, operator, operands)
        raise ValueError(f"not a question of the prompt set {self.name!r}: {prompt[:80]!r}")

    def _check_unique(self, task: str, prompts: TaskPrompts) -> None:
        """Raise BadInput if a template of `task` is already a template of another task."""
        for other, templates in self._templates.items():
            if shared := set(templates.values()) & set(prompts.questions.values()):
                raise BadInput(
                    f"task {task!r} has the same question as task {other!r}: {min(shared)!r}; "
                    "change its Task.prompts"
                )

    @cached_property
    def _patterns(self) -> list[tuple[str, str, re.Pattern[str]]]:
        return [
            (task, operator, _pattern(template))
            for task, templates in self._templates.items()
            for operator, template in templates.items()
            if "{low}" not in template and "{high}" not in template
        ]


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
    expanded: list[str] = []
    for name in names:
        is_all = name == ALL_PARAPHRASES
        expanded += _bundled_paraphrases() if is_all else [name]
    return tuple(expanded)


def _bundled_paraphrases() -> list[str]:
    return [name for name in bundled_sets() if load_prompt_set(name).ref(()).paraphrase_of == PAPER]


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
    bundled, own = load_prompt_set(folder.name), read_prompt_files(folder)
    if own.sha256 != bundled.ref(()).sha256:
        raise BadInput(f"{name}: {folder.name} is the name of a bundled set; rename the folder")
    return bundled


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


def _pattern(template: str) -> re.Pattern[str]:
    pattern, seen = "", set()
    for text, field, _, _ in Formatter().parse(template):
        pattern += re.escape(text)
        if field in seen:
            pattern += f"(?P={field})"
        elif field is not None:
            pattern += f"(?P<{field}>{_FIELD_PATTERNS.get(field, _NUMBER)})"
            seen.add(field)
    return re.compile(pattern)


_PAPER_TASK_HASHES: dict[str, str] = {
    "minmax": "2e37a149e92eef301806debe39b40e1bbaefdb4bb099f89cdabc47a051629756",
    "interval": "43c4463e92fbcbee77fa6d8da926349c6e79a53384223aa0675fbd116110407a",
    "sorting": "bdd494e7293194613329717562c379bb67ba31249575125e405947d5c91a0579",
    "addition": "3c6c80d36fe5db521e20ed23755d3eb4c56f434f7fbc8b99d3af4ac97e4477d2",
    "multiplication": "b2aad6dadf694ef864b8f99811188815202ddff4c01b69b04bcc1f8fad564180",
    "division": "13e159b5712f5324e70dfd5c782429c85bde799856a9a19291ca892b96ba34da",
    "exponentiation": "ec30b64c58358e9bf8aee9a96a09d047bc98faa080e4578ee33fa281ec5b51cf",
    "mean": "a48feadfad401770509ba58f645a30cd470d585fce76442ff501126a7fc1f0cf",
    "std": "9463830c972d3e2d84aa4ef27301b7f6a6acde7e46d16f9df65e8ea3c5f4f82e",
}
_PAPER_SET_HASH = "9b96901389c4e3c98760a0d410734ad36b17f155dd33566ed0a97ea8f0b2786a"
"""Hash of the set `paper` in runs that recorded no hash per task."""


def changed_prompts(before: PromptRef, now: PromptRef) -> list[str]:
    """Return the tasks that both runs contain and whose prompts differ between them.

    Runs of version 0.1 have one hash for the whole set. If it is not the hash of the released
    set and differs from the other run's, all tasks count as changed.
    """
    first, second = _by_task(before), _by_task(now)
    if not first or not second:
        return [] if before.sha256 == now.sha256 else sorted(first or second) or ["all"]
    return [task for task in first if task in second and first[task] != second[task]]


def _by_task(ref: PromptRef) -> dict[str, str]:
    return ref.tasks or (_PAPER_TASK_HASHES if ref.sha256 == _PAPER_SET_HASH else {})
