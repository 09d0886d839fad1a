"""Names of runs, distinguishable from each other, and untrusted text: on one line, escaped."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Sequence
from pathlib import Path

import msgspec
from markupsafe import Markup

from numbench.errors import printable
from numbench.models.facts import TOKENS_LEVEL
from numbench.records import PAPER, RunInfo
from numbench.scoring import ScoredRun
from numbench.scoring.scored_run import few_shot_count
from numbench.tasks.calculator import NAME as CALCULATOR

LEVELS = ("max", "xhigh", "maximal", "high", "medium", "low", "minimal", "none")
"""Reasoning levels, highest first."""

_MAX_LINE_LENGTH = 2000
_UNSAFE_IN_SCRIPT = {char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def one_line(text: str) -> str:
    """Return an untrusted name on one line: control and format characters become spaces."""
    clean = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in text)
    return " ".join(clean.split()) or "unnamed"


def level_rank(level: str) -> tuple[int, int]:
    """Return a key that sorts reasoning levels, highest first.

    Numbers of tokens are between those with a name and `none`; unknown levels are the last.
    """
    if tokens := TOKENS_LEVEL.fullmatch(level):
        return LEVELS.index("none"), -int(tokens[1])
    return LEVELS.index(level) if level in LEVELS else len(LEVELS), 0


def is_higher(level: str, other: str) -> bool:
    """Return whether a reasoning level is known to be higher than another one."""
    first, second = level_rank(level), level_rank(other)
    # A number of tokens compares with other numbers and `none` only.
    return first < second < (len(LEVELS), 0) and (not second[1] or first[0] == second[0])


def dataset_label(run: ScoredRun) -> str:
    """Return `v1@3f9c2a`: the dataset's name and the first six digits of its hash."""
    return one_line(run.dataset.label)


def variant_name(info: RunInfo) -> str:
    """Return wording, form, examples and tools of a run; empty if they are the paper's."""
    prompt, shots, tools = info.prompt.name, few_shot_count(info), info.settings.get("tools")
    is_default = prompt == PAPER or (tools and prompt == CALCULATOR)
    parts = ("" if is_default else prompt, info.transform, f"{shots}-shot" if shots else "", tools)
    return one_line(", ".join(map(str, filter(None, parts)))) if any(parts) else ""


def folder_notes(names: Sequence[Hashable], folders: Sequence[Path]) -> list[str]:
    """Return, for each run whose name another one has, its folder; otherwise an empty text."""
    notes = []
    for name, folder in zip(names, folders, strict=True):
        alike = [other.name for other, known in zip(folders, names, strict=True) if known == name]
        path = folder.name if alike.count(folder.name) == 1 else folder.as_posix()
        notes.append(one_line(path) if len(alike) > 1 else "")
    return notes


def truncate_middle(text: str, limit: int, gap: str = "\n") -> str:
    """Return the text, or its start and end around `… N more characters …`."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    omitted = len(text) - limit
    return f"{text[: limit - tail]}{gap}… {omitted:,} more characters …{gap}{text[-tail:]}"


def escape_invisible(value: object) -> object:
    """Return a string on one line of bounded length, with control and format characters escaped.

    Markup, which is trusted, and values that are not strings are returned unchanged.
    """
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return printable(truncate_middle(value, _MAX_LINE_LENGTH, " "))


def json_block(value: object) -> Markup:
    """Return JSON that cannot end the script element that contains it."""
    text = msgspec.json.encode(value).decode()
    return Markup("".join(_UNSAFE_IN_SCRIPT.get(char, char) for char in text))
