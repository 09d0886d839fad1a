r"""What the words and signs around an answer say about it.

A closed object in the requested format is the answer unless the words before it say that it is
something else (`may_introduce_answer`). Other answers need words that are known to introduce one
(`introduces_answer`). The words after an answer that take it back are known (`is_taken_back`).
Every function looks at a bounded number of characters or runs in linear time.
"""

from __future__ import annotations

import re

from numbench.scoring.notation import NUMBER_LITERAL, SIGNS, AnswerValue, read_number, with_options
from numbench.scoring.question_terms import names_other_result

_WINDOW = 200
"""The number of characters before an answer that are read."""

_FENCE_BEFORE = re.compile(r"(?:```[A-Za-z]*|`)\s*\Z")
# The line above an object introduces it if no blank line is between, or if it is a heading.
_LINE_ABOVE = re.compile(r"(?:^|\n)([^\n]*)\n(\s*)\Z")
_SENTENCE_END = re.compile(r"[\n!?{}]|\.(?:\s|\Z)")
_CLAUSE_END = re.compile(r"[,;]|\bbut\b")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][a-z]+)*")
_INTRODUCING = frozenset((
    "a", "adding", "again", "align", "aligned", "all", "an", "and", "answer", "antwort", "are",
    "as", "ascending", "assistant", "average", "begin", "belongs", "below", "both", "by",
    "calculated", "calculating", "calculation", "cdot", "certainly", "choice", "computed",
    "computing", "conclusion", "correct", "das", "descending", "desired", "deviation", "die",
    "difference", "dividing", "e", "el", "equal", "equals", "ergebnis", "es", "est", "exact",
    "final", "finally", "following", "for", "format", "formatted", "frac", "get", "gives", "go",
    "hence", "here", "here's", "i", "in", "inst", "interval", "is", "ist", "it", "json", "la",
    "largest", "lautet", "le", "letter", "lies", "list", "max", "maximum", "mean", "min",
    "minimum", "multiplying", "my", "now", "number", "numbers", "object", "of", "ok", "okay",
    "option", "order", "our", "output", "plus", "population", "problem", "product", "provides",
    "question", "quotient", "ratio", "requested", "required", "response", "respuesta", "result",
    "resultado", "right", "réponse", "résultat", "s", "smallest", "so", "solution", "sorted",
    "specified", "standard", "start", "std", "subtracting", "sum", "sure", "that", "the", "them",
    "then", "therefore", "these", "this", "thus", "to", "together", "total", "two", "valid",
    "value", "voici", "we", "with", "x", "yes", "yields", "you", "your", "答案", "答案是", "结果",
))  # fmt: skip
# Words of explanations that take nothing back.
_EXPLAINING = frozenset((
    "above", "add", "added", "addition", "additional", "after", "align", "also", "any",
    "arithmetic", "asked", "be", "because", "been", "belong", "between", "boxed", "calculate",
    "checked", "combine", "computation", "compute", "contains", "correctly", "decimal",
    "decimals", "digit", "digits", "division", "do", "done", "double", "double-check",
    "double-checked", "each", "end", "eos", "error", "exactly", "explanation", "falls", "find",
    "first", "follow", "followed", "follows", "fraction", "from", "further", "given", "greater",
    "has", "have", "help", "helps", "hope", "integer", "integers", "into", "its", "larger",
    "less", "let", "lie", "line", "lying", "me", "multiplication", "need", "needed", "no", "note",
    "numerical", "obtain", "on", "only", "parts", "place", "places", "point", "points",
    "precision", "properties", "rounded", "rounding", "satisfies", "schema", "see", "sentence",
    "significant", "simply", "since", "smaller", "step", "steps", "string", "subtraction", "such",
    "text", "than", "there", "turn", "type", "verified", "verify", "was", "were", "when", "which",
    "whole", "without", "work", "working", "you",
))  # fmt: skip
_CONDITION = re.compile(
    r"\b(?:if|unless|suppos\w+|assuming|ignor\w+|without(?! further)|would|could|should|might|maybe"
    r"|perhaps|possibly|truncat\w+|hundreds?|thousands?|millions?"
    r"|billions?|percent|absolute|modulo|binary|octal|hexadecimal|at most|false|mistake|wrong"
    r"|incorrect|example|template|sample|draft|previous|intermediate|half|twice)\b",
    re.IGNORECASE,
)

# Words that introduce a draft, a denial, a bound, another value or another speaker: anywhere in the
# clause, directly before the object, or as its label.
_OTHER_THAN_ANSWER = re.compile(
    r"\b(?:not|never|nope|cannot|instead|rather|except|contrary|attempt|naive|initial\w*|previous\w*"
    r"|earlier|old|original\w*|so far|working answer|provisional|tentative|unlike|opposite"
    r"|guess\w*|hypothesis|assume\w*|otherwise|unsorted|dummy|default|mock|debug|cached|grader"
    r"|someone|student|their|you said|the user|let the answer be|excluded|no longer|reference"
    r"|expected output|minus \w+ is|plus an?|second question|at least|up to"
    r"|before (?:sort|carry)\w*|number before|interval before|quick estimate"
    r"|first (?:draft|try|step|part|approximation)|candidate|assert"
    r"|partial (?:result|sum|answer)"
    r"|times the answer|look like this|user['’]s|\w+n['’]t)\b|\bcase [0-9]"
    r"|\b(?:no|or|than|like|almost|compare with|consider|times|twice|double|triple"
    r"|square of|cube of|inverse of|half of|close to|near)\s*\Z"
    r"|(?:integer|whole|decimal|fractional) part\W*\Z|\A\W*(?:rounded|(?:after )?step \w+)\W*\Z"
    r"|\A\W*(?:first|instructions?|your instructions|prompt|system|user|input|test|lower bound"
    r"|upper bound)\W*\Z|\breply with\b",
    re.IGNORECASE,
)

# Directly before an object: an operator, a sign of comparison, or the start of a comment.
_OPEN_SIGN = re.compile(r"(?:[≈~<≤≥≠#+^×·/|]|[0-9)]\s*[-−*]|/\*|--|\bminus)\s*\Z")
_OTHER_LETTER = re.compile(r"(?<!\w)[A-F](?!\w)(?!\s[a-z])")
_EXAMPLE = re.compile(
    r"(?:for example|for instance|\be\.g\.|such as|\bexample|\btemplate|\bplaceholder|\bschema)"
    r"[,:]?\s*\Z",
    re.IGNORECASE,
)
# `Format: {…}` and `I will reply in the format {…}`, but not `The answer in the required format:`.
_FORMAT = re.compile(
    r"\b(?:formats?|formatted|form|formato|schema|template|syntax|structure|skeleton)\b",
    re.IGNORECASE,
)
_FORMAT_OF_ANSWER = re.compile(
    r"\b(?:here|in|(?:answer|result|solution)(?! (?:format|form|schema|template)))\b", re.IGNORECASE
)
_INTENTION = re.compile(
    r"\b(?:will|shall|must|should|would|needs?|asked to|has to|have to|going to|please|reply"
    r"|respond|return|\w+['’]ll)\b",
    re.IGNORECASE,
)
# A value that stands for any answer: `<number>`, `...`, `"string"`, a JSON schema.
_PLACEHOLDER = re.compile(
    r"[\s\"'\[]*(?:<[^<>]{0,99}>|\.\.\.|…|_{2,}|\{\s*\"(?:type|description|enum|\$ref)\""
    r"|(?:number|numeric\w*|string|float|integer|int|value|letter|list|array|x|your[\w ]{0,40})"
    r"(?=[\s\"'\]}]*\Z))",
    re.IGNORECASE,
)

_SCALE_WORDS = r"(?:percent|hundreds?|thousands?|millions?|billions?|trillions?)\b"
_RETRACTION = re.compile(
    r"\b(?:wait|actually|correction|corrected|mistake|mistaken|(?<!no )(?<!any )(?<!without )error"
    r"|wrong|incorrect|false|invalid|sorry|apologies|oops|hmm+|however|hold on|on second thought"
    r"|on reflection|scratch that|strike that|nope|never ?mind|ignore|disregard|misread|forgot"
    r"|missed|missing|left out|omitted|dropped|overlooked|swap|off by|meant|edit|revised|should be"
    r"|instead(?! of)|recompute|redo|recalculate|reconsider|unsure|not sure|doubt|guess"
    r"|example|placeholder|template|dummy|draft|attempt|units of|to be"
    r"|(?:is|be|was) (?:only |just |merely )?(?:an? |the |my )?(?:\w+ )?(?:format|form|structure)"
    r"|retract|void|kidding|bogus|hang on|try again|forgotten|flipped|revers\w+|negate|opposite"
    r"|not confident|falsch|faux|incorrecto|unless|uncertain|tentative"
    r"|not (?:the|my|a|an|yet|final|right|quite|correct)|(?:isn't|can't be) (?:right|quite|correct)"
    r"|(?:let me|let's|i (?:will|should|need to|must|have to)|i'll) (?:re-?|double-)?check"
    r"(?![^\n]{0,200}\b(?:correct|matches)\b))\b"
    rf"|\A\W*(?:negative|minus)\W*(?:\Z|\n)|\A\W*(?:now|then|next)\b|[\"']negative"
    r"|sign is negative|minus sign|\bsubject to"
    rf"|\bNo[.,:]|[?✗✘❌]|等等|不对|\b{_SCALE_WORDS}",
    re.IGNORECASE,
)
# Sentences to the reader, which take nothing back, whatever words they contain.
_COURTESY = re.compile(
    r"(?:^|(?<=[.!?\n]))[ \t]{0,9}"
    r"(?:let me know if you(?:['’]d| would) (?:like|prefer)\b"
    r"|(?:sorry|(?:my )?apologies|I apologi[sz]e)\b"
    r"(?=[^.!?\n]*\b(?:delay|wait|waiting|long|late|slow\w*|inconvenience)\b)"
    r"|(?:is there|do you|would you|can I|could I|may I)\b(?=[^.!?\n]*\b(?:anything|help|need)\b)"
    r"|(?:would you like|do you want)\b(?![^.!?\n]*\bcheck)"
    r"|(?:(?:do )?let me know|(?:please )?feel free|please|(?:I )?hope|I (?:recommend|suggest)"
    r"|if you (?:have|need|want)"
    r"|you (?:can|could|may|might|should))\b"
    r"(?![^.!?\n]*\b(?:ignore|disregard|instead|scratch|forget|replace|read|note)\b)"
    r"(?=[^.!?\n]*\b(?:if|any|whether)\b|(?![^.!?\n]*\b(?:wrong|incorrect|false|invalid)\b)))"
    r"[^.!?\n0-9]*+(?:[.!?\n]|\Z)",
    re.IGNORECASE,
)

# A sign, an operator or a unit that changes the value of an object next to it.
_OBJECT_ATTACHED_BEFORE = re.compile(r"(?:[-−–/^×·√~]|≠\s?)\Z")
_OBJECT_ATTACHED_AFTER = re.compile(
    r"[A-Za-z]{1,2}(?![A-Za-z])|\[\"|[ \t]{0,9}(?:minus|plus|times)\b"
    rf"|[ \t]{{0,9}}+(?:\\?%|\^|[-+−×·÷*/]\s{{0,9}}[0-9]|{_SCALE_WORDS})",
    re.IGNORECASE,
)
_ATTACHED_BEFORE = re.compile(
    r"(?:[-−–](?:\$|\\\(|\\\[)?"
    r"|(?:[+/^_≠×·√0-9]|[\^_]\{|\\(?:sqrt|n?eq?|log|ln|exp|frac)\b\{?)[ \t$]{0,9})\Z"
)
_ATTACHED_AFTER = re.compile(
    r"[A-Za-z]{1,2}(?![A-Za-z])|(?:\s|\$|\\\)|\\\]){0,9}+(?:\\?%|!|\^|[0-9]|[+/×·÷]\s{0,9}[\w\\]|\\(?:pi|times|cdot)"
    rf"|{_SCALE_WORDS})",
    re.IGNORECASE,
)

_NOT_A_STATEMENT = re.compile(
    r"\b(?:example|e\.g|format|form|template|schema|skeleton|sample(?! (?:standard|std))|dummy"
    r"|default|instructions?|like|unlike|such as|not|never|no|instead|wrong|incorrect|false|if"
    r"|unless|would|could|should|might|may|must|maybe|perhaps|possibly|guess|estimate|previous\w*"
    r"|old|first|initial\w*|draft|placeholder|suppose|assum\w+|ignor\w+|intermediate|partial|part"
    r"|step|otherwise|alternatively|when|where|whether|case|given|provided|had|were|mistake\w*"
    r"|base|binary|octal|hexadecimal|doubt\w*|without|round\w*|absolute|sign|is it|\w+n['’]t)\b"
    rf"|\b{_SCALE_WORDS}",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:wait|actually|but|however|sorry|mistake\w*|wrong|incorrect\w*|correct\w*|oops|hmm+|no|not"
    r"|error|instead|rather|should|let me|let us|let's|revis\w+|reconsider\w*|verif\w+|check\w*"
    r"|unsure|uncertain|guess|maybe|perhaps|example|format|placeholder|cannot|\w+n['’]t|false|ignore"
    r"|disregard|never ?mind|misread|forgot|apologies|invalid|scratch|recheck\w*|draft|lost)\b|\?",
    re.IGNORECASE,
)


def introduces_answer(
    text: str, start: int, value: AnswerValue, prompt: str, operator: str = ""
) -> bool:
    """Return whether the words before an object are known to introduce an answer, or none exist.

    Numbers among them are the answer or in the question; letters are the answer. operator: the
    question's; the words do not name the result of another one.
    """
    clause = clause_before(text, start, value, prompt, operator)
    return (
        clause is not None
        and are_known_numbers(clause, value, prompt)
        and _consists_of(clause, _INTRODUCING)
    )


def may_introduce_answer(clause: str) -> bool:
    """Return whether the clause before an object does not introduce something else.

    As in `introduces_answer`, except that unknown words and numbers are allowed.
    """
    return not _OTHER_THAN_ANSWER.search(clause)


def clause_before(
    text: str, start: int, value: AnswerValue, prompt: str, operator: str
) -> str | None:
    """Return the clause before an object without option letters; None if it excludes an answer."""
    before = _FENCE_BEFORE.sub("", text[max(start - _WINDOW, 0) : start])
    if not before.rpartition("\n")[2].strip() and (above := _LINE_ABOVE.search(before)):
        line = above[1].strip()
        is_title = "\n" not in above[2] or line.endswith(":") or line[:1] in ("#", "*")
        before = line if is_title else ""
    sentence = _SENTENCE_END.split(before)[-1]
    if _CONDITION.search(sentence) or _OPEN_SIGN.search(sentence):
        return None
    if names_other_result(sentence, operator):
        return None
    clause = _CLAUSE_END.split(sentence)[-1]
    if isinstance(value, str):
        letters = with_options(_OTHER_LETTER, prompt)
        if any(letter != value for letter in letters.findall(clause)):
            return None
        return letters.sub("", clause)
    return clause


def are_known_numbers(text: str, value: AnswerValue, prompt: str) -> bool:
    """Return whether all numbers of a text are the answer, in the answer, or in the question."""
    literals = [literal.group() for literal in NUMBER_LITERAL.finditer(text)]
    if not literals:
        return True
    known = {literal.group().lstrip(SIGNS) for literal in NUMBER_LITERAL.finditer(prompt)}
    values = value if isinstance(value, tuple) else (value,)
    return all(
        literal.lstrip(SIGNS) in known or read_number(literal) in values for literal in literals
    )


def explains(text: str) -> bool:
    """Return whether a text after an answer consists of words that take nothing back."""
    return _consists_of(text, _INTRODUCING | _EXPLAINING)


def _consists_of(text: str, words: frozenset[str]) -> bool:
    return all(word.lower().replace("’", "'") in words for word in _WORD.findall(text))


def is_example(text: str, start: int) -> bool:
    """Return whether the text before an object shows it as an example or a format."""
    before = _FENCE_BEFORE.sub("", text[max(start - _WINDOW, 0) : start]).rstrip()
    if _EXAMPLE.search(before):
        return True
    sentence = _SENTENCE_END.split(before)[-1]
    if not _FORMAT.search(sentence):
        return False
    return bool(_INTENTION.search(sentence)) or not _FORMAT_OF_ANSWER.search(sentence)


def is_placeholder(value: str) -> bool:
    """Return whether the value in an object stands for any answer."""
    return bool(_PLACEHOLDER.match(value))


def without_courtesy(rest: str) -> str:
    """Return the text after an answer without sentences to the reader, such as `Sorry to wait!`."""
    return _COURTESY.sub("", rest)


def is_taken_back(rest: str) -> bool:
    """Return whether the text after an answer has a word that takes it back."""
    return bool(_RETRACTION.search(rest))


def is_object_attached(text: str, start: int, end: int) -> bool:
    """Return whether a sign, an operator or a unit next to an object changes its value."""
    before = text[max(start - 2, 0) : start]
    return bool(_OBJECT_ATTACHED_BEFORE.search(before) or _OBJECT_ATTACHED_AFTER.match(text, end))


def is_attached(text: str, start: int, end: int) -> bool:
    """Return whether a sign, an operator or a unit next to a statement changes its value."""
    before = text[max(start - 20, 0) : start]
    return bool(_ATTACHED_BEFORE.search(before) or _ATTACHED_AFTER.match(text, end))


def is_meant(text: str, start: int) -> bool:
    """Return whether the words before a statement leave it a statement."""
    before = _FENCE_BEFORE.sub("", text[max(start - _WINDOW, 0) : start])
    line = before.rpartition("\n")[2]
    if not line.strip() and (above := _LINE_ABOVE.search(before)) and above[1].endswith(":"):
        line = above[1]
    return not is_uncertain(line) and not is_example(text, start)


def is_uncertain(words: str) -> bool:
    """Return whether the words name an example, a condition, a doubt or a denial."""
    return bool(_NOT_A_STATEMENT.search(words))


def is_doubted(rest: str) -> bool:
    """Return whether the text after a statement has a word that may take it back."""
    return bool(_TAKEN_BACK.search(rest))
