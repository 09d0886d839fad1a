"""The `paper` protocol: the published study's scores, bug for bug, in float64.

It reproduces the study's tables from its raw responses. What it does wrong on purpose: it cuts
digits off instead of rounding them, so that models which print more digits lose; MinMax compares
strings (`5.0` is not `5`); and it scores against the study's own labels, some of them wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from bench.records import Answer, Item, Response, RunInfo, Score, Status
from bench.scoring.paper_parse import NUMBER, parse_paper
from bench.scoring.status import unparsed_status
from bench.tasks import TASKS

ITEMS = 500
"""How many items of a task the study averaged over."""

_TRIMMED = ("gemini-2.5-flash", "none")
_TRIMMED_ABOVE = 200

_EPSILON = 1e-100
_DIGITS = 15
_LEADING_NUMBER = re.compile(r"(?:^|\s)([-+]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([-+]?[0-9]{1,9}))?")


class _Digits(NamedTuple):
    """A number as the study's exact match sees it: the first 15 digits, cut off."""

    negative: bool
    exponent: int
    digits: str


def score_paper(item: Item, response: Response | None, label: Answer | None = None) -> Score:
    """The study's score of one response.

    Against the label that an imported response brings along, else `label`, else the item's answer.
    """
    if response is not None and isinstance(own := response.extra.get("study_label"), str):
        label = own
    truth = _as_text(item.answer if label is None else label)
    if response is None:
        return _score(item, "missing", None, False, 0.0)
    parsed = parse_paper(response.text, item.task)
    if parsed is None:
        return _score(item, unparsed_status(response), None, False, 0.0)
    if TASKS[item.task].metric == "log_smape":
        match = _same_digits(parsed, truth)
        return _score(item, "ok", parsed, match, _log_smape(parsed, truth))
    return _score(item, "ok", parsed, _matches(item.task, parsed, truth), 0.0)


def tokens(info: RunInfo, responses: Iterable[Response]) -> list[float]:
    """The token counts that the study averaged.

    For its own files that is their `tokens` column, which mixes units (completion tokens with
    reasoning, thought tokens alone, or visible tokens) and holds -1 where a request failed; one
    model's runaway answers were left out. A run of ours gives its generated tokens.
    """
    if info.source == "imported":
        column = [response.extra.get("study_tokens") for response in responses]
        known = [float(count) for count in column if isinstance(count, int | float)]
    else:
        known = [float(r.usage.generated) for r in responses if r.usage.generated is not None]
    if (info.model, info.reasoning) == _TRIMMED:
        return [count for count in known if count <= _TRIMMED_ABOVE]
    return known


def _score(item: Item, status: Status, parsed: str | None, match: bool, log_smape: float) -> Score:
    return Score(
        item_id=item.id,
        protocol="paper",
        status=status,
        exact_match=match,
        log_smape=log_smape if TASKS[item.task].metric == "log_smape" else None,
        parsed=parsed,
    )


def _as_text(answer: Answer) -> str:
    return answer if isinstance(answer, str) else ", ".join(answer)


def _log_smape(parsed: str, truth: str) -> float:
    """log-sMAPE in float64; 0 for what is no float, and for an infinite or undefined score."""
    try:
        y, predicted = float(truth), float(parsed)
    except ValueError:
        return 0.0
    smape = abs(predicted - y) / (abs(y) + abs(predicted) + _EPSILON)
    if not math.isfinite(smape):
        return 0.0
    return min(1.0, math.log10(smape + _EPSILON) / -_DIGITS) + 0.0


def _same_digits(parsed: str, truth: str) -> bool:
    """The study's exact match of numbers: sign, exponent and the first 15 digits, cut off."""
    given, wanted = _first_digits(parsed), _first_digits(truth)
    return given is not None and given == wanted


def _first_digits(text: str) -> _Digits | None:
    """The first number at the start of the text or after a blank."""
    for match in _LEADING_NUMBER.finditer(text):
        sign, whole, fraction, exponent = match.groups(default="")
        if not whole and not fraction:
            continue
        digits = whole + fraction
        significand = digits.lstrip("0")
        if not significand:
            return _Digits(False, 0, "0" * _DIGITS)
        place = len(whole) - (len(digits) - len(significand)) - 1 + int(exponent or 0)
        return _Digits(sign == "-", place, significand[:_DIGITS].ljust(_DIGITS, "0"))
    return None


def _matches(task: str, parsed: str, truth: str) -> bool:
    """The study's judgement of the comparison tasks."""
    if task == "interval":
        return parsed.upper() == truth
    if task == "minmax":
        return parsed.strip().strip("\"'").strip() == truth
    return _floats(parsed) == _floats(truth)


def _floats(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]
