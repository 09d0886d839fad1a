"""What the other keys of an answer object may say about its answer.

Only known keys leave the answer as it is: an unknown one may contain another answer
(`final_answer`), change the value (`unit`) or withdraw it (`"valid": false`).
"""

from __future__ import annotations

import re

_DRAFT = re.compile(
    r"draft|intermediate|partial|initial|first|previous|step|rough|wrong|incorrect|guess",
    re.IGNORECASE,
)
_ANSWER = re.compile(r"answer|result|final|solution|value", re.IGNORECASE)
_TEXTS = frozenset((
    "explanation", "explain", "reasoning", "rationale", "reason", "thought", "thoughts", "steps",
    "step", "note", "notes", "comment", "comments", "work", "working", "calculation",
    "calculations", "method", "verification", "check", "details", "description", "summary",
))  # fmt: skip
_QUESTION = frozenset((
    "question", "problem", "task", "expression", "equation", "operation", "operator", "operands",
    "inputs", "numbers", "list", "a", "b", "x",
))  # fmt: skip
_DATA = frozenset((
    "id", "index", "confidence", "certainty", "probability", "digits", "precision", "interval",
    "language", "model",
))  # fmt: skip
# Keys that confirm the answer if they are true, and those that change it unless they are false.
_CONFIRMING = re.compile(r"(?<!in)(?:correct|valid)|success|exact|done|\bok\b", re.IGNORECASE)
_CHANGING = re.compile("negative|error|approx|round|truncat|incorrect|invalid", re.IGNORECASE)
_NO_UNIT = frozenset(("", "none", "null", "n/a", "unitless", "dimensionless"))


def is_text_key(key: str) -> bool:
    """Return whether the value of a key explains the answer."""
    return key.lower() in _TEXTS


def is_answer_key(key: str) -> bool:
    """Return whether the value of a key has to be equal to the answer, such as `final_answer`."""
    return bool(_ANSWER.search(key)) and not _DRAFT.search(key)


def is_neutral(key: str, value: object) -> bool:
    """Return whether a key of another kind says nothing about the answer."""
    if isinstance(value, bool):
        return bool((_CONFIRMING if value else _CHANGING).search(key))
    if value is None or key.lower() in _DATA or _DRAFT.search(key):
        return True
    return value == [] or (isinstance(value, str) and value.strip().lower() in _NO_UNIT)


def is_question_key(key: str) -> bool:
    """Return whether the value of a key repeats the question."""
    return key.lower() in _QUESTION


def is_neutral_name(key: str) -> bool:
    """Return whether a key usually says nothing about the answer, whatever its value."""
    return is_text_key(key) or key.lower() in _DATA
