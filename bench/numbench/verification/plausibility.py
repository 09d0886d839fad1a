"""Do the responses look like those of a model without tools? Flags for a person to judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from numbench.forensics.answers import numeric_answers, read_questions
from numbench.forensics.findings import find
from numbench.records import Response
from numbench.scoring import ScoredRun
from numbench.scoring.tool_mentions import find_tool_mentions
from numbench.verification.findings import Finding, ok, warning

_SPARE_TOKENS = 16
"""Tokens around a text, such as its start and end."""


def check_plausibility(scored: ScoredRun) -> Iterator[Finding]:
    """Yield findings about usage, tool mentions, and answers that equal other computations."""
    responses = [
        row.response
        for rows in scored.rows.values()
        for row in rows
        if row.response is not None and row.response.error is None
    ]
    if not scored.info.model.startswith("baseline/"):
        yield from _check_usage(responses)
    mentions = sum(bool(find_tool_mentions(response.reasoning_text)) for response in responses)
    if mentions:
        yield warning(
            "tools",
            f"{mentions:,} of {len(responses):,} responses mention a calculator, code or search "
            "in their reasoning; read them with `numbench show`",
        )
    if scored.info.horizon is None:
        yield from _check_computations(scored)


def _check_usage(responses: Sequence[Response]) -> Iterator[Finding]:
    counts = {name: sum(map(is_odd, responses)) for name, is_odd in _ODD_USAGE.items()}
    for name, count in counts.items():
        if count:
            yield warning("usage", f"{count:,} of {len(responses):,} responses {name}")
    if not any(counts.values()):
        yield ok("usage", "token counts fit the texts")


def _has_no_count(response: Response) -> bool:
    return response.usage.generated is None


def _has_negative_count(response: Response) -> bool:
    usage = response.usage
    counts = (usage.input, usage.reasoning, usage.visible, usage.generated, response.cost)
    return any(count is not None and count < 0 for count in counts)


def _has_inconsistent_counts(response: Response) -> bool:
    usage = response.usage
    parts = max(usage.reasoning or 0, usage.visible or 0)
    return usage.generated is not None and usage.generated < parts


def _has_too_many_visible(response: Response) -> bool:
    """A token of a text has at least one byte."""
    visible = response.usage.visible
    return visible is not None and visible > len(response.text.encode()) + _SPARE_TOKENS


def _has_text_without_tokens(response: Response) -> bool:
    return bool(response.text) and response.usage.generated == 0


_ODD_USAGE: dict[str, Callable[[Response], bool]] = {
    "have no token count": _has_no_count,
    "have a negative count or cost": _has_negative_count,
    "have fewer generated tokens than reasoning or visible ones": _has_inconsistent_counts,
    "have more visible tokens than their text has bytes: wrong counts, or reasoning that is not "
    "counted by itself": _has_too_many_visible,
    "have a text, but no generated tokens": _has_text_without_tokens,
}


def _check_computations(scored: ScoredRun) -> Iterator[Finding]:
    answers = numeric_answers(scored, read_questions(scored))
    [known] = find([(scored, answers)])
    if known.evidence.is_flagged:
        yield warning("float64", f"{known.sentence} See `numbench report {scored.path}`")
    elif known.wrong:
        yield ok("float64", known.sentence)
