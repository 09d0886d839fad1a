"""The parser of the `exact` protocol: read the answer from a response, or nothing.

The text is the response without its thinking (`numbench.thinking_text`). The rules are tried in
this order. The first rule that finds an answer object or a value decides, and the value must be of
the kind that the task requires (a list of one number is not a number):

1. The whole text is a JSON object with the key `answer`.
2. The last closed object with that key inside the text, in a code fence or not; its opening brace
   may be missing. The notation of its value may depart from JSON (`-.5`, `−5`, `1.5 × 10^-7`, an
   unquoted letter). There is no answer if the value is unreadable (an earlier object may be a
   draft), if the words just before the object mark it as an example or a draft (`for example`,
   `not`, `instead of`, …: `_NOT_MEANT`), if a later word takes it back (`wait`, `however`,
   `wrong`, …: `_RETRACTION`), or if a later object that never closes has a different value.
3. A truncated object: its value has started, but the object never closes. The value counts if it
   has ended: a string at its closing quote, a list at its closing bracket, and any other number at
   a line break, a `{`, a backtick or `<`, or the next key of the object. The end of the text ends
   nothing: `12`, `12.`, `"12` and `1e5` may all have been cut off. A number whose decimals end in
   at least 64 zeros counts too; what follows must not be an operator. No value counts that is
   followed by a further digit (a letter by another option letter), unless a next key comes first,
   or that is taken back, as in rule 2. If the text has several truncated objects, all values that
   count must be equal.
4. The text is only one number, letter or list, optionally with a label (`Answer:`,
   `The answer is`, `**Final answer:**`), a code fence, quotes or emphasis around it, or, after a
   quoted value or a list, the closing brace of an object whose beginning is missing. If the output
   ended at the token limit, the value must have ended, as in rule 3.

After the first key `answer`, the text ends at an end-of-turn token (`<|im_end|>`, `</s>`, …) or a
line that starts a next question (`Question:`, `User:`): what follows was invented by the model.

A JSON string counts as its content. `null`, booleans, NaN, infinities and objects are not
answers. An object that has the key twice with different values has no answer. `[]` is an
empty list.

Time and memory are linear in the length of the text. Of a text of more than 1,000,000 characters
only the last 1,000,000 are read, and only by rules 2 and 3. A list of more than 10,000 numbers,
and a number outside 10^±999,999, cannot be read.
"""

from __future__ import annotations

import json
import re
from collections import deque
from decimal import Decimal
from typing import NamedTuple

from numbench.scoring.notation import (
    MAX_LIST_LENGTH,
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


class _RawAnswer(NamedTuple):
    """The value under `answer` in a closed object, before it is interpreted."""

    raw: object


MAX_CHARACTERS = 1_000_000
"""The number of characters, from the end of the text, that are read."""

# Limits of the effort for hostile text: `"answer":` keys considered, opening braces tried per key,
# and characters decoded without success, as a multiple of the text's length.
_MAX_KEYS = 32
_MAX_BRACES_PER_KEY = 32
_MAX_WASTED_RATIO = 2
_ENDLESS_ZEROS = "0" * 64

_KEY = re.compile(r'"answer"\s*+:\s*+')
_NEXT_KEY = re.compile(r',\s*+"[^"]*+"\s*+:')
_BEFORE_NEXT_KEY = re.compile(r'\s*+,\s*+"')
_AFTER_ENDED_NUMBER = re.compile(r"\.?+[^\S\n]*+[\n{}`<]")
_OPERATOR = re.compile(r"\s*+[-+*/^%×·⋅÷=.,eExX]")
# A model that continues after its answer may invent the next question and its answer.
_NEXT_TURN = re.compile(
    r"(?=<\|(?:im_end|im_start|eot_id|endoftext|end_of_text)\|>|</s>|<end_of_turn>|\[/?INST\])"
    r"|(?<=\n)(?=[ \t]{0,9}(?:\*\*)?(?:User|Human|Question|Problem|Q)(?:\*\*)?[ \t]?:)"
)
_NOT_MEANT = re.compile(
    r"(?:for example|for instance|\be\.g\.|such as|instead of|rather than|\bnot|\bnever|\bexample"
    r"|\btemplate|\bplaceholder|\bdraft|\battempt|\bwrong|\bnaive)[,:]?\s*\Z",
    re.IGNORECASE,
)
_RETRACTION = re.compile(
    r"\b(?:wait|actually|correction|corrected|mistake|mistaken|error|wrong|incorrect|false|invalid"
    r"|sorry|apologies|oops|hmm+|however|hold on|on second thought|scratch that|never ?mind|ignore"
    r"|disregard|misread|forgot|meant|edit|revised|should be|re-?check|double-check|recompute|redo"
    r"|recalculate|reconsider|(?:not|isn't|can't be) (?:right|quite|correct))\b|\bNo[.,:]",
    re.IGNORECASE,
)
_ANY_DIGIT = re.compile("[0-9]")
_ANY_LETTER = re.compile(r"\b[A-F]\b")
_QUOTED_LETTER = re.compile(r'"\s*+([A-Fa-f])\s*+"')
_CLOSED_LIST = re.compile(r"\[[^\[\]{}]*+\]")
_START_OF_OBJECT = re.compile(r'\{\s*+(?:"|\Z)')
_LABEL_WORDS = (
    r"(?:the\s++)?(?:final\s++|correct\s++)?(?:answer|result)\b(?:\s++is\b)?+\s*+[:=]?+\s*+"
)
_LABEL = re.compile(rf"\*\*{_LABEL_WORDS}\*\*\s*+[:=]?\s*+|{_LABEL_WORDS}", re.IGNORECASE)
_FENCE = re.compile(r"```(?:[A-Za-z]*+[^\S\n]*+\n)?+")
_CLOSING = frozenset("\"'`*_]}")


def _object_from_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    answers = [value for key, value in pairs if key == "answer"]
    if len(answers) > 1 and any(answer != answers[0] for answer in answers):
        values["answer"] = None
    return values


# Numbers keep their notation. The decoder that checks repeated keys is slower.
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str)
_CHECKING_DECODER = json.JSONDecoder(
    parse_float=str, parse_int=str, object_pairs_hook=_object_from_pairs
)


def parse_answer(text: str, kind: AnswerKind, is_cut_off: bool = False) -> ParsedAnswer | None:
    """Return the answer of the given kind in `text` and its rule; None for unparseable text.

    is_cut_off: whether the output ended at the token limit. Never raises; runs in linear time.
    """
    is_whole = len(text) <= MAX_CHARACTERS
    text = text.lstrip() if is_whole else text[-MAX_CHARACTERS:]
    stripped = text.rstrip()
    if is_whole and text.startswith("{") and stripped.endswith("}"):
        may_repeat_key = stripped.count('"answer"') > 1 or "\\" in stripped
        whole = _decode(stripped, 0, _CHECKING_DECODER if may_repeat_key else _DECODER)
        if not isinstance(whole, int) and whole[1] == len(stripped) and "answer" in whole[0]:
            return _with_rule(_read_json_value(whole[0]["answer"], kind), 1)
    text = _without_next_turn(text)
    keys = list(deque(_KEY.finditer(text), _MAX_KEYS))
    if keys:
        last = _read_last_closed_object(text, keys, kind)
        if last is not None:
            return _with_rule(_read_json_value(last.raw, kind), 2)
        return _with_rule(_read_unclosed_objects(text, keys, kind), 3)
    if not is_whole or (is_cut_off and stripped[-1:] not in _CLOSING):
        return None
    return _with_rule(_read_bare_value(stripped, kind), 4)


def _without_next_turn(text: str) -> str:
    """Return `text` up to what a model invented after its answer."""
    if not any(sign in text for sign in ("\n", "<", "INST]")):
        return text
    key = _KEY.search(text)
    turn = _NEXT_TURN.search(text, key.end()) if key else None
    return text[: turn.start()] + "\n" if turn else text


def ends_inside_object(text: str) -> bool:
    """Return whether `text` ends after the start of a JSON object and before its end."""
    start = text.rfind("{")
    return start >= 0 and "}" not in text[start:] and bool(_START_OF_OBJECT.match(text, start))


def _with_rule(value: AnswerValue | None, rule: int) -> ParsedAnswer | None:
    return None if value is None else ParsedAnswer(value, rule)


def _decode(
    text: str, start: int, decoder: json.JSONDecoder = _CHECKING_DECODER
) -> tuple[dict[str, object], int] | int:
    """Decode the JSON object at `start`; return it and the index at which its text ends.

    On failure return the number of characters read. Nesting beyond Python's recursion limit is a
    failure.
    """
    try:
        return decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return error.pos - start
    except RecursionError:
        return len(text) - start


def _read_json_value(raw: object, kind: AnswerKind) -> AnswerValue | None:
    """Return a decoded JSON value as an answer; None if it is not of the kind."""
    if kind == "list" and isinstance(raw, list):
        if len(raw) > MAX_LIST_LENGTH:
            return None
        values = [read_list_element(v.strip()) if isinstance(v, str) else None for v in raw]
        present = [value for value in values if value is not None]
        return tuple(present) if len(present) == len(values) else None
    if not isinstance(raw, str):
        return None
    if kind == "number":
        return read_number(raw.strip().removesuffix("."))
    return _read_text(raw.strip(), kind)


def _read_text(text: str, kind: AnswerKind) -> AnswerValue | None:
    if kind == "number":
        return read_number(text)
    return read_letter(text) if kind == "letter" else read_list(text)


def _read_last_closed_object(
    text: str, keys: list[re.Match[str]], kind: AnswerKind
) -> _RawAnswer | None:
    """Rule 2: return the value in the last closed object; None if no object closes."""
    decoded: dict[int, tuple[dict[str, object], int] | int] = {}
    last_brace = text.rfind("}")
    for index, key in reversed(list(enumerate(keys))):
        if key.end() > last_brace:
            continue
        answer = _read_enclosing_object(text, key, decoded) or _read_malformed_object(text, key)
        if answer is not None:
            value = _read_json_value(answer.raw, kind) if _is_meant(text, key) else None
            if value is not None and all(
                _repeats(text, key, later, value, kind) for later in keys[index + 1 :]
            ):
                return answer
            return _RawAnswer(None)
    return None


def _is_meant(text: str, key: re.Match[str]) -> bool:
    """Return whether the text around a closed object leaves its value the answer."""
    opening = max(text.rfind("{", 0, key.start()), 0)
    after = text[text.find("}", key.end()) + 1 :]
    return not (
        _NOT_MEANT.search(text[max(opening - 60, 0) : opening]) or _RETRACTION.search(after)
    )


def _repeats(
    text: str, key: re.Match[str], later: re.Match[str], value: AnswerValue, kind: AnswerKind
) -> bool:
    """Return whether a later object that never closes has the same value, as far as written."""
    if text.find("{", key.end(), later.start()) < 0:
        # Not an object.
        return True
    unclosed = text[later.end() :].strip()
    if text.startswith(unclosed, key.end()):
        return True
    return _read_unclosed_value(unclosed, kind) == value


def _read_enclosing_object(
    text: str, key: re.Match[str], decoded: dict[int, tuple[dict[str, object], int] | int]
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
        if not isinstance(result, int) and result[1] > key.end() and "answer" in result[0]:
            answer = _RawAnswer(result[0]["answer"])
    return answer


def _read_malformed_object(text: str, key: re.Match[str]) -> _RawAnswer | None:
    """Return the value of a closed object that is not JSON, up to its next key or its brace."""
    opening = max(text.rfind("{", 0, key.start()), 0)
    closing = text.find("}", key.end())
    if text.find("}", opening, key.start()) >= 0 or closing < 0:
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
    starts = [max(text.rfind("{", 0, key.start()), 0) for key in keys[1:]]
    stops = [*starts, len(text)]
    values = [
        _read_unclosed_value(text[key.end() : max(key.end(), stop)], kind)
        for key, stop in zip(keys, stops, strict=True)
    ]
    complete = [value for value in values if value is not None]
    return complete[0] if complete and all(v == complete[0] for v in complete) else None


def _read_unclosed_value(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Return the value at the start of `text` if it has ended (rule 3)."""
    pattern = {"number": NUMBER_LITERAL, "letter": _QUOTED_LETTER, "list": _CLOSED_LIST}[kind]
    is_quoted = kind == "number" and text.startswith('"')
    match = pattern.match(text, is_quoted)
    if match is None:
        return None
    value = match[1] if kind == "letter" else match.group()
    rest = text[match.end() :]
    if is_quoted and (closed := rest.lstrip().startswith('"')):
        rest = rest.lstrip()[1:]
    if kind == "number" and not (closed if is_quoted else _has_ended(rest)):
        if not _has_endless_zeros(match) or _OPERATOR.match(rest):
            return None
        value = value.rstrip("0").removesuffix(".")
    other_value = _ANY_LETTER if kind == "letter" else _ANY_DIGIT
    if other_value.search(rest) and not _BEFORE_NEXT_KEY.match(rest):
        return None
    if _RETRACTION.search(rest):
        return None
    return _read_text(value, kind)


def _has_ended(rest: str) -> bool:
    """Return whether an unquoted number has ended, given the text after it."""
    return bool(_AFTER_ENDED_NUMBER.match(rest) or _BEFORE_NEXT_KEY.match(rest))


def _has_endless_zeros(literal: re.Match[str]) -> bool:
    """Return whether a literal has decimals that end in zeros only, and no exponent."""
    mantissa = literal["plain"] or literal["grouped"]
    return literal.group().endswith(mantissa) and (
        "." in mantissa[: -len(_ENDLESS_ZEROS)] and mantissa.endswith(_ENDLESS_ZEROS)
    )


def _read_bare_value(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Rule 4: return the value of a text that consists of it, a label and markup."""
    labelled = False
    if text.endswith("}") and text.startswith(('"', "[")):
        text = text[:-1].rstrip()
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
