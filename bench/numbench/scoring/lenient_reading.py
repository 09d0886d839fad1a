r"""The additional readings of the `lenient` protocol: answers in free text.

They apply to texts (without thinking) in which `exact` finds no answer. Two kinds of statements
are read:

- A value in a box (`\boxed{5}`) or tag (`<answer>5</answer>`), or after a label: a line
  (`Final answer: **5**`, `#### 5`) or an object in other notation (`{'result': 5}`). The last one
  counts.
- The last value in the text, if it ends an equation or a sentence (`2 × 3 = 6`, `The sum is 5.`),
  or if it is in bold, alone on its line, or all that follows a colon.

If a text has both, they must agree. A value is stated only if what follows can end it: the end of a
sentence or line, a closing mark, or a remark (`because`, `(rounded to …`). A count of digits or
steps is not a value. If the text states several numbers, the last one counts only if its sentence
concludes (`So …`, `The answer …`) or is an equation alone on its line, and if it does not occur
before the first of them, as the result of a check does. A sentence about a check states nothing.

A numbered list is a list. If no letter is stated, an option's interval (`[1, 9)`) stands for its
letter. If the text ends at the token limit or inside an object, only boxes and tags count. Texts of
more than 100,000 characters are not read. Linear time.
"""

from __future__ import annotations

import html
import re
from collections import deque

from numbench.scoring.answer_parser import ParsedAnswer, ends_inside_object
from numbench.scoring.notation import (
    FRACTION_LITERAL,
    NUMBER_LITERAL,
    SIGN_PATTERN,
    AnswerValue,
    read_value,
)
from numbench.tasks.base import FORMS, AnswerKind

MAX_CHARACTERS = 100_000
_CONTEXT = 120
"""The number of characters before and after a value that decide whether it is stated."""
_MAX_VALUES = 200
"""The number of values, from the end of the text, that are searched for statements."""

_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_SHORT = rf"{SIGN_PATTERN}?[0-9.]++(?:[eE][-+]?[0-9]++)?+"
_NUMBERED_LINE = rf"[.)][^\S\n]++[*`]*+({_SHORT})[*`,;]*+[^\S\n]*+$"
_NUMBERED = re.compile(rf"(?m)^[^\S\n]*+1{_NUMBERED_LINE}(?:\n\s*+[0-9]++{_NUMBERED_LINE})++")
_COUNTED = r"(?i:[^\S\n]|-)(?i:significant|sig|decimal|digit|figure|place|step)"
_OPTION = re.compile(r"\b([A-Z]): ([-\\.0-9e]+) <= x < ([-\\.0-9e]+)")
_VALUES = {
    # A count of digits or steps is not a value.
    "number": re.compile(rf"(?x:{NUMBER_LITERAL.pattern})(?!{_COUNTED})"),
    "letter": re.compile(r"(?<!\w)(?:[B-HJ-Z]|[AI](?!\s[a-z]))(?!['’]?\w)"),
    "list": re.compile(
        rf"\[[^\[\]{{}}]*+\]|(?<![0-9.]){_SHORT}"
        rf"(?:(?:\s*+(?:[,;<>≤≥]=?|(?:,\s*+)?and\b)|[^\S\n]*+\n)\s*+{_SHORT})++"
    ),
}
_WRITTEN = re.compile(rf"{FRACTION_LITERAL.pattern}|{_VALUES['number'].pattern}")
_VALUES |= dict.fromkeys(FORMS, _WRITTEN)

_MARKS = (
    r"(?:[\s*_`$\"'“”‘’({≈]|\\[\[(\"']|\\(?:text|mathrm|mathbf|textbf|boxed|fbox)(?=\{)"
    r"|\[(?=[A-Z]\])|(?:equal\sto|exactly|approximately|about|the|number|interval|option|choice)\b)*+"
)
_LABEL = re.compile(
    r"(?i)(?:(?P<box>\\(?:boxed|fbox)\s?\{)|(?P<tag><answer>)|(?<![^\n])####(?!\s*[0-9]+[.)]\s)"
    r"|(?<![a-z])(?:final_?)?(?:answer|result|solution)\b[\"'”’*_`\\]*+(?:\s+(?:is|are)\b|\s*+[:：=]|(?=\s*\n)))"
    rf"[\s:：=>*_]*+(?:```[a-z]*+\n)?+{_MARKS}"
)
_INTO = r"|(?<!not\s)(?<!n't\s)(?<!\b[A-Z]\s)(?:in|into|to)"
_BEFORE = (
    r"(?i)(?:(?<![<>!≠/~])[=≈]|\\approx|\b(?:is|are|be|equals|gives?|giving|gets?|yields"
    r"|(?:equivalent|evaluates|simplifies|comes|amounts|adds up) toINTO)\b:?|'s"
    r"|(?P<is_alone>(?P<is_first>\A)?+(?<![^\n])(?:[^\n:：]{0,80}(?<![0-9])[:：])?+"
    rf"|(?<!\w)\*\*(?=\Z))){_MARKS}\Z"
)
_BEFORE_LAST = {
    kind: re.compile(_BEFORE.replace("INTO", _INTO if kind in ("letter", "list") else ""))
    for kind in _VALUES
}
_QUOTES = r"(?:[*_`$\"'“”‘’)]|\\[)\]])*+"
_CLOSE = rf"(?:{_QUOTES}(?:[}}\]]|</[a-z]+>))*+{_QUOTES}"
_GOES_ON = r"\s*(?:[×÷^%=]|[-+*/]\s*[0-9]|[0-9][0-9.,]*+\s*[\"'}<])"
_LINE_END = rf"[^\S\n]*(?:\\\\)?[^\S\n]*(?:\Z|\n(?!{_GOES_ON}))"
_NUMBER_END = rf"""(?ix)
    (?P<ends_line> {_QUOTES}[.。]?{_QUOTES}{_LINE_END} | [.,]?\*\*\s+(?-i:[A-Z][a-z])
      | {_QUOTES} (?:,?\s+|\s*\() (?: (?:(?:to|with)\s)?[0-9]++{_COUNTED}
        | (?:because|since|which|without|rounded|correct|accurate|exact(?:ly)?|approximately)\b))
  | {_CLOSE} (?: [.;。]{_CLOSE}(?:\Z|\s(?!\s*\.?[0-9])) | {_LINE_END} | <\|
      | [,;]\s*(?:\}}|["']?[a-z_]+["']?\s*:) | (?<=>)\s | (?<=\}})\s+(?:and|as|is|so)\b)"""
_BESIDE = r"\s*(?:\(|\\text\{)?\s*(?:[,;/&+|→–—-]>?|or\b|and\b|nor\b|to\b|through\b)"
_LETTER_END = rf"""(?ix)(?P<ends_line> [.,]?\*\* | {_QUOTES}\.?{_QUOTES}{_LINE_END})?
    {_CLOSE}(?=[\s.,:;!<(—–]|\Z) (?!{_BESIDE}[\s}}"*]*[A-Z]\b)"""
_END = {kind: re.compile(_LETTER_END if kind == "letter" else _NUMBER_END) for kind in _VALUES}
_WITHIN = r"(?:[^.\n]|\.(?=[0-9])|(?<=:)\s*\n)*"
_ASKED = "answer|result|mean|average|maximum|minimum|std|deviation"
_CONCLUSION = re.compile(
    rf"""(?ix)(?:(?<![^\n])|[.!:]\s)[\s*_\#>-]*+ (?:
    (?: (?:so|thus|therefore|hence|finally|then)\b{_WITHIN}
        (?: [=≈^*/×+] | \b(?:equals|times|by|and|get|product|sum|difference|quotient|{_ASKED})\b)
      | the\s(?:(?:final|correct)\s)?(?:{_ASKED})\b){_WITHIN}(?:(?:[:=]|\bis){_MARKS})?
  | (?:[^A-Za-z\n]|\\[a-z]+|\bx\b)*={_MARKS})\Z"""
)
"""The start of a sentence that states a conclusion, not a remark or a check."""
_CHECK = re.compile(
    rf"(?i)\b(?:check|v[eé]rif|pro(?:of|[vb]e)|confirm|revers|back\b|note\b){_WITHIN}\Z"
)


def read_leniently(
    text: str, kind: AnswerKind, is_cut_off: bool, question: str = ""
) -> ParsedAnswer | None:
    """Return the one answer that `text` states; None without one.

    is_cut_off: whether the output ended at the token limit. question: its options, as in `A: x < 1,
    B: 1 <= x < 9`, may be named by their bounds. Never raises; linear time.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    is_cut_off = is_cut_off or ends_inside_object(text)
    text = html.unescape(text).translate(_INVISIBLE)
    text = _NUMBERED.sub(lambda m: f"[{', '.join(re.findall(_NUMBERED_LINE, m[0], re.M))}]", text)
    labelled = _read_labelled(text, kind, is_cut_off)
    last, is_clear = (None, True) if is_cut_off else _read_last(text, kind)
    value = last if labelled is None else labelled
    if value is not None and is_clear and last in (None, value):
        return ParsedAnswer(value, "lenient")
    named = _name_options(text, question)
    return None if named == text else read_leniently(named, kind, is_cut_off)


def _name_options(text: str, question: str) -> str:
    """Return `text` with the letters of the question's options instead of their intervals."""
    for letter, low, high in _OPTION.findall(question.replace(".", r"\.")):
        interval = rf"[\[(]{low}[,;]\s*{high}[)\]]|(?<![\w.]){low} (?:<=|≤) x < {high}(?!\.?\w)"
        text = re.sub(interval, letter, text)
    return text


def _read_labelled(text: str, kind: AnswerKind, is_cut_off: bool) -> AnswerValue | None:
    """Return the value in the last box or tag, or after the last label that has one."""
    value = None
    for label in _LABEL.finditer(text):
        match = _VALUES[kind].match(text, label.end())
        if match is None and label.lastgroup is None:
            continue
        end = match.end() if match else label.end()
        closing = {"box": "}", "tag": "</"}.get(label.lastgroup or "")
        is_closed = closing in text[end : end + _CONTEXT] if closing else not is_cut_off
        is_stated = match and is_closed and _END[kind].match(text, end)
        value = read_value(match.group(), kind) if match and is_stated else None
    return value


def _read_last(text: str, kind: AnswerKind) -> tuple[AnswerValue | None, bool]:
    """Return the last value of the text if it is stated, and whether nothing contradicts it."""
    values = deque(_VALUES[kind].finditer(text), 1 if kind in ("letter", "list") else _MAX_VALUES)
    stated = [match for match in values if _is_stated(text, kind, match)]
    last = values[-1] if values else None
    if (
        last is None
        or last not in stated
        or (kind == "list" and re.search("[0-9]", text[last.end() :]))
    ):
        return None, True
    value = read_value(last.group(), kind)
    is_clear = all(read_value(match.group(), kind) == value for match in stated)
    if not is_clear and _CONCLUSION.search(text, max(last.start() - _CONTEXT, 0), last.start()):
        given = [match for match in values if match.start() < stated[0].start()]
        is_clear = all(read_value(match.group(), kind) != value for match in given)
    return value, is_clear


def _is_stated(text: str, kind: AnswerKind, match: re.Match[str]) -> bool:
    """Return whether what is before and after a value states it."""
    start, end = match.span()
    before = _BEFORE_LAST[kind].search(text, max(start - _CONTEXT, 0), start)
    after = before and _END[kind].match(text, end)
    if not before or not after or _CHECK.search(text, max(start - _CONTEXT, 0), start):
        return False
    is_sentence = before["is_first"] is not None and text.startswith(". ", end) and end > start + 2
    return before["is_alone"] is None or after["ends_line"] is not None or is_sentence
