r"""Read a closed answer object: rule 2 of the parser (`answer_parser`), and the objects of rule 1.

Rule 2 reads the last closed object with the key `answer`; its opening brace may be missing. The
notation of its value may depart from JSON (`-.5`, `−5`, `1.5 × 10^-7`, an unquoted letter).
Examples and formats (`Format: {"answer": 0}`, `{"answer": <number>}`) are skipped. There is no
answer if the value is unreadable (an earlier object may be a draft), if another key contradicts it
(`object_keys`), if unknown words introduce the object (`answer_context`), if the text after it does
not leave it the answer (`following_text`), or if a later object that never closes has a different
value.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import NamedTuple

from numbench.scoring.answer_context import (
    are_known_numbers,
    clause_before,
    is_example,
    is_object_attached,
    is_placeholder,
    is_uncertain,
    may_introduce_answer,
)
from numbench.scoring.conclusions import is_after_other_conclusion
from numbench.scoring.following_text import contradicts
from numbench.scoring.notation import (
    MAX_LIST_LENGTH,
    NUMBER_LITERAL,
    SIGNS,
    AnswerValue,
    has_ambiguous_commas,
    read_list_element,
    read_number,
    read_text,
    strip_markup,
)
from numbench.scoring.object_keys import (
    is_answer_key,
    is_neutral,
    is_question_key,
    is_step,
    is_text_key,
)
from numbench.scoring.question_terms import names_result, names_step
from numbench.scoring.truncated_objects import (
    KEY,
    NEXT_KEY,
    AnswerText,
    has_neutral_keys,
    object_start,
    read_unclosed_value,
)
from numbench.tasks.base import AnswerKind

# Limits of the effort for hostile text: `"answer":` keys considered, opening braces tried per key,
# and characters decoded without success, as a multiple of the text's length.
MAX_KEYS = 32
_MAX_BRACES_PER_KEY = 32
_MAX_WASTED_RATIO = 2

_AFTER_ANOTHER_OBJECT = re.compile(r"\}\s*(?:,|and|&)\s*\Z")

Decoded = tuple[dict[str, object], int] | int


class ClosedAnswer(NamedTuple):
    """The answer of a closed object; None if the object has none."""

    value: AnswerValue | None


class _Object(NamedTuple):
    """A closed object `text[start:end]`, and the value under `answer` before it is read.

    decoded: the object if it is JSON. outer: the outermost JSON object around it.
    """

    raw: object
    start: int
    end: int
    decoded: dict[str, object] | None = None
    outer: dict[str, object] | None = None


def _object_from_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    answers = [value for key, value in pairs if key == "answer"]
    if len(answers) > 1 and any(answer != answers[0] for answer in answers):
        values["answer"] = None
    return values


# Numbers keep their notation. The decoder that checks repeated keys is slower.
DECODER = json.JSONDecoder(parse_float=str, parse_int=str)
CHECKING_DECODER = json.JSONDecoder(
    parse_float=str, parse_int=str, object_pairs_hook=_object_from_pairs
)


def decode(text: str, start: int, decoder: json.JSONDecoder = CHECKING_DECODER) -> Decoded:
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


def read_json_object(source: AnswerText, decoded: dict[str, object]) -> AnswerValue | None:
    """Return the answer of the decoded object that is the text; None if it has none."""
    text, kind, *_ = source
    value = _read_json_value(decoded["answer"], kind)
    if kind == "list" and value is not None and (key := KEY.search(text)):
        end = text.find("]", key.end()) + 1
        if has_ambiguous_commas(text[key.end() : end]):
            return None
    if len(decoded) > 1 and value is not None and not _other_keys_agree(source, decoded, value):
        return None
    return value


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
    return read_text(raw.strip(), kind)


def _other_keys_agree(source: AnswerText, decoded: dict[str, object], value: AnswerValue) -> bool:
    """Return whether the other keys of an object leave its value the answer."""
    is_after = False
    for key, other in decoded.items():
        if key == "answer":
            is_after = True
        elif is_answer_key(key) or names_result(key.replace("_", " "), source.operator):
            is_settled = other is None or other is True or other == ""
            if not is_settled and _read_json_value(other, source.kind) != value:
                return False
        elif is_text_key(key):
            if is_after and contradicts(_joined(other), value, source.kind, source.prompt):
                return False
        elif is_question_key(key):
            words = _joined(other)
            if is_uncertain(words) or not are_known_numbers(words, value, source.prompt):
                return False
        elif not (is_neutral(key, other) or _is_operand(other, source.prompt)):
            is_other = names_step(key.replace("_", " "))
            if not (is_other or (not is_after and is_step(key, other))):
                return False
    return True


def _is_operand(value: object, prompt: str) -> bool:
    """Return whether a decoded value is a number of the question."""
    numbers = (literal.group().lstrip(SIGNS) for literal in NUMBER_LITERAL.finditer(prompt))
    return isinstance(value, str) and value.lstrip(SIGNS) in numbers


def _joined(value: object) -> str:
    """Return the lines of a JSON string or list."""
    parts = value if isinstance(value, list) else [value]
    return "\n".join(part for part in parts if isinstance(part, str))


def read_closed_object(source: AnswerText, keys: list[re.Match[str]]) -> ClosedAnswer | None:
    """Rule 2: return the answer of the last closed object; None if no object closes."""
    text = source.text
    decoded: dict[int, Decoded] = {}
    examples: list[_Object] = []
    last_brace = text.rfind("}")
    for index, key in reversed(list(enumerate(keys))):
        if key.end() > last_brace:
            continue
        found = _read_enclosing_object(text, key, decoded) or _read_malformed_object(text, key)
        if found is None:
            continue
        if is_example(text, found.start) or is_placeholder(text[key.end() : found.end]):
            examples.insert(0, found)
            continue
        value = _read_object(source, key, found)
        if value is None or not _is_introduced(source, found, value):
            return ClosedAnswer(None)
        unclosed = _unclosed_keys(keys[index + 1 :], found, examples)
        is_kept = all(_repeats(source, key, later, value) for later in unclosed)
        rest = _text_after(text, found, unclosed, examples)
        is_answer = is_kept and not contradicts(rest, value, source.kind, source.prompt)
        return ClosedAnswer(value if is_answer else None)
    return ClosedAnswer(None) if examples else None


def _read_enclosing_object(
    text: str, key: re.Match[str], decoded: dict[int, Decoded]
) -> _Object | None:
    """Return the outermost JSON object around `key` that has the key itself.

    decoded: results of `decode` by start index, shared by all keys of the text.
    """
    found, outer, brace = None, None, key.start()
    for _ in range(_MAX_BRACES_PER_KEY):
        brace = text.rfind("{", 0, brace)
        wasted = sum(result for result in decoded.values() if isinstance(result, int))
        if brace < 0 or wasted > _MAX_WASTED_RATIO * len(text):
            break
        if brace not in decoded:
            decoded[brace] = decode(text, brace)
        result = decoded[brace]
        if not isinstance(result, int) and result[1] > key.end():
            outer = result[0]
            if "answer" in outer:
                found = _Object(outer["answer"], brace, result[1], outer)
    return found and found._replace(outer=outer)


def _read_malformed_object(text: str, key: re.Match[str]) -> _Object | None:
    """Return a closed object that is not JSON; its value ends at its next key or its brace."""
    opening = max(text.rfind("{", 0, key.start()), 0)
    closing = text.find("}", key.end())
    if text.find("}", opening, key.start()) >= 0 or closing < 0:
        return None
    if text.find("{", key.end(), closing) >= 0 and not text.startswith("{", key.end()):
        return _read_braced_exponent(text, key, closing)
    value = text[key.end() : closing]
    next_key = NEXT_KEY.search(value)
    raw = strip_markup((value[: next_key.start()] if next_key else value).strip())
    return _Object(raw, object_start(text, key), closing + 1)


def _read_braced_exponent(text: str, key: re.Match[str], closing: int) -> _Object | None:
    """Return an object with an exponent in braces: `10^{-7}` before the object's own brace."""
    match = NUMBER_LITERAL.match(text, key.end())
    if match is None or match["braces"] is None or match.end() <= closing:
        return None
    end = text.find("}", match.end()) + 1
    is_last = end and not text[match.end() : end - 1].strip()
    return _Object(match.group(), object_start(text, key), end) if is_last else None


def _read_object(source: AnswerText, key: re.Match[str], found: _Object) -> AnswerValue | None:
    """Return the answer of a closed object by itself."""
    text, kind, *_ = source
    if found.decoded is not None:
        own = source._replace(text=text[key.start() : found.end])
        value = read_json_object(own, found.decoded)
        is_nested = value is not None and "answer" not in (found.outer or {})
        return None if is_nested and _has_other_answer(found.outer, found.raw) else value
    value = _read_json_value(found.raw, kind)
    rest = text[key.end() : found.end]
    return value if value is not None and has_neutral_keys(rest, value, source) else None


def _has_other_answer(outer: dict[str, object] | None, raw: object) -> bool:
    """Return whether a nested object in `outer` has another answer than `raw`."""
    stack: list[object] = [outer]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            if "answer" in part and part["answer"] != raw:
                return True
            stack += part.values()
        elif isinstance(part, list):
            stack += part
    return False


def _is_introduced(source: AnswerText, found: _Object, value: AnswerValue) -> bool:
    """Return whether the text next to a closed object leaves its value the answer."""
    text = source.text
    is_one_of_several = _AFTER_ANOTHER_OBJECT.search(text, max(found.start - 20, 0), found.start)
    clause = clause_before(text, found.start, value, source.prompt, source.operator)
    if clause is None or not may_introduce_answer(clause):
        return False
    if isinstance(value, Decimal) and is_after_other_conclusion(clause, value, source.prompt):
        return False
    return not is_one_of_several and not is_object_attached(text, found.start, found.end)


def _unclosed_keys(
    later_keys: list[re.Match[str]], found: _Object, examples: list[_Object]
) -> list[re.Match[str]]:
    """Return the keys after a closed object that are in no closed object."""
    return [
        key
        for key in later_keys
        if key.start() >= found.end
        and not any(example.start <= key.start() < example.end for example in examples)
    ]


def _text_after(
    text: str, found: _Object, unclosed: list[re.Match[str]], examples: list[_Object]
) -> str:
    """Return the text after a closed object without examples, up to an object that never closes."""
    end = text.find("{", found.end, unclosed[0].start()) if unclosed else -1
    rest, start = "", found.end
    for example in examples:
        rest += text[start : example.start] + "\n"
        start = example.end
    return rest + text[start : end if end >= 0 else len(text)]


def _repeats(
    source: AnswerText, key: re.Match[str], later: re.Match[str], value: AnswerValue
) -> bool:
    """Return whether a later object that never closes has the same value, as far as written."""
    text = source.text
    if text.find("{", key.end(), later.start()) < 0:
        # Not an object.
        return True
    unclosed = text[later.end() :].strip()
    if text.startswith(unclosed, key.end()):
        return True
    return read_unclosed_value(source._replace(text=unclosed)) == value
