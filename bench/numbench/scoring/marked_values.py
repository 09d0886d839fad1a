r"""Read values with marks around them, and in notations that the requested format does not have.

A value may have mathematical or emphasis marks around it, and separators between groups of three
digits (`1\,234`, `1{,}234`, `1_234`, `1'234`). A comma is a decimal comma if it cannot be anything
else: `3,75` and `1.234,5`, but not `1,234`. Lists may be separated by commas, semicolons, spaces or
signs of comparison. Percentages, units, fractions and number words are not read.

Every reader takes a whole text and returns None unless all of it is the value. Linear time.
"""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import pairwise

from numbench.scoring.notation import (
    MAX_LIST_LENGTH,
    SIGN_PATTERN,
    AnswerValue,
    read_letter,
    read_list,
    read_number,
)
from numbench.tasks.base import AnswerKind

_UNWRAPPED = (
    ("**", "**"), ("__", "__"), ("*", "*"), ("`", "`"), ('\\"', '\\"'), ('"', '"'), ("'", "'"),
    ("“", "”"), ("‘", "’"), ("「", "」"), ("$$", "$$"), ("$", "$"), ("\\(", "\\)"),
    ("\\[", "\\]"), ("{", "}"), ("\\text{", "}"), ("\\mathrm{", "}"), ("\\mathbf{", "}"),
    ("\\textbf{", "}"), ("\\boxed{", "}"),
)  # fmt: skip
_FENCED = re.compile(r"```(?:[A-Za-z]*[ \t]*\n)?([^`]*)```")
_GROUPED = re.compile(
    rf"({SIGN_PATTERN}?)"
    r"([1-9][0-9]{0,2}(\\,|\{,\}|\\;|\\ |_|'|’)[0-9]{3}(?:\3[0-9]{3})*)(\.[0-9]+)?"
)
_DECIMAL_COMMA = re.compile(
    rf"({SIGN_PATTERN}?)(?:([0-9]+),([0-9]{{1,2}}|[0-9]{{4,}})|(0),([0-9]+)"
    r"|([1-9][0-9]{0,2}(?:\.[0-9]{3})+),([0-9]+))"
)
_LETTER = re.compile(
    r"(?:(?:the[ \t]+)?(?:interval|option|choice|letter|range)[ \t]+)?(?:[*_`\"']*)"
    r"(?:\(([A-Z])\)|\[([A-Z])\]|([A-Z]))(?:[*_`\"']*)"
    r"(?:(?:[ \t]*[:),]|\.(?=\s)|(?<=[)\]])(?=\s)|(?=\s\())(?P<interval>.*)"
    r"|\s+(?:because|since|as)\s(?P<reason>.*))?",
    re.DOTALL | re.IGNORECASE,
)
# The bounds of an interval: `1 <= x < 9`, `$x \leq 5$`, `from 1 to 9`, `[1, 9)`.
_INTERVAL = re.compile(
    r"(?:[\s0-9.,x<>=≤≥()\[\]$*_`−+-]|\\(?:leq?|geq?|lt|gt)\b|\b(?:from|to|between|and|e)\b)*",
    re.IGNORECASE,
)
_BOUND = re.compile(r"[<>=≤≥,]|\\(?:le|ge|lt|gt)|\b(?:from|between)\b", re.IGNORECASE)
_REASON = re.compile(r"[\w\s.,<>=≤≥$()\[\]−+-]*[0-9][\w\s.,<>=≤≥$()\[\]−+-]*")
_REFUSAL = re.compile(
    r"\b(?:not?|wrong|exclud\w*|impossible|outside|false|rejected|eliminated|unless|if)\b",
    re.IGNORECASE,
)
_OTHER_LETTER = re.compile(r"(?<!\w)[B-F](?!\w)|(?<!\w)A(?!\w)(?!\s[a-z])")
_CHAIN = re.compile("(<=|>=|<|>|≤|≥)")
_STRICT_SIGNS = str.maketrans("≤≥", "<>")
_LAST_AND = re.compile(r"(?<![\s,]),?\s++and\s+")
_SHORT_INTEGER = re.compile(rf"{SIGN_PATTERN}?[0-9]{{1,3}}")
_THREE_DIGITS = re.compile(r"[0-9]{3}(?![0-9])")


def read_value(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Return the value of a text that consists of it and marks around it."""
    text = unwrap(text)
    if kind == "number":
        return _read_number(text)
    if kind == "letter":
        return _read_letter(text)
    return _read_list(text)


def unwrap(text: str) -> str:
    """Remove a full stop, a code fence and pairs of marks around a value."""
    text = text.strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1].strip()
    for _ in range(4):
        text = _without_stop(text)
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
    return _without_stop(text)


def _without_stop(text: str) -> str:
    return text if text.endswith("..") else text.removesuffix(".").rstrip()


def read_lines(text: str) -> tuple[Decimal, ...] | None:
    """Return the list of a text with one number per line; None for a single line."""
    return _read_elements([line.strip().rstrip(",;") for line in text.splitlines() if line.strip()])


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
    name = match[1] or match[2] or match[3]
    interval, reason = (match["interval"] or "").strip(), match["reason"]
    if (interval and not _is_interval(interval)) or (reason is not None and not _is_reason(reason)):
        return None
    # A lower-case letter with text after it may be an article.
    return name.upper() if name.isupper() or not (interval or reason) else None


def _is_interval(text: str) -> bool:
    return bool(_INTERVAL.fullmatch(text) and _BOUND.search(text))


def _is_reason(text: str) -> bool:
    """Return whether a text may explain why an interval contains a number."""
    return bool(_REASON.fullmatch(text)) and not (
        _REFUSAL.search(text) or _OTHER_LETTER.search(text)
    )


def _read_list(text: str) -> tuple[Decimal, ...] | None:
    if text[:1] + text[-1:] in ("[]", "()", "{}"):
        text = text[1:-1].strip().rstrip(",").rstrip()
        return _read_separated(text) or read_list(f"[{text}]") or None
    if _CHAIN.search(text):
        signs = {match[1][0].translate(_STRICT_SIGNS) for match in _CHAIN.finditer(text)}
        return _read_elements(_CHAIN.split(text)[::2]) if len(signs) == 1 else None
    if _LAST_AND.search(text):
        text = _LAST_AND.sub(", ", text)
    return _read_separated(text) or read_list(text.rstrip(","))


def _read_separated(text: str) -> tuple[Decimal, ...] | None:
    """Return the list of a text with semicolons, enumeration commas or spaces between numbers."""
    for separator in (";", "、"):
        if separator in text:
            return _read_elements(text.rstrip(separator).split(separator))
    words = text.split()
    if "," in text or "\n" in text or len(words) < 2:
        return None
    # Groups of three digits may be one number.
    is_grouped = any(
        _SHORT_INTEGER.fullmatch(word) and _THREE_DIGITS.match(following)
        for word, following in pairwise(words)
    )
    return None if is_grouped else _read_elements(words)


def _read_elements(parts: list[str]) -> tuple[Decimal, ...] | None:
    if not 1 < len(parts) <= MAX_LIST_LENGTH:
        return None
    values: list[Decimal] = []
    for part in parts:
        value = _read_number(unwrap(part))
        if value is None:
            return None
        values.append(value)
    return tuple(values)
