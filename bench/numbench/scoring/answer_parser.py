r"""The reader of the `exact` protocol: the last answer that a response states, or nothing.

The text is the response without its thinking (`numbench.thinking_text`). The ways of reading are
tried in this order; the first that applies decides:

- `json`: the whole text is a JSON object with the key `answer`, the requested format.
- `object`: the last such object inside the text, in a code fence or not. Its value may depart from
  JSON (`-.5`, `−5`, `1.5 × 10^-7`, an unquoted letter), and its opening brace may be missing.
- `unclosed`: an object that never closes, if its value has ended: at a closing quote or bracket, a
  line break, or the next key. The end of the text ends nothing (`12`, `12.` and `"12` may all have
  been cut off), but at least 64 zeros or nines at the end of the decimals determine the number.
- `bare`: the text is only a number, letter or list, with a label (`Answer:`, `The answer is`), a
  code fence or emphasis around it.

The value must be of the kind that the task requires: a list of one number is not a number. If it is
not, or if the text ends inside a later object with another value, there is no answer: the
answers before it are drafts. What follows an end-of-turn token (`<|im_end|>`, `</s>`, …) or a line
that starts another question (`Question:`, `User:`) after the first key was invented by the model.

Time and memory are linear in the length of the text. Of a text of more than 1,000,000 characters
only the last 1,000,000 are read, and only in the second and third way. A list of more than 10,000
numbers, and a number outside 10^±999,999, cannot be read.
"""

from __future__ import annotations

import json
import re
from collections import deque
from decimal import Context, Decimal
from typing import NamedTuple

from numbench.records import ReadingRule
from numbench.scoring.notation import (
    NUMBER_LITERAL,
    AnswerValue,
    read_list,
    read_number,
    read_value,
)
from numbench.tasks.base import AnswerKind


class ParsedAnswer(NamedTuple):
    """An answer and the way it was read."""

    value: AnswerValue
    rule: ReadingRule


MAX_CHARACTERS = 1_000_000
"""The number of characters, from the end of the text, that are read."""

_DECODER = json.JSONDecoder(parse_float=str, parse_int=str)
_KEY = '"answer"'
_ANSWER = re.compile(
    rf"{_KEY}\s*+:\s*+"
    r'(?:"(?P<string>[^"\n]*+)"|(?P<list>\[[^\[\]{}]*+\])'
    r'|(?P<plain>(?:[^{}"\[\]\n`<,]++|\{[^{}"\n]*+\}|,(?!\s*+"))++)(?=[}\n`<]|,\s*+"))'
)
# More of a value that a tag, a line end or a backtick interrupts.
_CONTINUES = re.compile(
    r"<(?:su[bp]\b|(?![/|a-z]))"
    r"|(?:\s|`|</?[a-z]\w*\s*+/?>|<\|\w+\|>)*+(?!,?\s*+\"|//|[{}])[^{}]*+\}",
    re.IGNORECASE,
)
# Another value after a quoted one or a list, which is no key.
_FURTHER = re.compile(r"\s*+(?:(?:,|or\b|and\b)?+\s*+(?:\"[^\"\n]*+\"(?!\s*+:)|\[))")
# Not the start of a placeholder or of a schema.
_VALUE_START = re.compile(rf'{_KEY}\s*+:\s*+(?![<{{])"?')
_ENDLESS = ("0" * 64, "9" * 64)
_LONG_RUNS = tuple(("0" * length, "9" * length) for length in (8192, 512))
_OPERATOR = re.compile(r"\s*+[-+*/^%×·⋅÷=.,eExX]")
# A model that continues after its answer may invent the next question and its answer.
_NEXT_TURN = re.compile(
    r"<\|(?:im_end|im_start|eot_id|endoftext|end_of_text)\|>|</s>|<end_of_turn>|\[/?INST\]"
    r"|(?<=[\n}])[ \t]{0,9}(?:\*\*|#{1,6}[ \t]+)?(?:User|Human|Question|Problem|Q)"
    r"(?:[ \t]*[0-9]{1,3})?(?:\*\*)?[ \t]?:"
)
_LABEL = re.compile(
    r"[\s*_#]*+(?:the\s++)?+(?:final\s++|correct\s++)?+(?:answer|result)\b[\s*_]*+"
    r"(?:is\b|[:=])?+[\s*_]*+",
    re.IGNORECASE,
)
_FENCE = re.compile(r"```[A-Za-z]*+\s")
_MARKS = "*_`\"' \t\n"
_CLOSING = frozenset("\"'`*_]}")


def parse_answer(text: str, kind: AnswerKind, is_cut_off: bool = False) -> ParsedAnswer | None:
    """Return the answer of the given kind in `text`; None if it states none.

    is_cut_off: whether the output ended at the token limit. Never raises; runs in linear time.
    """
    if len(text) > MAX_CHARACTERS:
        return _read_object(text[-MAX_CHARACTERS:], kind)
    stripped = text.strip()
    if stripped.startswith("{") and stripped.endswith("}"):
        try:
            whole = _DECODER.decode(stripped)
        except (ValueError, RecursionError):
            whole = {}
        if "answer" in whole:
            return _parsed(_read_json(whole["answer"], kind), "json")
    if _KEY in text:
        return _read_object(text, kind)
    return None if is_cut_off and stripped[-1:] not in _CLOSING else _read_bare(stripped, kind)


def shorten_endless(text: str) -> str:
    """Return a text that ends in many zeros or nines, such as a number that never ends, with fewer.

    Reading it is faster, and gives the same.
    """
    for runs in _LONG_RUNS:
        while text.endswith(runs):
            text = text[: -len(runs[0]) // 2]
    return text


def ends_inside_object(text: str) -> bool:
    """Return whether `text` ends after the start of a JSON object and before its end."""
    start = text.rfind("{")
    return start >= 0 and "}" not in text[start:] and text[start + 1 :].lstrip()[:1] in ('"', "")


def _parsed(value: AnswerValue | None, rule: ReadingRule) -> ParsedAnswer | None:
    return None if value is None else ParsedAnswer(value, rule)


def _read_json(raw: object, kind: AnswerKind) -> AnswerValue | None:
    """Return a decoded JSON value as an answer; None if it is not of the kind."""
    if kind == "list" and isinstance(raw, list):
        if len(raw) == 1 and isinstance(raw[0], list):
            raw = raw[0]
        return read_list(f"[{', '.join(map(str, raw))}]")
    # JSON reads the `\\t` of a LaTeX `\\times` as a tab, and the `\\f` of `\\frac` as a form feed.
    text = raw.replace("\times", r"\times") if isinstance(raw, str) else ""
    text = text.replace("\frac", r"\frac").strip()
    return read_value(text, kind)


def _read_object(text: str, kind: AnswerKind) -> ParsedAnswer | None:
    """Return the last answer in an object of the text."""
    may_continue = any(sign in text for sign in ("\n", "}", "<", "INST]"))
    if may_continue and (turn := _NEXT_TURN.search(text, text.find(_KEY))):
        text = text[: turn.start()] + "\n"
    ended = next(iter(deque(_ANSWER.finditer(text), 1)), None)
    start = ended.end() if ended else 0
    key = next(iter(deque(_VALUE_START.finditer(text, start), 1)), None)
    if last := key or ended:
        value = _decoded_answer(text, last.start())
        if value is not None:
            return _parsed(_read_json(value, kind), "object")
    if ended is None:
        value = _read_endless(text, key.end()) if key and kind == "number" else None
        return _parsed(value, "unclosed")
    raw = ended[ended.lastgroup or 0]
    continues = _CONTINUES if ended.lastgroup == "plain" else _FURTHER
    if continues.match(text, ended.end()):
        return None
    if key and not raw.startswith(text[key.end() :].rstrip()):
        return None
    before, _, comment = raw.partition(" //")
    raw = before if comment.lstrip()[:1].isalpha() else raw
    return _parsed(
        read_value(raw.strip("' \t\r\n").removesuffix(","), kind),
        "object" if "}" in text[ended.end() :] else "unclosed",
    )


def _decoded_answer(text: str, key: int) -> object:
    """Return the value in the JSON object whose last key is at `key`; None if it is not JSON."""
    try:
        found, end = _DECODER.raw_decode(text, text.rfind("{", 0, key))
    except (ValueError, RecursionError, IndexError):
        return None
    return found.get("answer") if isinstance(found, dict) and end > key else None


def _read_endless(text: str, start: int) -> Decimal | None:
    """Return the value of a number whose decimals end in at least 64 zeros or nines."""
    literal = NUMBER_LITERAL.match(text, start)
    digits = literal["plain"] if literal else None
    if literal is None or digits is None or not literal.group().endswith(digits):
        return None
    if not digits.endswith(_ENDLESS) or "." not in digits[:-64]:
        return None
    if _OPERATOR.match(text, literal.end()):
        return None
    run = digits[-64:]
    value = read_number(f"{literal['sign'] or ''}{digits.rstrip(run[0])}{run}")
    # Rounding inside the run carries the nines.
    return value and Context(len(value.as_tuple().digits) - 32).plus(value)


def _read_bare(text: str, kind: AnswerKind) -> ParsedAnswer | None:
    """Return the value of a text that consists of it, a label and markup."""
    if text.endswith("}") and text.startswith(('"', "[")):
        text = text[:-1]
    label = _LABEL.match(text)
    if kind not in ("letter", "list") and label is None and text.endswith("."):
        return None
    value = text[label.end() :] if label else text
    if fence := _FENCE.match(value):
        value = value[fence.end() :]
    return _parsed(read_value(value.strip(_MARKS), kind), "bare")
