"""The `paper` protocol: the published study's scores, bug for bug, in float64.

It reproduces the study's tables from its raw responses, including the study's faults: it
truncates digits instead of rounding them, so that models that print more digits score lower; it
compares MinMax answers as strings (`5.0` differs from `5`); and it scores against the study's own
labels, some of which are wrong. A task outside the study is scored like the study's task with
the same kind of answer.
"""

from __future__ import annotations

import json
import math
import re

from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS
from numbench.records import Answer, Item, Response, RunInfo, Score, Status, answer_text
from numbench.scoring.error_kinds import unparsed_status
from numbench.tasks import TASKS

ITEMS_PER_TASK = 500
"""Number of items per task that the study averaged over."""

STUDY_NUMBER = re.compile(
    r"[-+]?(?:0(?!\.[0-9])|[0-9]*\.[0-9]+|[1-9][0-9]*)(?:[eE][-+]?[0-9]+)?", re.ASCII
)
"""What the study recognized as a number: 0 unless a fraction follows, a fraction, or an integer
without leading zeros, each with an optional exponent."""

# The study excluded token counts above 200 of this run as outliers.
_TRIMMED_RUN = ("gemini-2.5-flash", "none")
_MAX_TRIMMED_TOKENS = 200

_EPSILON = 1e-100
_LEADING_NUMBER = re.compile(r"(?:^|\s)([-+]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([-+]?[0-9]{1,9}))?")

_BRACES = re.compile(r"\{.*\}", re.DOTALL)
_FENCE = re.compile(r"```(?:json)?", re.IGNORECASE)
_JSON_LABEL = re.compile(r"^\s*json\b\s*:?", re.IGNORECASE)
_THOUGHT_TAG = re.compile(r"</?(?:think|thinking|thought|thoughts)>", re.IGNORECASE)
# In upper-cased text, a letter that is not next to another letter.
_LONE_LETTER = re.compile(r"(?<![A-Z])[A-F](?![A-Z])")


def score_paper(item: Item, response: Response | None, label: Answer | None = None) -> Score:
    """Return the study's score of one response.

    label: the dataset's published label; without one, the exact answer counts.
    """
    is_graded, parsed = _has_log_smape(item.task), None
    status: Status = "missing"
    match, log_smape = False, 0.0
    if response is not None:
        status = unparsed_status(response)
        parsed = None if status == "error" else parse_paper(response.text, item.task)
    if parsed is not None:
        status, truth = "ok", answer_text(item.answer if label is None else label)
        if is_graded:
            match, log_smape = _same_digits(parsed, truth), _log_smape(parsed, truth)
        else:
            match = _comparison_task_match(item.task, parsed, truth)
    return Score(
        item_id=item.id,
        protocol="paper",
        status=status,
        exact_match=match,
        log_smape=log_smape if is_graded else None,
        # A lone surrogate, which JSON can escape, has no bytes in UTF-8.
        parsed=parsed and parsed.encode(errors="replace").decode(),
    )


def study_token_count(info: RunInfo, response: Response) -> float | None:
    """Return the token count that the study averaged; None if it left the response out.

    For an imported run, the study's `tokens` column, which mixes units (completion tokens
    including reasoning, thought tokens only, or visible tokens) and is -1 for a failed request.
    For a measured run, its generated tokens. Token counts above 200 of gemini-2.5-flash/none were
    excluded by the study as outliers.
    """
    count: object = response.usage.generated
    if info.source == "imported":
        count = response.extra.get("study_tokens")
    if not isinstance(count, int | float):
        return None
    is_trimmed = (info.model, info.reasoning) == _TRIMMED_RUN
    return None if is_trimmed and count > _MAX_TRIMMED_TOKENS else float(count)


def _has_log_smape(task: str) -> bool:
    return TASKS[task].metric == "log_smape"


def _log_smape(parsed: str, truth: str) -> float:
    """Return log-sMAPE in float64; 0 if a value is not a float or the sMAPE is not finite."""
    try:
        y, predicted = float(truth), float(parsed)
    except ValueError:
        return 0.0
    smape = abs(predicted - y) / (abs(y) + abs(predicted) + _EPSILON)
    if not math.isfinite(smape):
        return 0.0
    return min(1.0, math.log10(smape + _EPSILON) / -SIGNIFICANT_DIGITS) + 0.0


def _same_digits(parsed: str, truth: str) -> bool:
    """Return the study's exact match of numbers: same sign, exponent and first 15 digits."""
    given, wanted = _truncated_number(parsed), _truncated_number(truth)
    return given is not None and given == wanted


def _truncated_number(text: str) -> tuple[bool, int, str] | None:
    """Return the first number at the start of the text or after whitespace.

    As the study's exact match compares it: whether it is negative, its decimal exponent, and the
    first 15 digits, truncated.
    """
    for match in _LEADING_NUMBER.finditer(text):
        sign, whole, fraction, exponent = match.groups(default="")
        if not whole and not fraction:
            continue
        digits = whole + fraction
        significand = digits.lstrip("0")
        if not significand:
            return False, 0, "0" * SIGNIFICANT_DIGITS
        leading_zeros = len(digits) - len(significand)
        position = len(whole) - leading_zeros - 1 + int(exponent or 0)
        kept = significand[:SIGNIFICANT_DIGITS].ljust(SIGNIFICANT_DIGITS, "0")
        return sign == "-", position, kept
    return None


def _comparison_task_match(task: str, parsed: str, truth: str) -> bool:
    """Return the study's exact match of letters, copied numbers and lists."""
    kind = TASKS[task].answer_kind
    if kind == "letter":
        return parsed.upper() == truth
    if kind == "number":
        return parsed.strip().strip("\"'").strip() == truth
    return _floats(parsed) == _floats(truth)


def _floats(text: str) -> list[float]:
    return [float(number) for number in STUDY_NUMBER.findall(text)]


def parse_paper(text: str, task: str) -> str | None:
    """Return the answer string that the study read from a response; None if it found none."""
    if text.count("{") == 1 and text.count("}") == 1:
        enclosed = _BRACES.search(text)
        text = enclosed.group() if enclosed else text
    return _json_answer(text, task) or _first_number(text) or _parse_without_number(text, task)


def _parse_without_number(text: str, task: str) -> str | None:
    """Apply the study's further attempts to a text without any number.

    The study also searched again for lists and numbers. Those attempts cannot succeed on a text
    without numbers and are left out here.
    """
    text = _THOUGHT_TAG.sub("", _JSON_LABEL.sub("", _FENCE.sub("", text))).strip()
    answer = _json_answer(text, task) or _first_object_answer(text, task)
    if answer is None and TASKS[task].answer_kind == "letter":
        letter = _LONE_LETTER.search(text.upper())
        return letter.group() if letter else None
    return answer


def _json_answer(text: str, task: str) -> str | None:
    """Return Python's `str` of `answer` if the text is one JSON object with that key."""
    # The study kept the notation of JSON numbers in MinMax and Sorting.
    is_verbatim = not _has_log_smape(task) and TASKS[task].answer_kind != "letter"
    convert = str if is_verbatim else float
    try:
        value = json.loads(text, parse_float=convert, parse_int=convert)
    except (ValueError, RecursionError):
        return None
    return str(value["answer"]) if isinstance(value, dict) and "answer" in value else None


def _first_object_answer(text: str, task: str) -> str | None:
    """Return the answer in the first balanced `{...}` that contains "answer"."""
    depth, start = 0, 0
    for brace in re.finditer(r"[{}]", text):
        if brace.group() == "{":
            start = brace.start() if depth == 0 else start
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0 and '"answer"' in text[start : brace.end()]:
                return _json_answer(text[start : brace.end()], task)
    return None


def _first_number(text: str) -> str | None:
    match = STUDY_NUMBER.search(text)
    return str(float(match.group())) if match else None
