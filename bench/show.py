"""Single items in the terminal: question, truth, answer, and where the digits part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.text import Text

from bench.errors import BadInput, printable
from bench.records import Answer, ProtocolName
from bench.report.digits import parting
from bench.scoring import Row, score_run, signature
from bench.scoring.evidence import tool_mentions
from bench.scoring.taxonomy import CATEGORIES, outcome

_LONGEST = 300
_DISPLAY = {category.name: category.display for category in CATEGORIES}


class Wanted(NamedTuple):
    """Which items to show; None for all.

    kinds: names of `scoring.taxonomy`. difficulty: least and largest δ in base 10. ids: beginnings
    of item ids. limit: items per task.
    """

    tasks: Sequence[str] | None = None
    wrong: bool = False
    kinds: Sequence[str] | None = None
    difficulty: tuple[int, int] | None = None
    ids: Sequence[str] | None = None
    limit: int | None = None


def show(
    run: Path,
    wanted: Wanted = Wanted(),  # noqa: B008 - immutable
    protocol: ProtocolName = "exact",
) -> Iterator[Text]:
    """A heading per task with the signature of its scores, then one text per item.

    BadInput for a folder that holds no run, a task that the run did not ask, or an unknown kind.
    """
    for kind in wanted.kinds or ():
        if kind not in _DISPLAY:
            raise BadInput(f"unknown kind {kind!r}: give one of {', '.join(_DISPLAY)}")
    if wanted.kinds and protocol != "exact":
        raise BadInput(f"the {protocol} protocol tells no kinds of errors: leave out --kind")
    scored = score_run(run, protocol)
    for task in wanted.tasks or tuple(scored.rows):
        if task not in scored.rows:
            raise BadInput(f"{run} has no task {task!r}: it asked {', '.join(scored.rows)}")
        rows = [row for row in scored.rows[task] if _is_wanted(row, wanted)]
        shown = rows[: wanted.limit]
        counts = f"{len(shown)} of {len(scored.rows[task])} items"
        yield Text(printable(f"{counts}  {signature(scored, task)}"), style="bold")
        yield from map(_item, shown)


def _is_wanted(row: Row, wanted: Wanted) -> bool:
    item, _, score = row
    if wanted.wrong and score.exact_match:
        return False
    if wanted.kinds and outcome(score) not in wanted.kinds:
        return False
    if wanted.ids and not item.id.startswith(tuple(wanted.ids)):
        return False
    least, largest = wanted.difficulty or (item.difficulty.base10, item.difficulty.base10)
    return least <= item.difficulty.base10 <= largest


def _item(row: Row) -> Text:
    item, response, score = row
    text = Text()
    text.append(printable(item.id), style="bold")
    text.append(f"  δ={item.difficulty.base10}{_spent(row)}\n", style="dim")
    text.append(f"  question  {printable(item.prompt)}\n")
    if score.parsed is not None:
        text.append_text(_against(score.parsed, item.answer))
    else:
        text.append(f"  truth     {_plain(item.answer)}\n")
        if response is not None:
            said = response.error.message if response.error else response.text
            text.append(f"  said      {_visible(said)}\n", style="red")
    text.append_text(_verdict(row))
    return text


def _spent(row: Row) -> str:
    """Tokens and dollars of a response, as far as they are known."""
    if row.response is None:
        return ""
    generated, cost = row.response.usage.generated, row.response.cost
    tokens = "" if generated is None else f"  {generated:,} tokens"
    return tokens + ("" if cost is None else f"  ${cost:.3g}")


def _verdict(row: Row) -> Text:
    score = row.score
    facts = [_judged(row)]
    if not score.exact_match and score.status == "ok":
        if score.log_smape is not None:
            facts.append(f"log-sMAPE {100 * score.log_smape:.1f}")
        if score.correct_digits is not None:
            digits = "digit" if score.correct_digits == 1 else "digits"
            facts.append(f"{score.correct_digits} leading {digits} right")
    if row.response is not None and (said := tool_mentions(row.response.reasoning_text)):
        facts.append(f"its reasoning speaks of a tool: “{_visible(said[0])}”")
    style = "green" if score.exact_match else "yellow" if score.status == "ok" else "red"
    return Text("  " + ", ".join(facts), style=style)


def _judged(row: Row) -> str:
    score = row.score
    if score.exact_match:
        return "exact match"
    if score.protocol == "exact":
        return _DISPLAY[outcome(score)].lower()
    return "wrong" if score.status == "ok" else score.status


def _against(answer: Answer, truth: Answer) -> Text:
    """Truth and answer, one under the other; red from where the answer parts from the truth."""
    if isinstance(answer, str) != isinstance(truth, str):
        answer, truth = _plain(answer), _plain(truth)
    shift, at = parting(answer, truth)
    text = Text(f"  truth     {' ' * max(0, -shift)}{_plain(truth)}\n")
    text.append(f"  answer    {' ' * max(0, shift)}")
    shown = _visible(_plain(answer))
    if at is None:
        return text.append(f"{shown}\n", style="green")
    agreed = max(0, at - max(0, shift)) if isinstance(answer, str) else len(_plain(answer[:at]))
    text.append(shown[:agreed], style="green")
    return text.append(f"{shown[agreed:]}\n", style="bold red")


def _plain(answer: Answer) -> str:
    return printable(answer if isinstance(answer, str) else ", ".join(answer))


def _visible(text: str) -> str:
    """Model output made harmless for a terminal: control characters spelt out, length bounded."""
    clean = printable(text[: _LONGEST + 1])
    return clean if len(text) <= _LONGEST else f"{clean[:_LONGEST]}… ({len(text)} characters)"
