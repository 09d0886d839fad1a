r"""Read texts that consist of one sentence, equation, code block or list with the answer.

9. One sentence that names the answer to the question: `The sum is 5.` for an addition,
   `It equals 5`, `x belongs to interval B.`, `5 is the answer.`; or the value alone with marks:
   `$5$`, `B: x < 9`.
10. The question as an equation: `1.5 + 2.25 = 3.75`, or `= 3.75`.
11. A code block with one value, and words around it that name the answer.
12. A list in another notation: one number per line, with spaces or semicolons, `1 < 2 < 3`,
    `1, 2, and 3`.

A list with the numbers of the question in their order is not an answer: it may be a quotation. The
numbers are those of the rules of the protocol `lenient` (`lenient_reading`). Linear time.
"""

from __future__ import annotations

import re
from functools import lru_cache

from numbench.records import Item
from numbench.scoring.answer_context import is_doubted, is_uncertain
from numbench.scoring.answer_parser import ParsedAnswer
from numbench.scoring.marked_values import read_lines, read_value, unwrap
from numbench.scoring.notation import AnswerValue, read_number
from numbench.scoring.question_terms import answer_names, are_operands, is_expression
from numbench.scoring.statements import EXACTNESS, LEAD
from numbench.tasks.base import AnswerKind

_ACTION = (
    r"(?:adding|subtracting|multiplying|dividing|computing|calculating|evaluating|averaging)"
    r"(?: (?:them|these|this|it|all|the (?:two )?(?:numbers|values)))?(?: together| up)?"
)
_SENTENCE = (
    rf"(?:(?:\*\*|__)?{LEAD}(?:(?:NAMES)"
    r"(?: of (?:the|these|this) (?:two |three |four |five )?(?:given )?(?:numbers|values|list)"
    r"| of (?:the (?:list|numbers|values) )?(?P<operands>[-+*/×÷·^−–0-9.,\[\]() eand]{1,2000}))?"
    rf"(?: (?:sorted )?in (?:ascending|descending) order)?|{_ACTION}|it|this|that|x)"
    r"(?:[ \t]+(?:is(?: equal to)?|equals|gives|yields|results in|comes to)(?:[ \t]*:)?[ \t]+"
    r"|(?:\*\*|__)?[ \t]*[=:](?:\*\*|__)?[ \t]*|['’]s[ \t]+)"
    rf"|{LEAD}(?:we|I|you) (?:get|obtain|have|find)[ \t]+)"
    rf"{EXACTNESS}(?P<value>.+)"
)
_EVALUATION = re.compile(
    r"(?P<expression>(?:[^A-Za-z=:]|plus|minus|times|divided by|multiplied by){1,999})[ \t]+"
    rf"(?:is(?: equal to)?|equals|gives|makes)[ \t]+{EXACTNESS}(?P<value>.+)",
    re.IGNORECASE,
)
_OTHER_ORDER = {"ascending": "descending", "descending": "ascending"}
_INVERTED = r"(?P<value>\[[^\[\]]*\]|\S+) is (?:the|my) (?:NAMES)"
_MEMBERSHIP = re.compile(
    rf"{LEAD}(?:(?:the[ \t]+)?(?:(?:given[ \t]+)?(?:number|value|point|reference)[ \t]*)?"
    r"(?:x[ \t]*=[ \t]*)?(?:[-+−]?[0-9.,]+|x)?|it|this)[ \t]+"
    r"(?:(?:therefore|thus|clearly)[ \t]+)?"
    r"(?:belongs to|lies in|lies within|falls in|falls into|falls within|is in|is within"
    r"|is contained in|is part of)[ \t]+(?P<value>.+)",
    re.IGNORECASE,
)
_EQUATION = re.compile(r"(?P<left>[^=≈]*)[=≈](?P<value>[^=≈]+)")
_FENCED = re.compile(r"([^`]*)```(?:[A-Za-z]*[ \t]*\n)?([^`]*)```([^`]*)")
_AROUND_BLOCK = (
    r"(?:(?:sure|certainly|of course|okay|ok)[!,.:]?\s*)?"
    r"(?:(?:here (?:it is|you go|is|are)|this is|below (?:is|are)|output|sorted)[ \t]*)?"
    r"(?:(?:the|my|your)[ \t]+)?(?:NAMES)?"
    r"(?:[ \t]+of (?:the|these|this) (?:two )?(?:numbers|values|list))?"
    r"(?:[ \t]+in (?:ascending|descending) order|[ \t]+(?:in|as) (?:valid )?JSON)?"
    r"(?:[ \t]+(?:is|are))?(?:[ \t]+(?:below|as follows|follows))?[ \t]*[.:!]?"
)


def read_whole_text(text: str, item: Item, kind: AnswerKind) -> ParsedAnswer | None:
    """Return the answer to `item` in a text without statements, and the rule."""
    for rule, read in (
        (9, _read_sentence),
        (10, _read_equation),
        (11, _read_code_block),
        (12, _read_list_notation),
    ):
        value = read(text, item, kind)
        if value is not None:
            is_quotation = kind == "list" and value == tuple(map(read_number, item.operands))
            return None if is_quotation else ParsedAnswer(value, rule)
    return None


@lru_cache(256)
def _pattern(template: str, operator: str) -> re.Pattern[str]:
    """Return a pattern with the names of the answer to questions with this operator."""
    return re.compile(template.replace("NAMES", answer_names(operator)), re.IGNORECASE)


def _read_sentence(text: str, item: Item, kind: AnswerKind) -> AnswerValue | None:
    """Rule 9: the whole text is one sentence that names one value."""
    if "\n" in text:
        return None
    match = _MEMBERSHIP.fullmatch(text) if kind == "letter" else None
    if match is None:
        match = _match_naming_sentence(unwrap(text), item)
    if match is None:
        return _read_marked_value(text, kind)
    if is_uncertain(match.string[: match.start("value")]):
        return None
    value = read_value(match["value"], kind)
    # A lower-case letter may be an article.
    return value if not isinstance(value, str) or value in match["value"] else None


def _match_naming_sentence(sentence: str, item: Item) -> re.Match[str] | None:
    """Return the match of a sentence that names the answer, with its value as a group."""
    if inverted := _pattern(_INVERTED, item.operator).fullmatch(sentence):
        return inverted
    if evaluation := _EVALUATION.fullmatch(sentence):
        return evaluation if is_expression(evaluation["expression"].strip(), item) else None
    match = _pattern(_SENTENCE, item.operator).fullmatch(sentence)
    if match is None:
        return None
    operands = match["operands"]
    if operands and not are_operands(operands, item) and not is_expression(operands, item):
        return None
    other_order = _OTHER_ORDER.get(item.operator)
    return None if other_order and other_order in sentence.lower() else match


def _read_marked_value(text: str, kind: AnswerKind) -> AnswerValue | None:
    """Return the value of a text that consists of it; the end of a number must be clear."""
    may_go_on = kind == "number" and text.endswith(".") and "." not in text[:-1]
    return None if kind == "list" or may_go_on else read_value(text, kind)


def _read_equation(text: str, item: Item, kind: AnswerKind) -> AnswerValue | None:
    """Rule 10: the whole text is the question as an equation, or its right side."""
    match = _EQUATION.fullmatch(unwrap(text))
    if kind != "number" or match is None:
        return None
    left = match["left"].strip()
    return read_value(match["value"], kind) if not left or is_expression(left, item) else None


def _read_code_block(text: str, item: Item, kind: AnswerKind) -> AnswerValue | None:
    """Rule 11: the text has one code block with a value, and words that name the answer."""
    match = _FENCED.fullmatch(text)
    if match is None:
        return None
    around = _pattern(_AROUND_BLOCK, item.operator)
    before, after = match[1].strip(), match[3].strip()
    if not (around.fullmatch(before) and around.fullmatch(after)):
        return None
    is_clear = not is_doubted(before + after) and not is_uncertain(before + after)
    return read_value(match[2], kind) if is_clear else None


def _read_list_notation(text: str, _item: Item, kind: AnswerKind) -> AnswerValue | None:
    """Rule 12: the whole text is a list in another notation."""
    if kind != "list":
        return None
    return read_lines(unwrap(text)) or read_value(text, kind)
