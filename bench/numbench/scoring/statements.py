r"""Find the statements of a text: its parts that say what the answer is.

5. An object with the key `answer` in another notation: single, typographic, escaped or no quotes,
   `Answer`, `final_answer` or `result`, `=` for the colon, missing or trailing commas.
6. A box: `\boxed{5}`.
7. A tag: `<answer>5</answer>`.
8. A labelled value at the start of a line or sentence: `Answer: 5`, `The final answer is **5**.`,
   `### Answer`, `#### 5`, `Antwort: 5`.

The numbers are those of the rules of the protocol `lenient` (`lenient_reading`). A statement is
left out if the words before it say that it is an example, a format, a condition or a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from numbench.scoring.answer_context import (
    is_attached,
    is_meant,
    is_placeholder,
    is_uncertain,
)
from numbench.scoring.marked_values import read_value
from numbench.scoring.notation import AnswerValue
from numbench.scoring.object_keys import is_neutral_name, is_text_key
from numbench.scoring.question_terms import answer_names
from numbench.tasks.base import AnswerKind

MAX_STATEMENTS = 100
_MAX_OBJECT_LENGTH = 10_000

_QUOTE = r"\\?[\"'`“”‘’]"
_NAME = r"(?:(?:final|correct|exact|right)[ _]?)?(?:answer|result|ans)"
_KEY = re.compile(
    rf"(?<![^\s{{,(])(?P<quote>{_QUOTE})?(?P<name>{_NAME})(?(quote){_QUOTE})"
    r"[ \t]*(?:=>|[:=])[ \t]*",
    re.IGNORECASE,
)
_NEXT_KEY = re.compile(
    rf"(?:[,;]\s{{0,99}}(?:{_QUOTE})?|\s{{1,99}}{_QUOTE})(?P<name>[A-Za-z_]\w{{0,99}})"
    rf"(?:{_QUOTE})?[ \t]{{0,9}}[:=]"
)
_OTHER_KEY = re.compile(rf"(?:{_QUOTE})?(?P<name>[A-Za-z_]\w{{0,99}})(?:{_QUOTE})?[ \t]{{0,9}}[:=]")
_QUOTED_KEY = re.compile(r"[\"'](?P<name>\w{1,99})[\"'][ \t]{0,9}:")
# Keys next to `result` in an answer; with others, the object may be the output of a program.
_KEYS_BESIDE_RESULT = frozenset(
    ("operation", "expression", "question", "equation", "explanation", "reasoning", "steps", "note")
)
# `f(x) { result = 0; }`: a block of source code.
_CODE_BEFORE = re.compile(r"(?:\)|\b(?:else|try|do|main|struct))\s{0,9}\Z")
_BRACE = re.compile(r"[{}]")
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_TAG = re.compile(r"<answer>([^<]{0,2000})</answer>", re.IGNORECASE)

# A sentence may start with words that say how the answer was found, but not under which condition.
_ACTION = (
    r"(?:add|subtract|multiply|divid|comput|calculat|evaluat|averag|compar|sort|order|simplify"
    r"|perform|carry|round|work|arrang)ing"
)
LEAD = (
    r"(?:(?:so|thus|therefore|hence|then|finally|overall|consequently|conclusion|as a result"
    r"|in (?:conclusion|summary|total|short|the end)|to (?:conclude|summarize|sum up)"
    r"|putting (?:it|this|everything) (?:all )?together"
    rf"|(?:(?:by|after|on) )?{_ACTION}(?: (?:them|these|this|it|all|both|the (?:two )?"
    r"(?:numbers|values|list)|this up))?(?: (?:all |up|together|out|step by step|carefully))?"
    r"|after (?:(?:a|the|all|some|careful|precise|exact) ){0,3}"
    r"(?:calculations?|computation|carry|carries|addition|subtraction|multiplication|division"
    r"|evaluation|comparison|simplification|steps))"
    r"[,:]?[ \t]+)?(?:(?:the|our|my)[ \t]+)?"
)
EXACTNESS = r"(?:(?:exactly|approximately|about|roughly)[ \t]+|≈[ \t]*)?"
# Labels in languages with a decimal comma, and in others.
_EUROPEAN_NAME = (
    r"(?:endgültige[ \t]+)?(?:Antwort|Ergebnis|Endergebnis|Lösung|Respuesta|Resultado|Solución"
    r"|Réponse|Résultat|Risposta|Risultato|Resposta|Antwoord|Svar|Odpowiedź|Wynik|Ответ|Результат"
    r"|Cevap|Sonuç)(?:[ \t]+finale?)?"
)
_ASIAN_NAME = r"(?:最终|正确|最終)?(?:答案|答え|回答|结果|結果|정답|답|답변)"
_LABEL = (
    r"(?:^|(?<=[.!?。]\s)|(?<=。))(?:[ \t]*(?:\#{1,6}[ \t]+|[-*>][ \t]+)?"
    rf"(?P<mark>\*\*|__|\*)?(?:(?:{_NAME}:[ \t]+)?"
    rf"{LEAD}(?:\*\*|__)?(?:{_QUOTE})?{_NAME}(?:{_QUOTE})?"
    r"|(?:so|thus|therefore|hence|finally|in conclusion),?[ \t]+(?:the[ \t]+)?(?:NAMES)"
    rf"|(?:(?:Die|Das|La|El|Le|Il|O|A|De|Het)[ \t]+)?(?P<european>{_EUROPEAN_NAME})"
    rf"|{_ASIAN_NAME})"
    r"(?:[ \t]+to[ \t]+(?:the|this|your)[ \t]+(?:question|problem))?(?:\*\*|__|\*)?[ \t]*"
    rf"(?:(?:is(?:[ \t]+equal[ \t]+to)?|equals|ist|es|est|è|é)\b[ \t]*:?[ \t]*{EXACTNESS}"
    r"|[是为為は는은][、:]?|=>|[:=]|(?=\n))[ \t]*"
    r"(?:(?:\*\*|__|\*)(?=\s))?"
    r"|\#{4}[ \t]+(?=[^A-Za-z\n]{1,999}$|[A-Z][ \t]*$))"
)
# An object, a box or a tag is a statement itself, also after a label.
_STATEMENT_AFTER_LABEL = re.compile(
    r"[\s$*_]*(?:\\[\[(]\s*)?(?:\\(?:boxed|fbox)\b|\{|<answer>|```(?:json)?\s*\{)", re.IGNORECASE
)
_INDENTED_ASSIGNMENT = re.compile(r"[ \t]+\w+[ \t]*=")
# With a decimal comma, `1.234` may be 1234, and `1,234` may be 1.234.
_COMMA_OR_POINT = re.compile(r"[^0-9]*[0-9]{1,3}(?:[.,][0-9]{3})+(?![0-9.,]).*", re.DOTALL)


class Statement(NamedTuple):
    """What a part `text[start:end]` of the text says is the answer; None if it is unreadable.

    rest: the keys of an object that explain its value.
    """

    rule: int
    start: int
    end: int
    value: AnswerValue | None
    rest: str = ""


def find_statements(
    text: str, kind: AnswerKind, operator: str = "", has_labels: bool = True
) -> list[Statement]:
    """Return the statements of `text` in the order of the rules, at most `MAX_STATEMENTS`.

    operator: the question's, for the names of its answer. has_labels: whether to apply rule 8.
    """
    return list(islice(_statements(text, kind, operator, has_labels), MAX_STATEMENTS))


def _statements(
    text: str, kind: AnswerKind, operator: str, has_labels: bool
) -> Iterator[Statement]:
    objects = list(islice(_objects(text, kind), MAX_STATEMENTS))
    yield from (statement for statement, is_answer in objects if is_answer)
    yield from _boxes(text, kind)
    for tag in _TAG.finditer(text):
        if is_meant(text, tag.start()):
            value = None if is_attached(text, *tag.span()) else read_value(tag[1], kind)
            yield Statement(7, *tag.span(), value)
    if has_labels:
        spans = [(statement.start, statement.end) for statement, _ in objects]
        yield from _labelled_values(text, kind, operator, spans)


def _objects(text: str, kind: AnswerKind) -> Iterator[tuple[Statement, bool]]:
    """Yield the objects with an answer, and whether they state it."""
    for key in _KEY.finditer(text):
        opening = text.rfind("{", max(key.start() - 200, 0), key.start())
        if opening < 0 or "}" in text[opening : key.start()]:
            continue
        closing = _closing_brace(text, key.end())
        end = max(closing, key.end()) + 1
        cell = text[key.end() : closing] if closing >= 0 else ""
        is_answer = is_meant(text, opening) and not (
            is_placeholder(cell)
            or _CODE_BEFORE.search(text, max(opening - 20, 0), opening)
            or _is_program_output(text[opening:end], key["name"])
        )
        has_known_keys = _keeps_value(cell) and all(
            is_neutral_name(other["name"])
            for other in _QUOTED_KEY.finditer(text, opening, key.start())
        )
        is_value = has_known_keys and not is_attached(text, opening, end)
        next_key = _NEXT_KEY.search(cell)
        content_end = next_key.start() if next_key else len(cell)
        texts = (key.start() for key in _NEXT_KEY.finditer(cell) if is_text_key(key["name"]))
        rest = cell[next(texts, len(cell)) :]
        value = read_value(cell[:content_end].strip().rstrip(",;"), kind) if is_value else None
        yield Statement(5, opening, end, value, rest), is_answer


def _is_program_output(text: str, name: str) -> bool:
    """Return whether the object with the key `name` looks like the output of a tool."""
    if name.lower() != "result":
        return False
    keys = {key["name"].lower() for key in islice(_OTHER_KEY.finditer(text), 99)}
    return not keys <= {"result", *_KEYS_BESIDE_RESULT}


def _keeps_value(cell: str) -> bool:
    """Return whether no key after the value may change it or contain another answer."""
    return all(is_neutral_name(key["name"]) for key in _NEXT_KEY.finditer(cell))


def _boxes(text: str, kind: AnswerKind) -> Iterator[Statement]:
    boxes = (box for box in _BOX.finditer(text) if is_meant(text, box.start()))
    for box in islice(boxes, MAX_STATEMENTS):
        closing = _closing_brace(text, box.end())
        end = max(closing, box.end()) + 1
        is_value = closing >= 0 and not is_attached(text, box.start(), end)
        value = read_value(text[box.end() : closing], kind) if is_value else None
        yield Statement(6, box.start(), end, value)


def _labelled_values(
    text: str, kind: AnswerKind, operator: str, objects: list[tuple[int, int]]
) -> Iterator[Statement]:
    for label in _label_pattern(operator).finditer(text):
        is_in_object = any(start <= label.start() < end for start, end in objects)
        if is_in_object or is_uncertain(label.group()) or _INDENTED_ASSIGNMENT.match(label.group()):
            continue
        start, end = _labelled_segment(text, label.end())
        if not _STATEMENT_AFTER_LABEL.match(text, start, end):
            content = text[start:end].strip()
            if (mark := label["mark"]) and label.group().count(mark) == 1:
                content = content.removesuffix(mark)
            content = content.removesuffix("。")
            is_clear = not (label["european"] and _COMMA_OR_POINT.fullmatch(content))
            value = read_value(content, kind) if is_clear else None
            yield Statement(8, label.start(), end, value)


@lru_cache(64)
def _label_pattern(operator: str) -> re.Pattern[str]:
    return re.compile(_LABEL.replace("NAMES", answer_names(operator)), re.IGNORECASE | re.MULTILINE)


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
