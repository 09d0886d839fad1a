"""The parser of the `exact` protocol: what a model answered, by which rule, or nothing.

The rules, in this order; the first that finds an answer object or a value decides, and what it
finds must be of the kind that the task asks for (a list of one number is not a number):

1. The whole text is a JSON object with the key `answer`.
2. The last closed object with that key inside the text, fenced or not. It may depart from JSON
   in the notation of its value (`-.5`, `−5`, `1.5 × 10^-7`, an unquoted letter). If that object
   holds no value that can be read, the text has no answer: an earlier object may be a draft.
3. An object that never closes after its value began. A number counts where its literal is
   complete: it is followed by the end of the text, a line break, a new `{`, a backtick or
   `<`, or the next key of the object; a literal of more than 64 characters has run away and may
   be followed by anything that is not an operator. A text cut off right behind the decimal point
   (`12.`) leaves the number before it; `-`, `1e` and `1,` are not complete, and neither is a
   literal after which any further digit comes, except behind a next key.
   A letter counts once its quotes are closed, a list once its bracket is. Where several objects
   began, all complete values must be equal.
4. The text is nothing but one number, letter or list, at most with a label (`Answer:`,
   `The answer is`, `**Final answer:**`), a code fence, quotes or emphasis around it.

A JSON string counts as what it holds. `null`, booleans, NaN, infinities and objects are not
answers. Where one object has the key twice with different values, there is no answer.
"""

from __future__ import annotations

import json
import re
from collections import deque
from decimal import Decimal
from typing import NamedTuple

from bench.scoring.notation import (
    NUMBER,
    read_element,
    read_letter,
    read_list,
    read_number,
    without_marks,
)
from bench.tasks.base import AnswerKind

Value = Decimal | str | tuple[Decimal, ...]


class Parsed(NamedTuple):
    """An answer and the number of the rule that found it."""

    value: Value
    rule: int


class _Literal(str):
    """A JSON number as it was written."""


class _Object(NamedTuple):
    """A decoded JSON object and the place where its text ends."""

    fields: dict[str, object]
    end: int


class _Found(NamedTuple):
    """The raw value under `answer` in a closed object, readable or not."""

    raw: object


# Effort spent on hostile text: objects that begin to look like answers, braces tried for each,
# and characters decoded in vain, as a multiple of the text's length.
_KEYS = 32
_BRACES_PER_KEY = 32
_WASTE = 2
_RUNAWAY = 64

_KEY = re.compile(r'"answer"\s*+:\s*+')
_NEXT_KEY = re.compile(r',\s*+"[^"]*+"\s*+:')
_CONTINUES = re.compile(r'"?\s*+,\s*+"')
_STOPS = re.compile(r'"?[^\S\n]*+(?:[\n{`<]|$)')
_OPERATOR = re.compile(r'"?\s*+[-+*/^%×·⋅÷=.,eExX]')
_QUOTED_LETTER = re.compile(r'"\s*+([A-Fa-f])\s*+"')
_CLOSED_LIST = re.compile(r"\[[^\[\]{}]*+\]")
_LABEL_WORDS = (
    r"(?:the\s++)?(?:final\s++|correct\s++)?(?:answer|result)\b(?:\s++is\b)?+\s*+[:=]?+\s*+"
)
_LABEL = re.compile(rf"\*\*{_LABEL_WORDS}\*\*\s*+[:=]?\s*+|{_LABEL_WORDS}", re.IGNORECASE)
_FENCE = re.compile(r"```(?:[A-Za-z]*+[^\S\n]*+\n)?+")


def _read_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    answers = [value for key, value in pairs if key == "answer"]
    if len(answers) > 1 and any(answer != answers[0] for answer in answers):
        values["answer"] = None
    return values


_JSON = json.JSONDecoder(
    parse_float=_Literal,
    parse_int=_Literal,
    object_pairs_hook=_read_pairs,
)


def parse_answer(text: str, kind: AnswerKind) -> Parsed | None:
    """The answer of the given kind in `text`, by the rules above; None for unparseable text.

    Never raises; linear in the length of the text.
    """
    text = text.strip()
    if text.startswith("{") and text.endswith("}"):
        whole = _decode_whole(text)
        if whole is not None:
            return _parsed(_read_json(whole.raw, kind), 1)
    keys = list(deque(_KEY.finditer(text), _KEYS))
    if keys:
        found = _last_closed(text, keys)
        if found is not None:
            return _parsed(_read_json(found.raw, kind), 2)
        return _parsed(_read_begun(text, keys, kind), 3)
    return _parsed(_read_bare(text, kind), 4)


def _parsed(value: Value | None, rule: int) -> Parsed | None:
    return None if value is None else Parsed(value, rule)


def _decode_whole(text: str) -> _Found | None:
    decoded = _decode(text, 0)
    if isinstance(decoded, int) or decoded.end != len(text) or "answer" not in decoded.fields:
        return None
    return _Found(decoded.fields["answer"])


def _decode(text: str, start: int) -> _Object | int:
    """The JSON object that begins at `start`, or how many characters it took to see there is none.

    Too deep a nesting is none.
    """
    try:
        value, end = _JSON.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return error.pos - start
    except RecursionError:
        return len(text) - start
    return _Object(value, end)


def _read_json(raw: object, kind: AnswerKind) -> Value | None:
    """A decoded JSON value as an answer."""
    if kind == "list" and isinstance(raw, list):
        values = [read_element(v.strip()) if isinstance(v, str) else None for v in raw]
        present = [value for value in values if value is not None]
        return tuple(present) if present and len(present) == len(values) else None
    if not isinstance(raw, str) or (kind == "letter" and isinstance(raw, _Literal)):
        return None
    return _read_text(raw.strip().removesuffix(".") if kind == "number" else raw.strip(), kind)


def _read_text(text: str, kind: AnswerKind) -> Value | None:
    if kind == "number":
        return read_number(text)
    return read_letter(text) if kind == "letter" else read_list(text)


def _last_closed(text: str, keys: list[re.Match[str]]) -> _Found | None:
    """Rule 2: the value in the last object that closes, None where none does."""
    decoded: dict[int, _Object | int] = {}
    for key in reversed(keys):
        found = _enclosing(text, key, decoded) or _loosely_closed(text, key)
        if found is not None:
            return found
    return None


def _enclosing(text: str, key: re.Match[str], decoded: dict[int, _Object | int]) -> _Found | None:
    """The value in the outermost JSON object around `key` that has an answer of its own."""
    found, brace = None, key.start()
    for _ in range(_BRACES_PER_KEY):
        brace = text.rfind("{", 0, brace)
        wasted = sum(one for one in decoded.values() if isinstance(one, int))
        if brace < 0 or wasted > _WASTE * len(text):
            break
        if brace not in decoded:
            decoded[brace] = _decode(text, brace)
        one = decoded[brace]
        if isinstance(one, _Object) and one.end > key.end() and "answer" in one.fields:
            found = _Found(one.fields["answer"])
    return found


def _loosely_closed(text: str, key: re.Match[str]) -> _Found | None:
    """The value of an object that closes but is not JSON, up to its next key or its brace."""
    opened = text.rfind("{", 0, key.start())
    closes = text.find("}", key.end())
    if opened < 0 or text.find("}", opened, key.start()) >= 0 or closes < 0:
        return None
    if text.find("{", key.end(), closes) >= 0 and not text.startswith("{", key.end()):
        return _in_braces(text, key, closes)
    value = text[key.end() : closes]
    following = _NEXT_KEY.search(value)
    return _Found(without_marks((value[: following.start()] if following else value).strip()))


def _in_braces(text: str, key: re.Match[str], closes: int) -> _Found | None:
    """As above where a brace opens before one closes: an exponent in braces, or an unclosed one."""
    match = NUMBER.match(text, key.end())
    if match is None or match["braces"] is None or match.end() <= closes:
        return None
    return _Found(match.group()) if text[match.end() :].lstrip().startswith("}") else None


def _read_begun(text: str, keys: list[re.Match[str]], kind: AnswerKind) -> Value | None:
    """Rule 3: the one value that all unclosed objects with a complete value agree on."""
    if text.find("{", 0, keys[-1].start()) < 0:
        return None
    starts = [max(text.rfind("{", 0, key.start()), 0) for key in keys[1:]]
    stops = [*starts, len(text)]
    values = [
        _read_open(text[key.end() : max(key.end(), stop)], kind)
        for key, stop in zip(keys, stops, strict=True)
    ]
    complete = [value for value in values if value is not None]
    return complete[0] if complete and all(v == complete[0] for v in complete) else None


def _read_open(text: str, kind: AnswerKind) -> Value | None:
    """The value at the start of `text` if it is complete though its object never closes."""
    pattern = {"number": NUMBER, "letter": _QUOTED_LETTER, "list": _CLOSED_LIST}[kind]
    start = 1 if kind == "number" and text.startswith('"') else 0
    match = pattern.match(text, start)
    if match is None or not _is_complete(text[match.end() :], match.end()):
        return None
    return _read_text(match[1] if kind == "letter" else match.group(), kind)


def _is_complete(rest: str, length: int) -> bool:
    """Whether a literal of `length` characters is over, given what follows it."""
    if _CONTINUES.match(rest) or rest.strip() == ".":
        return True
    if re.search("[0-9]", rest):
        return False
    return bool(_STOPS.match(rest)) or (length > _RUNAWAY and not _OPERATOR.match(rest))


def _read_bare(text: str, kind: AnswerKind) -> Value | None:
    """Rule 4: a text that is the value and little else."""
    labelled = False
    for _ in range(2):
        label = _LABEL.match(text)
        if label:
            labelled = True
            text = text[label.end() :]
        if labelled and kind == "number":
            text = text.removesuffix(".")
        fence = _FENCE.match(text)
        text = text[fence.end() :].removesuffix("```").strip() if fence else without_marks(text)
    return _read_text(text, kind)
