r"""Read an answer object that never closes: rule 3 of the parser (`answer_parser`).

The value of a truncated object counts if it has ended: a string at its closing quote, a list at its
closing bracket, and any other number at a line break, a `{`, a backtick or `<`, or the next key of
the object. The end of the text ends nothing: `12`, `12.`, `"12` and `1e5` may all have been cut
off. A number whose decimals end in at least 64 zeros counts too; what follows must not be an
operator. No value counts that is followed by a further digit (a letter by another option letter),
unless a next key comes first. If the text has several truncated objects, all values that count must
be equal.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from numbench.scoring.answer_context import introduces_answer, is_example, is_object_attached
from numbench.scoring.following_text import confirms, contradicts
from numbench.scoring.notation import NUMBER_LITERAL, AnswerValue, read_text, with_options
from numbench.scoring.object_keys import is_neutral_name, is_text_key
from numbench.tasks.base import AnswerKind

KEY = re.compile(r'"answer"\s*+:\s*+')
NEXT_KEY = re.compile(r',\s*+"([^"]*+)"\s*+:')
_BEFORE_NEXT_KEY = re.compile(r'\s*+,\s*+"')
_AFTER_ENDED_NUMBER = re.compile(r"\.?+[^\S\n]*+[\n{}`<]")
_OPERATOR = re.compile(r"\s*+[-+*/^%×·⋅÷=.,eExX]")
_ANY_DIGIT = re.compile("[0-9]")
_ANY_LETTER = re.compile(r"\b[A-F]\b")
_QUOTED_LETTER = re.compile(r'"\s*+([A-Za-z])\s*+"')
_CLOSED_LIST = re.compile(r"\[[^\[\]{}]*+\]")
_ENDLESS_ZEROS = "0" * 64


class AnswerText(NamedTuple):
    """A text, the kind of the answer in it, and the question with its operator."""

    text: str
    kind: AnswerKind
    prompt: str = ""
    operator: str = ""


def object_start(text: str, key: re.Match[str]) -> int:
    """Return the index of the brace before a key, or else of the key."""
    brace = text.rfind("{", 0, key.start())
    return brace if brace >= 0 else key.start()


def has_neutral_keys(rest: str, value: AnswerValue, source: AnswerText) -> bool:
    """Return whether the keys after the value in an object that is not JSON leave it the answer."""
    keys = list(NEXT_KEY.finditer(rest))
    texts = [key.start() for key in keys if is_text_key(key[1])]
    explanation = rest[texts[0] :] if texts else ""
    return all(is_neutral_name(key[1]) for key in keys) and not contradicts(
        explanation, value, source.kind, source.prompt
    )


def read_unclosed_objects(source: AnswerText, keys: list[re.Match[str]]) -> AnswerValue | None:
    """Rule 3: return the value that all truncated objects with a complete value share."""
    text = source.text
    starts = [object_start(text, key) for key in keys]
    complete = []
    for index, key in enumerate(keys):
        stop = starts[index + 1] if index + 1 < len(keys) else len(text)
        start = starts[index]
        # One object may have the key twice.
        if stop < key.end():
            return None
        value = read_unclosed_value(source._replace(text=text[key.end() : stop]))
        if value is None or is_example(text, start):
            continue
        if not introduces_answer(text, start, value, source.prompt, source.operator):
            return None
        complete.append(value)
    return complete[0] if complete and all(v == complete[0] for v in complete) else None


def read_unclosed_value(source: AnswerText) -> AnswerValue | None:
    """Return the value at the start of the text if it has ended (rule 3)."""
    text, kind, prompt, _ = source
    pattern = {"number": NUMBER_LITERAL, "letter": _QUOTED_LETTER, "list": _CLOSED_LIST}[kind]
    is_quoted = kind == "number" and text.startswith('"')
    match = pattern.match(text, is_quoted)
    if match is None:
        return None
    literal = match[1] if kind == "letter" else match.group()
    rest = text[match.end() :]
    if is_quoted and (is_closed := rest.lstrip().startswith('"')):
        rest = rest.lstrip()[1:]
    is_endless = kind == "number" and not (is_closed if is_quoted else _has_ended(rest))
    if is_endless:
        if not _has_endless_zeros(match) or _OPERATOR.match(rest):
            return None
        literal = literal.rstrip("0").removesuffix(".")
    has_next_key = bool(_BEFORE_NEXT_KEY.match(rest))
    other_value = with_options(_ANY_LETTER, prompt) if kind == "letter" else _ANY_DIGIT
    value = read_text(literal, kind)
    if value is None or (other_value.search(rest) and not has_next_key):
        return None
    if is_object_attached(f" {rest.lstrip()}", 0, 0):
        return None
    if has_next_key:
        return value if has_neutral_keys(rest, value, source) else None
    # What follows endless zeros is no sentence.
    is_kept = confirms(rest, value, kind, prompt) or is_endless
    return value if is_kept and not contradicts(rest, value, kind, prompt) else None


def _has_ended(rest: str) -> bool:
    """Return whether an unquoted number has ended, given the text after it."""
    return bool(_AFTER_ENDED_NUMBER.match(rest) or _BEFORE_NEXT_KEY.match(rest))


def _has_endless_zeros(literal: re.Match[str]) -> bool:
    """Return whether a literal has decimals that end in zeros only, and no exponent."""
    mantissa = literal["plain"] or literal["grouped"]
    return literal.group().endswith(mantissa) and (
        "." in mantissa[: -len(_ENDLESS_ZEROS)] and mantissa.endswith(_ENDLESS_ZEROS)
    )
