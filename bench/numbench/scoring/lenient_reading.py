r"""The additional rules of the `lenient` protocol: read what a person reads without guessing.

They apply to texts (without thinking) in which the rules 1 to 4 of `exact` find no answer. If the
text has any statement (rules 5 to 8, `statements`), the values of all its statements must be equal,
and each must be readable. What follows the last one contains no digit (for letters: no other
letter) and nothing that contradicts it; nothing at all follows a labelled value (rule 8). Without a
statement, the whole text is read by the rules 9 to 12 (`whole_texts`), which know the question:
`The sum is 5.` is the answer to an addition only. A list with fewer numbers than the question is
not read: it may be a step.

Values may be written as in `marked_values`; fullwidth characters count as their ASCII ones. If the
output ended at the token limit, the rules 8 to 12 do not apply. Texts of more than 100,000
characters are not read.
"""

from __future__ import annotations

import re

from numbench.records import Item
from numbench.scoring.answer_context import introduces_answer, is_doubted
from numbench.scoring.answer_parser import ParsedAnswer
from numbench.scoring.following_text import confirms, contradicts
from numbench.scoring.notation import AnswerValue, with_options
from numbench.scoring.statements import MAX_STATEMENTS, Statement, find_statements
from numbench.scoring.whole_texts import read_whole_text
from numbench.tasks import TASKS
from numbench.tasks.base import AnswerKind

MAX_CHARACTERS = 100_000

_FULLWIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_COURTESY = re.compile(
    r"(?:^|(?<=[.!?\s]))(?:I hope (?:(?:this|that|it) helps(?: you)?|it is correct)"
    r"|Hope (?:this|that) helps"
    r"|(?:Please )?let me know if [a-z ,']{1,80}|(?:Please )?feel free to [a-z ,']{1,80})[.!]\s*\Z",
    re.IGNORECASE,
)
_ANY_DIGIT = re.compile(r"\d")
_ANY_LETTER = re.compile(r"(?<!\w)[B-F](?!\w)|(?<!\w)A(?!\w)(?!\s[a-z])")


def read_leniently(text: str, item: Item, is_cut_off: bool = False) -> ParsedAnswer | None:
    """Return the answer to `item` in `text` and its rule; None without a clear one.

    is_cut_off: whether the output ended at the token limit. Never raises; linear time.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    if not text.isascii():
        text = text.translate(_FULLWIDTH)
    text = _COURTESY.sub("", text.strip()).strip()
    kind = TASKS[item.task].answer_kind
    statements = find_statements(text, kind, item.operator, has_labels=not is_cut_off)
    if len(statements) == MAX_STATEMENTS:
        return None
    if statements:
        value = _common_value(text, statements, kind, item)
        parsed = None if value is None else ParsedAnswer(value, max(statements, key=_end).rule)
    else:
        parsed = None if is_cut_off else read_whole_text(text, item, kind)
    is_part = parsed and isinstance(parsed.value, tuple) and len(parsed.value) < len(item.operands)
    return None if is_part else parsed


def _end(statement: Statement) -> int:
    return statement.end


def _common_value(
    text: str, statements: list[Statement], kind: AnswerKind, item: Item
) -> AnswerValue | None:
    """Return the value of all statements; None if they differ or the rest of the text may."""
    value = statements[0].value
    if value is None or any(statement.value != value for statement in statements):
        return None
    last = max(statements, key=_end)
    rest = text[last.end :]
    other_value = with_options(_ANY_LETTER, item.prompt) if kind == "letter" else _ANY_DIGIT
    if other_value.search(rest) or is_doubted(rest):
        return None
    if not confirms(rest, value, kind, item.prompt):
        return None
    for statement in statements:
        if contradicts(statement.rest, value, kind, item.prompt):
            return None
        if statement.rule < 8 and not introduces_answer(
            text, statement.start, value, item.prompt, item.operator
        ):
            return None
    if last.rule == 8 and rest.strip(" \t\n.!*_`$}"):
        return None
    return value
