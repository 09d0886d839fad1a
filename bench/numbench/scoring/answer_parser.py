"""The parser of the `exact` protocol: read the answer from a response, or nothing.

The rules are tried in this order. The first rule that finds an answer object or a value decides,
and the value must be of the kind that the task requires (a list of one number is not a number):

1. The whole text is a JSON object with the key `answer`.
2. The last closed object with that key inside the text, in a code fence or not. The notation of
   its value may depart from JSON (`-.5`, `−5`, `1.5 × 10^-7`, an unquoted letter). If the value
   cannot be read, the text has no answer: an earlier object may be a draft.
3. A truncated object: its value has started, but the object never closes. A number counts if its
   literal is complete: it is followed by the end of the text, a line break, a new `{`, a backtick
   or `<`, or the next key of the object. A runaway literal (more than 64 characters) may be
   followed by anything except an operator. If the text ends right after the decimal point
   (`12.`), the number before it counts. `-`, `1e` and `1,` are not complete, and neither is a
   literal that is followed by any further digit, unless a next key comes first.
   A letter counts if its quotes are closed, a list if its bracket is closed. If the text has
   several truncated objects, all complete values must be equal.
4. The text is only one number, letter or list, optionally with a label (`Answer:`,
   `The answer is`, `**Final answer:**`), a code fence, quotes or emphasis around it.

A JSON string counts as its content. `null`, booleans, NaN, infinities and objects are not
answers. If one object has the key twice with different values, there is no answer.
"""

from __future__ import annotations

import json
import re
from collections import deque
from decimal import Decimal
from typing import NamedTuple

from numbench.scoring.notation import (
    NUMBER_LITERAL,
    read_letter,
    read_list,
    read_list_element,
    read_number,
    strip_markup,
)
from numbench.tasks.base import AnswerKind

AnswerValue = Decimal | str | tuple[Decimal, ...]


class ParsedAnswer(NamedTuple):
    """An answer and the number of the rule that matched."""

    value: AnswerValue
    rule: int


class _NumberLiteral(str):
    """A JSON number in its original notation."""


class _JsonObject(NamedTuple):
    """A decoded JSON object and the index at which its text ends."""

    fields: dict[str, object]
    end: int


class _RawAnswer(NamedTuple):
    """The value under `answer` in a closed object, before it is interpreted."""

    raw: object


# Limits of the effort for hostile text: `"answer":` keys considered, opening braces tried per key,
# and characters decoded without success, as a multiple of the text's length.
_MAX_KEYS = 32
_MAX_BRACES_PER_KEY = 32
_MAX_WASTED_RATIO = 2
_RUNAWAY_LENGTH = 64

_KEY = re.compile(r'"answer"\s*+:\s*+')
_NEXT_KEY = re.compile(r',\s*+"[^"]*+"\s*+:')
_BEFORE_NEXT_KEY = re.compile(r'"?\s*+,\s*+"')
_AFTER_COMPLETE_LITERAL = re.compile(r'"?[^\S\n]*+(?:[\n{`<]|$)')
_OPERATOR = re.compile(r'"?\s*+[-+*/^%×·⋅÷=.,eExX]')
_QUOTED_LETTER = re.compile(r'"\s*+([A-Fa-f])\s*+"')
_CLOSED_LIST = re.compile(r"\[[^\[\]{}]*+\]")
_LABEL_WORDS = (
    r"(?:the\s++)?(?:final\s++|correct\s++)?(?:answer|result)\b(?:\s++is\b)?+\s*+[:=]?+\s*+"
)
_LABEL = re.compile(rf"\*\*{_LABEL_WORDS}\*\*\s*+[:=]?\s*+|{_LABEL_WORDS}", re.IGNORECASE)
_FENCE = re.compile(r"```(?:[A-Za-z]*+[^\S\n]*+\n)?+")


def _object_from_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    answers = [value for key, value in pairs if key == "answer"]
    if len(answers) > 1 and any(answer != answers[0] for answer in answers):
        values["answer"] = None
    return values


_JSON_DECODER = json.JSONDecoder(
    parse_float=_NumberLiteral,
    parse_int=_NumberLiteral,
    object_pairs_hook=_object_from_pairs,
)


def parse_answer(text: str, kind: AnswerKind) -> ParsedAnswer | None:
    """Return the answer of the given kind in `text` and its rule; None for unparseable text.

    Never raises; runs in linear time.
    """
    text = text.strip()
    if text.startswith("{") and text.endswith("}"):
        whole = _decode_whole(text)
        if whole is not None:
            return _with_rule(_read_json_value(whole.raw, kind), 1)
    keys = list(deque(_KEY.finditer(text), _MAX_KEYS))
    if keys:
        last = _read_last_closed_object(text, keys)
        if last is not None:
            return _with_rule(_read_json_value(last.raw, kind), 2)
        return _with_rule(_read_unclosed_objects(text, keys, kind), 3)
    return _with_rule(_read_bare_value(text, kind), 4)


def _with_rule(value: AnswerValue | None, rule: int) -> ParsedAnswer | None:
    return None if value is None else ParsedAnswer(value, rule)


def _decode_whole(text: str) -> _RawAnswer | None:
    decoded = _decode(text, 0)
    if isinstance(decoded, int) or decoded.end != len(text) or "answer" not in decoded.fields:
        return None
    return _RawAnswer(decoded.fields["answer"])


def _decode(text: str, start: int) -> _JsonObject | int:
    """Decode the JSON object at `start`; on failure return the number of characters read.

    Nesting beyond Python's recursion limit is a failure.
    """
    try:
        value, end = _JSON_DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return error.pos - start
    except RecursionError:
        return len(text) - start
    return _JsonObject(value, end)


def _read_json_value(raw: object, kind: AnswerKind) -> AnswerValue | None:
    """Return a decoded JSON value as an answer; None if it is not of the kind."""
    if kind == "list" and isinstance(raw, list):
        values = [read_list_element(v.strip()) if isinstance(v, str) else None for v in raw]
        present = [value for value in values if value is not None]
        return tuple(present) if present and len(present) == len(values) else None
    if not isinstance(raw, str) or (kind == "letter" and isinstance(raw, _NumberLiteral)):
        return None
    return _read_text(raw.strip().removesuffix(".") if kind == "number" else raw.strip(), kind)


def _read_text(text: str, kind: AnswerKind) -> AnswerValue | None:
    if kind == "number":
        return read_number(text)
    return read_letter(text) if kind == "letter" else read_list(text)


def _read_last_closed_object(text: str, keys: list[re.Match[str]]) -> _RawAnswer | None:
    """Rule 2: return the value in the last closed object; None if no object closes."""
    decoded: dict[int, _JsonObject | int] = {}
    for key in reversed(keys):
        answer = _read_enclosing_object(text, key, decoded) or _read_malformed_object(text, key)
        if answer is not None:
            return answer
    return None


def _read_enclosing_object(
    text: str, key: re.Match[str], decoded: dict[int, _JsonObject | int]
) -> _RawAnswer | None:
    """Return the value in the outermost JSON object around `key` that has the key itself.

    decoded: results of `_decode` by start index, shared by all keys of the text.
    """
    answer, brace = None, key.start()
    for _ in range(_MAX_BRACES_PER_KEY):
        brace = text.rfind("{", 0, brace)
        wasted = sum(result for result in decoded.values() if isinstance(result, int))
        if brace < 0 or wasted > _MAX_WASTED_RATIO * len(text):
            break
        if brace not in decoded:
            decoded[brace] = _decode(text, brace)
        result = decoded[brace]
        if isinstance(result, _JsonObject) and result.end > key.end() and "answer" in result.fields:
            answer = _RawAnswer(result.fields["answer"])
    return answer


def _read_malformed_object(text: str, key: re.Match[str]) -> _RawAnswer | None:
    """Return the value of a closed object that is not JSON, up to its next key or its brace."""
    opening = text.rfind("{", 0, key.start())
    closing = text.find("}", key.end())
    if opening < 0 or text.find("}", opening, key.start()) >= 0 or closing < 0:
        return None
    if text.find("{", key.end(), closing) >= 0 and not text.startswith("{", key.end()):
        return _read_braced_exponent(text, key, closing)
    value = text[key.end() : closing]
    next_key = _NEXT_KEY.search(value)
    return _RawAnswer(strip_markup((value[: next_key.start()] if next_key else value).strip()))


def _read_braced_exponent(text: str, key: re.Match[str], closing: int) -> _RawAnswer | None:
    """Return a number with an exponent in braces: `10^{-7}` before the object's own brace."""
    match = NUMBER_LITERAL.match(text, key.end())
    if match is None or match["braces"] is None or match.end() <= closing:
        return None
    return _RawAnswer(match.group()) if text[match.end() :].lstrip().startswith("}") else None


def _read_unclosed_objects(
    text: str, keys: list[re.Match[str]], kind: AnswerKind
) -> AnswerValue | None:
    """Rule 3: return the value that all truncated objects with a complete value share."""
    if text.find("{", 0, keys[-1].start()) < 0:
        return None
    starts = [max(text.rfind("{", 0, key.start()), 0) for key in keys[1:]]
    stops = [*starts, len(text)]
    values = [
        _read_unclosed_value(text[key.end() : max(key.end(), stop)], kind)
        for key, stop in zip(keys, stops, strict=True)
    ]
    complete = [value for value in values if value is not None]
    return complete[0] if complete and all(v == complete[0] for v in complete) else None


def _read_unclosed_value(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Return the value at the start of `text` if its literal is complete."""
    pattern = {"number": NUMBER_LITERAL, "letter": _QUOTED_LETTER, "list": _CLOSED_LIST}[kind]
    start = 1 if kind == "number" and text.startswith('"') else 0
    match = pattern.match(text, start)
    if match is None or not _is_complete(text[match.end() :], match.end()):
        return None
    return _read_text(match[1] if kind == "letter" else match.group(), kind)


def _is_complete(rest: str, length: int) -> bool:
    """Return whether a literal of `length` characters is complete, given the text after it."""
    if _BEFORE_NEXT_KEY.match(rest) or rest.strip() == ".":
        return True
    if re.search("[0-9]", rest):
        return False
    return bool(_AFTER_COMPLETE_LITERAL.match(rest)) or (
        length > _RUNAWAY_LENGTH and not _OPERATOR.match(rest)
    )


def _read_bare_value(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Rule 4: return the value of a text that consists of it, a label and markup."""
    labelled = False
    for _ in range(2):
        label = _LABEL.match(text)
        if label:
            labelled = True
            text = text[label.end() :]
        if labelled and kind == "number":
            text = text.removesuffix(".")
        fence = _FENCE.match(text)
        text = text[fence.end() :].removesuffix("```").strip() if fence else strip_markup(text)
    return _read_text(text, kind)
