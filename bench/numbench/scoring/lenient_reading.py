r"""The additional rules of the `lenient` protocol: read what a person reads without guessing.

They apply to texts (without thinking) in which the rules 1 to 4 of `exact` find no answer.

A *statement* says what the answer is:

5. An object with the key `answer` in another notation: single, typographic, escaped or no quotes,
   `Answer`, `final_answer` or `result`, `=` for the colon, a trailing comma.
6. A box: `\boxed{5}`.
7. A tag: `<answer>5</answer>`.
8. A labelled value: `Answer: 5`, `The final answer is **5**.`, `### Answer`, at the start of a line
   or sentence; nothing follows it.

If the text has any statement, the values of all its statements must be equal, and each must be
readable. What follows the last one contains no digit (for letters: no other letter) and no word
that takes it back. A statement is ignored if the words before it, on its line, say that it is an
example, a condition or a doubt. Without a statement, the whole text is read as

9. one sentence that names one value: `The sum is 5.`, `It equals 5`, `x belongs to interval B.`,
   `5 is the answer.`; or the value alone with marks: `$5$`, `B: x < 9`.
10. one equation: `1.5 + 2.25 = 3.75`.
11. a code block with one value, and words without digits around it.
12. a list in another notation: one number per line, with spaces, `1 < 2 < 3`, `1, 2, and 3`.

A value may have mathematical or emphasis marks around it, and separators between groups of three
digits (`1\,234`, `1{,}234`, `1_234`, `1'234`). A comma is a decimal comma if it cannot be anything
else: `3,75` and `1.234,5`, but not `1,234`. Percentages, units, fractions and number words are not
read. If the output ended at the token limit, the rules 8 to 12 do not apply. Texts of more than
100,000 characters are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from numbench.scoring.answer_parser import AnswerValue, ParsedAnswer
from numbench.scoring.notation import (
    MAX_LIST_LENGTH,
    SIGN_PATTERN,
    read_letter,
    read_list,
    read_number,
)
from numbench.tasks.base import AnswerKind

MAX_CHARACTERS = 100_000

# Limits of the effort for hostile text.
_MAX_STATEMENTS = 100
_MAX_OBJECT_LENGTH = 10_000

_QUOTE = r"\\?[\"'`“”‘’]"
_NAME = r"(?:(?:final|correct|exact|right)[ _]?)?(?:answer|result)"
_KEY = re.compile(
    rf"(?<![^\s{{,(])(?P<quote>{_QUOTE})?{_NAME}(?(quote){_QUOTE})[ \t]*(?:=>|[:=])[ \t]*",
    re.IGNORECASE,
)
_NEXT_KEY = re.compile(
    rf"[,;]\s{{0,99}}(?:{_QUOTE})?[A-Za-z_]\w{{0,99}}(?:{_QUOTE})?[ \t]{{0,9}}[:=]"
)
_BRACE = re.compile(r"[{}]")
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_TAG = re.compile(r"<answer>([^<]{0,2000})</answer>", re.IGNORECASE)
# What stands directly before or after a statement and changes its value: −\boxed{3}, \boxed{3}\%.
_ATTACHED_BEFORE = re.compile(
    r"(?:[-−–](?:\$|\\\(|\\\[)?"
    r"|(?:[+/^_≠×·√0-9]|[\^_]\{|\\(?:sqrt|n?eq?|log|ln|exp|frac)\b\{?)[\s$]{0,9})\Z"
)
_ATTACHED_AFTER = re.compile(
    r"(?:\s|\$|\\\)|\\\]){0,9}+(?:\\?%|!|\^|[0-9]|[+/×·÷]\s{0,9}[\w\\]|\\(?:pi|times|cdot)"
    r"|(?:percent|hundred|thousand|million|billion|trillion)\b)",
    re.IGNORECASE,
)

# A sentence may start with a few words up to a comma, such as “After all carries, the answer …”.
_LEAD = (
    r"(?:(?:so|thus|therefore|hence|then|finally|conclusion|[a-z][^.!?:;,\n0-9]{0,80},)"
    r"[,:]?[ \t]+)?(?:(?:the|our|my)[ \t]+)?"
)
_EXACTNESS = r"(?:(?:exactly|approximately|about|roughly)[ \t]+|≈[ \t]*)?"
_ADJECTIVE = (
    r"(?:final|correct|exact|right|sorted|resulting|minimum|maximum|smallest|largest|mean"
    r"|ascending|descending)"
)
_SUBJECT = (
    rf"(?:(?:{_ADJECTIVE} )?(?:answer|result|sum|difference|product|quotient|value|mean|average"
    r"|minimum|maximum|(?:population )?standard deviation|list|order|interval|option|choice)"
    rf"|{_ADJECTIVE} (?:number|numbers))"
)
_LABEL = re.compile(
    r"(?:^|(?<=[.!?]\s))[ \t]*(?:\#{1,6}[ \t]+|[-*>][ \t]+)?"
    rf"(?P<mark>\*\*|__|\*)?(?:(?:{_NAME}:[ \t]+)?"
    rf"{_LEAD}(?:\*\*|__)?(?:{_QUOTE})?{_NAME}(?:{_QUOTE})?"
    rf"|(?:so|thus|therefore|hence|finally|in conclusion),?[ \t]+(?:the[ \t]+)?{_SUBJECT})"
    r"(?:[ \t]+to[ \t]+(?:the|this|your)[ \t]+(?:question|problem))?(?:\*\*|__|\*)?[ \t]*"
    rf"(?:(?:is(?:[ \t]+equal[ \t]+to)?|equals)\b[ \t]*:?[ \t]*{_EXACTNESS}|=>|[:=]|(?=\n))[ \t]*"
    r"(?:(?:\*\*|__|\*)(?=\s))?",
    re.IGNORECASE | re.MULTILINE,
)
# An object, a box or a tag is a statement itself, also after a label.
_STATEMENT_AFTER_LABEL = re.compile(
    r"[\s$*_]*(?:\\[\[(]\s*)?(?:\\(?:boxed|fbox)\b|\{|<answer>)", re.IGNORECASE
)
_COURTESY = re.compile(
    r"(?:^|(?<=[.!?\s]))(?:I hope (?:(?:this|that|it) helps(?: you)?|it is correct)"
    r"|Hope (?:this|that) helps"
    r"|(?:Please )?let me know if [a-z ,']{1,80}|(?:Please )?feel free to [a-z ,']{1,80})[.!]\s*\Z",
    re.IGNORECASE,
)
# Words before a statement that say that it is not the answer, and words after it that take it back.
_NOT_A_STATEMENT = re.compile(
    r"\b(?:example|e\.g|format|form|template|like|such as|not|never|no|instead|wrong|incorrect|if"
    r"|unless|would|could|should|might|may|must|maybe|perhaps|possibly|guess|estimate|previous"
    r"|first|initial\w*|draft|placeholder|suppose|assum\w+|intermediate|partial|step|otherwise"
    r"|alternatively|when|where|case|given|provided|had|were|mistake\w*|base|binary|octal"
    r"|hexadecimal|doubt\w*|without|\w+n['’]t)\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:wait|actually|but|however|sorry|mistake\w*|wrong|incorrect\w*|correct\w*|oops|hmm+|no|not"
    r"|error|instead|rather|should|let me|let us|let's|revis\w+|reconsider\w*|verif\w+|check\w*"
    r"|unsure|uncertain|guess|maybe|perhaps|example|format|placeholder|cannot|\w+n['’]t|false|ignore"
    r"|disregard|never ?mind|misread|forgot|apologies|invalid|scratch|recheck\w*|draft|lost)\b|\?",
    re.IGNORECASE,
)
_ANY_DIGIT = re.compile(r"\d")
_ANY_LETTER = re.compile(r"(?<!\w)[B-F](?!\w)|(?<!\w)A(?!\w)(?!\s[a-z])")

_SENTENCE = re.compile(
    rf"(?:{_LEAD}(?:{_SUBJECT}"
    r"(?: of (?:the|these|this) (?:two |three |four |five )?(?:numbers|values|list))?"
    r"(?: in (?:ascending|descending) order)?"
    r"|(?:adding|subtracting|multiplying|dividing|computing|calculating|evaluating|averaging)"
    r"(?: (?:them|these|this|it|all|the (?:two )?(?:numbers|values)))?(?: together| up)?"
    r"|it|this|that|x)"
    r"(?:[ \t]+(?:is(?: equal to)?|equals|gives|yields|results in|comes to)(?:[ \t]*:)?[ \t]+"
    r"|[ \t]*[=:][ \t]*|['’]s[ \t]+)|(?:we|I|you) (?:get|obtain|have|find)[ \t]+)"
    rf"{_EXACTNESS}(?P<value>.+)",
    re.IGNORECASE,
)
_INVERTED = re.compile(rf"(?P<value>\[[^\[\]]*\]|\S+) is (?:the|my) {_SUBJECT}", re.IGNORECASE)
_EQUATION = re.compile(r"(?P<left>[-+*/×·÷^−–()\[\]0-9., \te]+)[=≈](?P<value>[^=≈]+)")
_FENCED = re.compile(r"([^`]*)```(?:[A-Za-z]*[ \t]*\n)?([^`]*)```([^`]*)")
_MEMBERSHIP = re.compile(
    r"[^?!]*?\b(?:belongs to|lies in|lies within|falls in|falls into|falls within|is in|is within"
    r"|is contained in|is part of)[ \t]+(?P<value>.+)",
    re.IGNORECASE,
)
_LETTER = re.compile(
    r"(?:(?:the[ \t]+)?(?:interval|option|choice|letter|range)[ \t]+)?(?:[*_`\"']*)"
    r"(?:\(([A-F])\)|([A-F]))(?:[*_`\"']*)"
    r"(?:(?:\s*[:)]|\.(?=\s)|\s+\(|,|(?<=\))\s|\s+(?:because|since|as)\s)(.*))?",
    re.DOTALL | re.IGNORECASE,
)
_CHAIN = re.compile("(<=|>=|<|>|≤|≥)")
_LEADING_ZERO = re.compile(r"[-+−]?0[0-9]")
_STRICT_SIGNS = str.maketrans("≤≥", "<>")
_LAST_AND = re.compile(r"(?<![\s,]),?\s++and\s+")

_UNWRAPPED = (
    ("**", "**"), ("__", "__"), ("*", "*"), ("`", "`"), ('\\"', '\\"'), ('"', '"'), ("'", "'"),
    ("“", "”"), ("‘", "’"), ("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("{", "}"),
    ("\\text{", "}"), ("\\mathrm{", "}"), ("\\mathbf{", "}"), ("\\textbf{", "}"),
    ("\\boxed{", "}"),
)  # fmt: skip
_GROUPED = re.compile(
    rf"({SIGN_PATTERN}?)"
    r"([1-9][0-9]{0,2}(\\,|\{,\}|\\;|\\ |_|'|’)[0-9]{3}(?:\3[0-9]{3})*)(\.[0-9]+)?"
)
_DECIMAL_COMMA = re.compile(
    rf"({SIGN_PATTERN}?)(?:([0-9]+),([0-9]{{1,2}}|[0-9]{{4,}})|(0),([0-9]+)"
    r"|([1-9][0-9]{0,2}(?:\.[0-9]{3})+),([0-9]+))"
)


class _Statement(NamedTuple):
    """What a part `text[start:end]` of the text says is the answer; None if it is unreadable."""

    rule: int
    start: int
    end: int
    value: AnswerValue | None


def read_leniently(text: str, kind: AnswerKind, is_cut_off: bool = False) -> ParsedAnswer | None:
    """Return the answer of the given kind in `text` and its rule; None without a clear one.

    is_cut_off: whether the output ended at the token limit. Never raises; linear time.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    text = _COURTESY.sub("", text.strip()).strip()
    statements = list(islice(_statements(text, kind, is_cut_off), _MAX_STATEMENTS))
    if len(statements) == _MAX_STATEMENTS:
        return None
    if statements:
        value = _common_value(text, statements, kind)
        return None if value is None else ParsedAnswer(value, max(statements, key=_end).rule)
    if is_cut_off:
        return None
    rules: dict[int, Callable[[str, AnswerKind], AnswerValue | None]] = {
        9: _read_sentence,
        10: _read_equation,
        11: _read_code_block,
        12: _read_list_notation,
    }
    for rule, read in rules.items():
        value = read(text, kind)
        if value is not None:
            return ParsedAnswer(value, rule)
    return None


def _end(statement: _Statement) -> int:
    return statement.end


def _common_value(text: str, statements: list[_Statement], kind: AnswerKind) -> AnswerValue | None:
    """Return the value of all statements; None if they differ or the rest of the text may."""
    value = statements[0].value
    if value is None or any(statement.value != value for statement in statements):
        return None
    last = max(statements, key=_end)
    rest = text[last.end :]
    other_value = _ANY_LETTER if kind == "letter" else _ANY_DIGIT
    if other_value.search(rest) or _TAKEN_BACK.search(rest):
        return None
    if last.rule == 8 and rest.strip(" \t\n.!*_`$}"):
        return None
    return value


def _statements(text: str, kind: AnswerKind, is_cut_off: bool) -> Iterator[_Statement]:
    """Yield the statements of `text`."""
    object_spans: list[tuple[int, int]] = []
    for key in _KEY.finditer(text):
        opening = text.rfind("{", max(key.start() - 200, 0), key.start())
        if opening < 0 or "}" in text[opening : key.start()]:
            continue
        closing = _closing_brace(text, key.end())
        end = max(closing, key.end()) + 1
        object_spans.append((opening, end))
        if len(object_spans) == _MAX_STATEMENTS:
            yield _Statement(5, opening, end, None)
            return
        if _is_meant(text, opening):
            value = _read_cell(text[key.end() : closing], kind) if closing >= 0 else None
            yield _Statement(5, opening, end, None if _is_attached(text, opening, end) else value)
    boxes = (box for box in _BOX.finditer(text) if _is_meant(text, box.start()))
    for box in islice(boxes, _MAX_STATEMENTS):
        closing = _closing_brace(text, box.end())
        value = _read_value(text[box.end() : closing], kind) if closing >= 0 else None
        end = max(closing, box.end()) + 1
        attached = _is_attached(text, box.start(), end)
        yield _Statement(6, box.start(), end, None if attached else value)
    for tag in _TAG.finditer(text):
        if _is_meant(text, tag.start()):
            attached = _is_attached(text, *tag.span())
            value = None if attached else _read_value(tag[1], kind)
            yield _Statement(7, tag.start(), tag.end(), value)
    if is_cut_off:
        return
    for label in _LABEL.finditer(text):
        is_in_object = any(start <= label.start() < end for start, end in object_spans)
        if is_in_object or _NOT_A_STATEMENT.search(label.group()):
            continue
        start, end = _labelled_segment(text, label.end())
        if not _STATEMENT_AFTER_LABEL.match(text, start, end):
            content = text[start:end].strip()
            if (mark := label["mark"]) and label.group().count(mark) == 1:
                content = content.removesuffix(mark)
            yield _Statement(8, label.start(), end, _read_value(content, kind))


def _is_meant(text: str, start: int) -> bool:
    """Return whether the words before a statement, on its line, leave it a statement."""
    line = text[max(start - 200, 0) : start].rpartition("\n")[2]
    return not _NOT_A_STATEMENT.search(line)


def _is_attached(text: str, start: int, end: int) -> bool:
    """Return whether a sign, an operator or a unit next to a statement changes its value."""
    before = text[max(start - 20, 0) : start]
    return bool(_ATTACHED_BEFORE.search(before) or _ATTACHED_AFTER.match(text, end))


def _closing_brace(text: str, start: int) -> int:
    """Return the index of the brace that closes the one before `start`; -1 if there is none."""
    depth = 1
    for brace in _BRACE.finditer(text, start, start + _MAX_OBJECT_LENGTH):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return brace.start()
    return -1


def _labelled_segment(text: str, start: int) -> tuple[int, int]:
    """Return the span of the value after a label: the next line, list or code block."""
    while start < len(text) and text[start].isspace():
        start += 1
    if text.startswith("```", start):
        end = text.find("```", start + 3)
        return start, len(text) if end < 0 else end + 3
    end = -1
    if text.startswith("[", start):
        end = text.find("]", start) + 1
    end = text.find("\n", max(end, start))
    return start, len(text) if end < 0 else end


def _read_cell(cell: str, kind: AnswerKind) -> AnswerValue | None:
    """Return the value of an object's key up to the next key or the end of the object."""
    if next_key := _NEXT_KEY.search(cell):
        cell = cell[: next_key.start()]
    return _read_value(cell.strip().rstrip(",;").rstrip(), kind)


def _read_value(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Return the value of a text that consists of it and marks around it."""
    text = _unwrap(text)
    if kind == "number":
        return _read_number(text)
    if kind == "letter":
        return _read_letter(text)
    return _read_list(text)


def _unwrap(text: str) -> str:
    """Remove a full stop, code fences and pairs of marks around a value."""
    text = text.strip()
    if fenced := _FENCED.fullmatch(text):
        before, content, after = fenced.groups()
        text = text if before.strip() or after.strip() else content.strip()
    for _ in range(4):
        text = text.removesuffix(".").rstrip()
        for opening, closing in _UNWRAPPED:
            if (
                text.startswith(opening)
                and text.endswith(closing)
                and len(text) > len(opening) + len(closing)
            ):
                text = text[len(opening) : -len(closing)].strip()
                break
        else:
            break
    return text.removesuffix(".").rstrip()


def _read_number(text: str) -> Decimal | None:
    text = text.lstrip("≈~ ")
    value = read_number(text)
    if value is not None:
        return value
    if grouped := _GROUPED.fullmatch(text):
        sign, digits, separator, decimals = grouped.groups(default="")
        return read_number(sign + digits.replace(separator, "") + decimals)
    if decimal := _DECIMAL_COMMA.fullmatch(text):
        sign, *parts = decimal.groups()
        whole, decimals = (part for part in parts if part is not None)
        return read_number(f"{sign}{whole.replace('.', '')}.{decimals}")
    return None


def _read_letter(text: str) -> str | None:
    letter = read_letter(text)
    if letter is not None:
        return letter
    match = _LETTER.fullmatch(text)
    if match is None:
        return None
    name, description = match[1] or match[2], match[3] or ""
    # A lower-case letter with text after it may be an article.
    is_clear = name.isupper() and not _ANY_LETTER.search(description)
    return name if is_clear and not _TAKEN_BACK.search(description) else None


def _read_list(text: str) -> tuple[Decimal, ...] | None:
    if text[:1] + text[-1:] in ("[]", "()", "{}"):
        text = text[1:-1].strip()
        separated = text.rstrip(",").rstrip()
        if ";" in separated:
            return _read_elements(separated.split(";"))
        values = read_list(f"[{separated}]")
        return values or None
    if _CHAIN.search(text):
        signs = {match[1][0].translate(_STRICT_SIGNS) for match in _CHAIN.finditer(text)}
        return _read_elements(_CHAIN.split(text)[::2]) if len(signs) == 1 else None
    if _LAST_AND.search(text):
        text = _LAST_AND.sub(", ", text)
    return read_list(text.rstrip(","))


def _read_elements(parts: list[str]) -> tuple[Decimal, ...] | None:
    if not 1 < len(parts) <= MAX_LIST_LENGTH:
        return None
    values: list[Decimal] = []
    for part in parts:
        value = _read_number(_unwrap(part))
        if value is None:
            return None
        values.append(value)
    return tuple(values)


def _read_sentence(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Rule 9: the whole text is one sentence that names one value."""
    if "\n" in text:
        return None
    match = _MEMBERSHIP.fullmatch(text) if kind == "letter" else None
    if match is not None and _ANY_LETTER.search(text, 0, match.start("value")):
        return None
    if match is None:
        sentence = _unwrap(text)
        match = _SENTENCE.fullmatch(sentence) or _INVERTED.fullmatch(sentence)
    if match is None:
        return _read_marked_value(text, kind)
    if _NOT_A_STATEMENT.search(match.string, 0, match.start("value")):
        return None
    value = _read_value(match["value"], kind)
    # A lower-case letter may be an article.
    return value if not isinstance(value, str) or value in match["value"] else None


def _read_marked_value(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Return the value of a text that consists of it; the end of a number must be clear."""
    may_go_on = kind == "number" and text.endswith(".") and "." not in text[:-1]
    return None if kind == "list" or may_go_on else _read_value(text, kind)


def _read_equation(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Rule 10: the whole text is one equation between an expression and a number."""
    match = _EQUATION.fullmatch(_unwrap(text))
    if kind != "number" or match is None or not _ANY_DIGIT.search(match["left"]):
        return None
    return _read_value(match["value"], kind)


def _read_code_block(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Rule 11: the text has one code block with a value, and no digits around it."""
    match = _FENCED.fullmatch(text)
    if match is None:
        return None
    around = f"{match[1]} {match[3]}"
    other_value = _ANY_LETTER if kind == "letter" else _ANY_DIGIT
    if other_value.search(around) or _TAKEN_BACK.search(around) or _NOT_A_STATEMENT.search(around):
        return None
    return _read_value(match[2], kind)


def _read_list_notation(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Rule 12: the whole text is a list in another notation."""
    if kind != "list":
        return None
    text = _unwrap(text)
    lines = [line.strip().rstrip(",") for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        return _read_elements(lines)
    words = text.split()
    # Groups of three digits may be one number.
    is_grouped = any(map(_LEADING_ZERO.match, words)) or all(
        len(word) == 3 and word.isdigit() for word in words[1:]
    )
    if len(words) > 1 and not is_grouped:
        values = _read_elements(words) if "," not in text else None
        if values is not None:
            return values
    return _read_list(text)
