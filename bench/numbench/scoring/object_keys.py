"""What the other keys of an answer object may say about its answer.

Before the answer, unknown keys are steps on the way to it, unless they name something that is
applied to it (`unit`). After it, only known keys leave it as it is: an unknown one may contain
another answer (`revised`) or change the value.
"""

from __future__ import annotations

import re

_DRAFT = re.compile(
    r"draft|intermediate|partial|initial|first|previous|step|rough|wrong|incorrect|guess",
    re.IGNORECASE,
)
_ANSWER = re.compile(r"answer|result|final|solution|value", re.IGNORECASE)
_TEXT = re.compile(
    r"expla|reason|rational|thought|think|steps?\b|note|comment|\bwork|calculation|method|verif"
    r"|check|detail|descri|summary|analysis|justif|process|logic",
    re.IGNORECASE,
)
_QUESTION = frozenset((
    "question", "problem", "task", "expression", "equation", "operation", "operator", "operands",
    "input", "inputs", "numbers", "list", "original", "a", "b", "x",
))  # fmt: skip
_DATA = frozenset((
    "id", "index", "confidence", "certainty", "probability", "digits", "precision", "interval",
    "language", "model", "count", "n", "significant_digits", "variance",
))  # fmt: skip
# Keys that confirm the answer if they are true, and those that change it unless they are false.
_CONFIRMING = re.compile(
    r"(?<!in)(?:correct|valid)|success|exact|round|approx|done|\bok\b", re.IGNORECASE
)
_CHANGING = re.compile("negative|error|truncat|incorrect|invalid", re.IGNORECASE)
# Keys whose value is applied to the answer.
_APPLIED = re.compile(
    r"unit|scale|sign\b|factor|multipl|times|magnitude|exponent|power|percent|format|type|correct"
    r"|valid|final|error|draft|placeholder|example|template|currency|base",
    re.IGNORECASE,
)
_NOTHING = frozenset((
    "", "none", "null", "n/a", "unitless", "dimensionless", "success", "ok", "done", "number",
))  # fmt: skip


def is_text_key(key: str) -> bool:
    """Return whether the value of a key explains the answer."""
    return bool(_TEXT.search(key)) and not is_answer_key(key)


def is_answer_key(key: str) -> bool:
    """Return whether the value of a key has to be equal to the answer, such as `final_answer`."""
    return bool(_ANSWER.search(key)) and not _DRAFT.search(key)


def is_neutral(key: str, value: object) -> bool:
    """Return whether a key of another kind says nothing about the answer."""
    if isinstance(value, bool):
        return bool((_CONFIRMING if value else _CHANGING).search(key))
    if value is None or key.lower() in _DATA or _DRAFT.search(key):
        return True
    return value == [] or (isinstance(value, str) and value.strip().lower() in _NOTHING)


def is_step(key: str, value: object) -> bool:
    """Return whether an unknown key before the answer may be a step on the way to it."""
    return not (isinstance(value, bool | dict) or _APPLIED.search(key))


def is_question_key(key: str) -> bool:
    """Return whether the value of a key repeats the question."""
    return key.lower() in _QUESTION


def is_neutral_name(key: str) -> bool:
    """Return whether a key usually says nothing about the answer, whatever its value."""
    return is_text_key(key) or key.lower() in _DATA
