r"""The additional readings of the `lenient` protocol: answers in free text.

They apply to texts (without thinking) in which `exact` finds no answer. Two kinds of statements
are read:

- A value in a box (`\boxed{5}`) or tag (`<answer>5</answer>`), or after a label: a line
  (`Final answer: **5**`, `#### 5`) or an object in other notation (`{'result': 5}`). The last one
  counts.
- The last value in the text, if it ends an equation or a sentence (`2 × 3 = 6`, `The sum is 5.`),
  or if it is in bold, alone on its line, or all that follows a colon.

If a text has both, they must agree. A value is not stated if an operator, a percent sign or an
alternative follows it. If the text ends at the token limit or inside an object, only boxes and tags
count. Texts of more than 100,000 characters are not read. Linear time.
"""

from __future__ import annotations

import re
from collections import deque

from numbench.scoring.answer_parser import ParsedAnswer, ends_inside_object
from numbench.scoring.notation import NUMBER_LITERAL, AnswerValue, read_value
from numbench.tasks.base import AnswerKind

MAX_CHARACTERS = 100_000
_CONTEXT = 120
"""The number of characters before and after a value that decide whether it is stated."""

_MARKS = (
    r"(?:[\s*_`$\"'“”‘’({]|\\[\[(\"']|\\(?:text|mathrm|mathbf|textbf|boxed|fbox)(?=\{)"
    r"|\[(?=[A-Z]\])|(?:equal to|exactly|approximately|about|the|number|interval|option|choice)\b"
    r"|≈)*+"
)
_LABEL = re.compile(
    r"(?:\\(?:boxed|fbox)\s?(?P<box>\{)|<answer(?P<tag>>)|(?<![^\n])####"
    r"|(?<![a-z])(?:final_?)?(?:answer|result|solution)\b[\"'”’*_`\\]*+(?:\s+(?:is|are)\b|\s*+[:：=]|(?=\s*\n)))"
    rf"[\s:：=>*_]*+(?:```[a-z]*+\n)?+{_MARKS}",
    re.IGNORECASE,
)
_BEFORE_LAST = re.compile(
    r"(?:[=≈]|\\approx|\b(?:is|are|be|equals|gives?|giving|gets?|yields|in|into|to|interval)\b:?|'s"
    r"|(?P<is_alone>(?<![^\n])(?:[^\n:：]{0,80}[:：])?+|\*\*(?=\Z)))"
    rf"{_MARKS}\Z",
    re.IGNORECASE,
)
_AFTER_ALONE = re.compile(r"[.,]?\*\*|[^\S\n]*(?:[_`$.)\"'”’]|\\[)\]]|\*\B)*[^\S\n]*(?:\n|\Z)")
_CLOSING = {"box": "}", "tag": "</"}

_SHORT = r"[-+−]?[0-9.]++(?:[eE][-+]?[0-9]++)?+"
_VALUES = {
    "number": NUMBER_LITERAL,
    "letter": re.compile(r"(?<!\w)(?:[B-HJ-Z]|[AI](?!\s[a-z]))(?!['’]?\w)"),
    "list": re.compile(
        rf"\[[^\[\]{{}}]*+\]|(?<![0-9.]){_SHORT}"
        rf"(?:(?:\s*+(?:[,;<>≤≥]=?|(?:,\s*+)?and\b)|[^\S\n]*+\n)\s*+{_SHORT})++"
    ),
}
_CONTINUES = {
    "letter": re.compile(r"\s*(?:,|/|or\b|and\b|nor\b)\s*[A-Z]\b"),
    "number": re.compile(
        r"[\w%°]|[^\S\n]*(?:[.,;(]?[^\S\n]*\.?[0-9]|[-−+*/×÷·^=<>≤≥±≠→x]\s*[-−+]?[0-9(\\.]|\.\.|…"
        r"|\\?%|\\(?![\]) \\\n]|,?\\?text)|(?:or|times|plus|minus|divided|multiplied|million"
        r"|billion|thousand|percent|(?:to|and) [0-9])\b)"
    ),
}
_CONTINUES["list"] = _CONTINUES["number"]


def read_leniently(text: str, kind: AnswerKind, is_cut_off: bool = False) -> ParsedAnswer | None:
    """Return the one answer that `text` states; None without one.

    is_cut_off: whether the output ended at the token limit. Never raises; linear time.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    is_cut_off = is_cut_off or ends_inside_object(text)
    labelled = _read_labelled(text, kind, is_cut_off)
    last = None if is_cut_off else _read_last(text, kind)
    if labelled is None or last is None:
        value = last if labelled is None else labelled
    else:
        value = labelled if labelled == last else None
    return None if value is None else ParsedAnswer(value, "lenient")


def _read_labelled(text: str, kind: AnswerKind, is_cut_off: bool) -> AnswerValue | None:
    """Return the last value in a box or tag, or after a label."""
    value = None
    for label in _LABEL.finditer(text):
        match = _VALUES[kind].match(text, label.end())
        if match is None or _CONTINUES[kind].match(text, match.end()):
            continue
        closing = _CLOSING.get(label.lastgroup or "")
        if closing in text[match.end() : match.end() + _CONTEXT] if closing else not is_cut_off:
            stated = read_value(match.group(), kind)
            value = value if stated is None else stated
    return value


def _read_last(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Return the last value of the text if it is stated."""
    last = next(iter(deque(_VALUES[kind].finditer(text), 1)), None)
    if last is None or _CONTINUES[kind].match(text, last.end()):
        return None
    before = _BEFORE_LAST.search(text, max(last.start() - _CONTEXT, 0), last.start())
    is_alone = _AFTER_ALONE.match(text, last.end())
    if before is None or (before["is_alone"] is not None and not is_alone):
        return None
    if kind != "letter" and re.search("[0-9]", text[last.end() :]):
        return None
    return read_value(last.group(), kind)
