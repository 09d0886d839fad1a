"""The parser of the `exact` protocol: read the answer from a response, or nothing.

The text is the response without its thinking (`numbench.thinking_text`). The rules are tried in
this order. The first rule that finds an answer object or a value decides, and the value must be of
the kind that the task requires (a list of one number is not a number):

1. The whole text is a JSON object with the key `answer`.
2. The last closed object with that key inside the text, in a code fence or not (`answer_objects`).
3. A truncated object: its value has started, but the object never closes (`truncated_objects`).
4. The text is only one number, letter or list, optionally with a label (`Answer:`,
   `The answer is`, `**Final answer:**`), a code fence, quotes or emphasis around it, or, after a
   quoted value or a list, the closing brace of an object whose beginning is missing. If the output
   ended at the token limit, the value must have ended, as in rule 3.

An object does not count if another key contradicts it (`object_keys`: `final_answer`, `unit`), or
if the text around it does: it is an example, denied, taken back or followed by another value
(`answer_context`, `following_text`). Then the response is unreadable: the parser does not guess.

If the text repeats the question, the answer follows its question. After the first key `answer`, the
text ends at an end-of-turn token (`<|im_end|>`, `</s>`, …) or a line that starts a next question
(`Question:`, `User:`): what follows was invented by the model. Such a text is unreadable if it
starts with another question.

A JSON string counts as its content. `null`, booleans, NaN, infinities and objects are not
answers. An object that has the key twice with different values has no answer. `[]` is an empty
list. A list has no answer if its commas may be part of its numbers (`[1,234, 5]`).

Time and memory are linear in the length of the text. Of a text of more than 1,000,000 characters
only the last 1,000,000 are read, and only by rules 2 and 3. A list of more than 10,000 numbers,
and a number outside 10^±999,999, cannot be read.
"""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple

from numbench.scoring.answer_objects import (
    CHECKING_DECODER,
    DECODER,
    MAX_KEYS,
    decode,
    read_closed_object,
    read_json_object,
)
from numbench.scoring.notation import AnswerValue, read_number, read_text, strip_markup
from numbench.scoring.truncated_objects import KEY, AnswerText, read_unclosed_objects
from numbench.tasks.base import AnswerKind


class ParsedAnswer(NamedTuple):
    """An answer and the number of the rule that matched."""

    value: AnswerValue
    rule: int


MAX_CHARACTERS = 1_000_000
"""The number of characters, from the end of the text, that are read."""

_REQUESTED_FORMAT = re.compile(
    r'\{[ \t\r\n]*+"answer"[ \t\r\n]*+:[ \t\r\n]*+(?:"(?P<letter>[A-Z])"'
    r"|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]{1,9})?+))[ \t\r\n]*+\}"
)
# A model that continues after its answer may invent the next question and its answer.
_QUESTION = (
    r"(?=[ \t]{0,9}(?:\*\*|#{1,6}[ \t]+)?(?:User|Human|Question|Problem|Q)(?:[ \t]*[0-9]{1,3})?"
    r"(?:\*\*)?[ \t]?:)"
)
_NEXT_TURN = re.compile(
    r"(?=<\|(?:im_end|im_start|eot_id|endoftext|end_of_text)\|>|</s>|<end_of_turn>|\[/?INST\])"
    rf"|(?<=[\n}}]){_QUESTION}"
)
_FIRST_TURN = re.compile(rf"(?:\A|(?<=\n)){_QUESTION}")
_START_OF_OBJECT = re.compile(r'\{\s*+(?:"|\Z)')
_LABEL_WORDS = (
    r"(?:the\s++)?(?:final\s++|correct\s++)?(?:answer|result)\b(?:\s++is\b)?+\s*+[:=]?+\s*+"
)
_LABEL = re.compile(rf"\*\*{_LABEL_WORDS}\*\*\s*+[:=]?\s*+|{_LABEL_WORDS}", re.IGNORECASE)
_FENCE = re.compile(r"```(?:[A-Za-z]*+[^\S\n]*+\n)?+")
_CLOSING = frozenset("\"'`*_]}")


def parse_requested_format(text: str, kind: AnswerKind) -> ParsedAnswer | None:
    """Return the answer of a text in the commonest form, `{"answer": 5}`, and rule 1.

    None for other texts; for this form, `parse_answer` returns the same, but takes longer.
    """
    match = _REQUESTED_FORMAT.fullmatch(text)
    if match is None or kind == "list" or len(text) > MAX_CHARACTERS:
        return None
    literal = match[kind]
    if literal is None:
        return None
    return _with_rule(read_number(literal) if kind == "number" else literal, 1)


def parse_answer(
    text: str,
    kind: AnswerKind,
    is_cut_off: bool = False,
    prompt: str = "",
    operator: str = "",
) -> ParsedAnswer | None:
    """Return the answer of the given kind in `text` and its rule; None for unparseable text.

    is_cut_off: whether the output ended at the token limit. prompt: the question, which the text
    may repeat. operator: that of the question. Never raises; runs in linear time.
    """
    is_whole = len(text) <= MAX_CHARACTERS
    text = text.lstrip() if is_whole else text[-MAX_CHARACTERS:]
    stripped = text.rstrip()
    if is_whole and text.startswith("{") and stripped.endswith("}"):
        may_repeat_key = stripped.count('"answer"') > 1 or "\\" in stripped
        whole = decode(stripped, 0, CHECKING_DECODER if may_repeat_key else DECODER)
        if not isinstance(whole, int) and whole[1] == len(stripped) and "answer" in whole[0]:
            source = AnswerText(stripped, kind, prompt, operator)
            return _with_rule(read_json_object(source, whole[0]), 1)
    turn = _own_turn(text, prompt)
    if turn is None:
        return None
    keys = list(deque(KEY.finditer(turn), MAX_KEYS))
    if keys:
        source = AnswerText(turn, kind, prompt, operator)
        closed = read_closed_object(source, keys)
        if closed is not None:
            return _with_rule(closed.value, 2)
        return _with_rule(read_unclosed_objects(source, keys), 3)
    if not is_whole or (is_cut_off and stripped[-1:] not in _CLOSING):
        return None
    return _with_rule(_read_bare_value(stripped, kind), 4)


def _own_turn(text: str, prompt: str) -> str | None:
    """Return the part of `text` that answers the prompt; None if that part is ambiguous.

    It starts after a repeated prompt, and ends before what the model invented after its answer.
    """
    repeated = text.find(prompt) if prompt else -1
    if repeated >= 0 and KEY.search(text, repeated + len(prompt)):
        text = text[repeated + len(prompt) :]
    may_continue = any(sign in text for sign in ("\n", "}", "<", "INST]"))
    key = KEY.search(text) if may_continue else None
    turn = _NEXT_TURN.search(text, key.end()) if key else None
    if key is None or turn is None:
        return text
    if KEY.search(text, turn.start()) and _FIRST_TURN.search(text, 0, key.start()):
        return None
    return text[: turn.start()] + "\n"


def ends_inside_object(text: str) -> bool:
    """Return whether `text` ends after the start of a JSON object and before its end."""
    start = text.rfind("{")
    return start >= 0 and "}" not in text[start:] and bool(_START_OF_OBJECT.match(text, start))


def _with_rule(value: AnswerValue | None, rule: int) -> ParsedAnswer | None:
    return None if value is None else ParsedAnswer(value, rule)


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
    return read_text(text, kind)
