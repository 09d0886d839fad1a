"""From a question to its wording and back: the prompt files under `prompts/`."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import NamedTuple

from bench.errors import BadInput
from bench.paths import resource
from bench.records import PromptRef

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_FIELDS = {
    "a": rf"(?P<a>{_NUMBER})",
    "b": rf"(?P<b>{_NUMBER})",
    "list": rf"(?P<list>{_NUMBER}(?:, {_NUMBER})*)",
    "reference": rf"(?P<reference>{_NUMBER})",
    "choices": r"(?P<choices>[A-Z]: .+)",
}
_BOUNDARY = re.compile(rf"x < ({_NUMBER})")


class Question(NamedTuple):
    """A question as read from its wording."""

    task: str
    operator: str
    operands: tuple[str, ...]


class PromptSet:
    """One folder of prompts: `system/*.txt` and `questions.toml`."""

    def __init__(self, name: str) -> None:
        """Load the set `name`. BadInput where there is no such folder."""
        self.name = name
        self._folder = resource("prompts") / name
        if not (self._folder / "questions.toml").is_file():
            raise BadInput(f"no prompt set {name!r} in {self._folder.parent}")
        text = (self._folder / "questions.toml").read_text(encoding="utf-8")
        self._templates: dict[str, dict[str, str]] = tomllib.loads(text)

    @cached_property
    def ref(self) -> PromptRef:
        """Name and hash of all files of the set."""
        digest = hashlib.sha256()
        for path in sorted(self._folder.rglob("*")):
            if path.is_file():
                digest.update(f"{path.relative_to(self._folder).as_posix()}\n".encode())
                digest.update(path.read_bytes())
        return PromptRef(name=self.name, sha256=digest.hexdigest())

    @cache  # noqa: B019 - prompt sets live as long as the program
    def system(self, prompt: str) -> str:
        """The system prompt in `system/<prompt>.txt`, without the final newline."""
        return (self._folder / "system" / f"{prompt}.txt").read_text(encoding="utf-8").rstrip("\n")

    def phrase(self, task: str, operator: str, operands: Sequence[str]) -> str:
        """The wording of a question."""
        templates = self._templates[task]
        template = templates[operator]
        if "{choices}" in template:
            return template.format(reference=operands[0], choices=_choices(templates, operands[1:]))
        if "{list}" in template:
            return template.format(list=", ".join(operands))
        return template.format(a=operands[0], b=operands[1])

    def read(self, prompt: str) -> Question:
        """The question behind a wording: the inverse of `phrase`. ValueError for any other text."""
        for task, operator, pattern in self._patterns:
            match = pattern.fullmatch(prompt)
            if match is None:
                continue
            operands = _operands(match.groupdict())
            if self.phrase(task, operator, operands) == prompt:
                return Question(task, operator, operands)
        raise ValueError(f"not a question of the prompt set {self.name!r}: {prompt[:80]!r}")

    @cached_property
    def _patterns(self) -> list[tuple[str, str, re.Pattern[str]]]:
        return [
            (task, operator, _pattern(template))
            for task, templates in self._templates.items()
            for operator, template in templates.items()
            if "{low}" not in template and "{high}" not in template
        ]


@cache
def prompts(name: str = "paper") -> PromptSet:
    """The prompt set `name`, loaded once."""
    return PromptSet(name)


def _choices(templates: dict[str, str], boundaries: Sequence[str]) -> str:
    parts = [templates["first"].format(letter=LETTERS[0], high=boundaries[0])]
    for index, (low, high) in enumerate(pairwise(boundaries), 1):
        parts.append(templates["middle"].format(letter=LETTERS[index], low=low, high=high))
    parts.append(templates["last"].format(letter=LETTERS[len(boundaries)], low=boundaries[-1]))
    return ", ".join(parts)


def _operands(fields: dict[str, str]) -> tuple[str, ...]:
    if "choices" in fields:
        return (fields["reference"], *_BOUNDARY.findall(fields["choices"]))
    if "list" in fields:
        return tuple(fields["list"].split(", "))
    return fields["a"], fields["b"]


def _pattern(template: str) -> re.Pattern[str]:
    pieces = re.split(r"\{(\w+)\}", template)
    literal, fields = pieces[::2], pieces[1::2]
    pattern = re.escape(literal[0])
    for field, text in zip(fields, literal[1:], strict=True):
        pattern += _FIELDS[field] + re.escape(text)
    return re.compile(pattern)
