"""How the published study found an answer in a response, faults included.

The faults are kept on purpose: `3 + 4 = 7` reads as 3, `1,234.5` as 1, a bare list as its first
element, `{"answer": null}` as the answer `None`. The `exact` protocol does none of this.
"""

from __future__ import annotations

import json
import re

NUMBER = re.compile(
    r"[-+]?(?:0(?!\.[0-9])|[0-9]*\.[0-9]+|[1-9][0-9]*)(?:[eE][-+]?[0-9]+)?", re.ASCII
)
"""A number to the study: 0 unless a fraction follows, a fraction, or an integer without
leading zeros, each with an optional exponent."""

# Tasks whose JSON numbers are kept as they were written.
AS_WRITTEN = frozenset({"minmax", "sorting"})

_BRACES = re.compile(r"\{.*\}", re.DOTALL)
_FENCE = re.compile(r"```(?:json)?", re.IGNORECASE)
_LABEL = re.compile(r"^\s*json\b\s*:?", re.IGNORECASE)
_THOUGHT_TAG = re.compile(r"</?(?:think|thinking|thought|thoughts)>", re.IGNORECASE)
# Upper-cased text: a letter that stands beside no other.
_LONE_LETTER = re.compile(r"(?<![A-Z])[A-F](?![A-Z])")


def parse_paper(text: str, task: str) -> str | None:
    """The answer string that the study read from a response; None where it found nothing."""
    if text.count("{") == 1 and text.count("}") == 1:
        enclosed = _BRACES.search(text)
        text = enclosed.group() if enclosed else text
    return _json_answer(text, task) or _first_number(text) or _second_attempt(text, task)


def _second_attempt(text: str, task: str) -> str | None:
    """What the study tried on a text without any number.

    Its further attempts look for lists and numbers once more. They cannot find any in a text
    that has just been found to hold no number, and are left out.
    """
    text = _THOUGHT_TAG.sub("", _LABEL.sub("", _FENCE.sub("", text))).strip()
    answer = _json_answer(text, task) or _braced_answer(text, task)
    if answer is None and task == "interval":
        letter = _LONE_LETTER.search(text.upper())
        return letter.group() if letter else None
    return answer


def _json_answer(text: str, task: str) -> str | None:
    """Python's `str` of `answer` in a text that is one JSON object; None where it is not."""
    convert = str if task in AS_WRITTEN else float
    try:
        value = json.loads(text, parse_float=convert, parse_int=convert)
    except (ValueError, RecursionError):
        return None
    return str(value["answer"]) if isinstance(value, dict) and "answer" in value else None


def _braced_answer(text: str, task: str) -> str | None:
    """The answer in the first balanced `{...}` that contains "answer"."""
    depth, start = 0, 0
    for brace in re.finditer(r"[{}]", text):
        if brace.group() == "{":
            start = brace.start() if depth == 0 else start
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0 and '"answer"' in text[start : brace.end()]:
                return _json_answer(text[start : brace.end()], task)
    return None


def _first_number(text: str) -> str | None:
    match = NUMBER.search(text)
    return str(float(match.group())) if match else None
