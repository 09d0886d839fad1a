"""Items of a run as text: question, truth, answers, and the first digit that differs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.text import Text

from numbench.errors import BadInput, printable
from numbench.records import Answer, ProtocolName, answer_text
from numbench.reporting.digit_alignment import align_digits
from numbench.scoring import ScoredItem, score_run, signature
from numbench.scoring.error_kinds import CATEGORIES, categorize
from numbench.scoring.scored_rows import item_groups
from numbench.tasks import TASKS

MAX_SHOWN_CHARACTERS = 300
_DISPLAY = {category.name: category.display for category in CATEGORIES}


class ItemFilter(NamedTuple):
    """Which items to show; None means all.

    wrong: only wrong answers. kinds: error kinds, by their names in `scoring/categories.toml`.
    difficulty: smallest and largest δ in base 10. ids: prefixes of item ids. limit: items per task.
    """

    tasks: Sequence[str] | None = None
    wrong: bool = False
    kinds: Sequence[str] | None = None
    difficulty: tuple[int, int] | None = None
    ids: Sequence[str] | None = None
    limit: int | None = None


class ShownTask(NamedTuple):
    """What a filter selects of a task of a run.

    samples: of each question. total: answers of the run, or open ones. matching: those that the
    filter matches; with a limit, `answers` has the first of them.
    """

    signature: str
    samples: int
    total: int
    matching: int
    answers: tuple[ScoredItem, ...]


def select_items(
    run: Path,
    item_filter: ItemFilter = ItemFilter(),  # noqa: B008 - immutable
    protocol: ProtocolName = "exact",
) -> dict[str, ShownTask]:
    """Return what the filter selects of each task of a run.

    Raises BadInput if the folder is not a run, or for an unknown task or kind.
    """
    if item_filter.limit is not None and item_filter.limit < 1:
        raise BadInput(f"--limit {item_filter.limit}: give 1 or more")
    if (low_high := item_filter.difficulty) and low_high[0] > low_high[1]:
        raise BadInput("--difficulty {} {}: give the smaller number first".format(*low_high))
    for kind in item_filter.kinds or ():
        if kind not in _DISPLAY:
            raise BadInput(f"unknown kind {kind!r}: use {', '.join(_DISPLAY)}")
    if item_filter.kinds and protocol == "paper":
        raise BadInput(f"the {protocol} protocol has no kinds of errors: omit --kind")
    scored = score_run(run, protocol)
    selected = {}
    for task in item_filter.tasks or scored.rows:
        if task not in scored.rows:
            raise BadInput(f"{run} has no task {task!r}: it has {', '.join(scored.rows)}")
        rows = [row for row in scored.rows[task] if _matches(row, item_filter)]
        shown = tuple(row for group in item_groups(rows)[: item_filter.limit] for row in group)
        total = len(scored.rows[task])
        known = signature(scored, task), scored.info.samples, total, len(rows)
        selected[task] = ShownTask(*known, shown)
    return selected


def item_texts(selected: Mapping[str, ShownTask]) -> Iterator[Text]:
    """Yield a heading with the signature per task, then one text per item and sample.

    A task without such items is left out; if all are, there is one text that says so.
    """
    samples = max(of_task.samples for of_task in selected.values())
    unit = "questions" if samples == 1 else "samples"
    for task, of_task in selected.items():
        if not of_task.answers:
            continue
        counts = f"{of_task.matching} of {of_task.total} {unit}"
        shown = len(of_task.answers)
        counts += f", {shown} shown" if shown < of_task.matching else ""
        heading = Text(f"{TASKS[task].display}: {counts}", style="bold")
        yield heading.append("\n  " + printable(of_task.signature), style="not bold dim")
        yield from (_item(row, samples) for row in of_task.answers)
    if not any(of_task.answers for of_task in selected.values()):
        total = sum(of_task.total for of_task in selected.values())
        yield Text(f"0 of {total:,} {unit}: none matches the options")


def _matches(row: ScoredItem, item_filter: ItemFilter) -> bool:
    item, _, score = row
    smallest, largest = item_filter.difficulty or (-math.inf, math.inf)
    return (
        not (item_filter.wrong and (score.exact_match or not row.is_answered))
        and (not item_filter.kinds or categorize(score) in item_filter.kinds)
        and (not item_filter.ids or item.id.startswith(tuple(item_filter.ids)))
        and smallest <= item.difficulty.base10 <= largest
    )


def _item(row: ScoredItem, samples: int) -> Text:
    item, response, score = row
    text = Text()
    text.append(printable(item.id), style="bold")
    if samples > 1:
        text.append(f"  sample {row.sample + 1} of {samples}")
    text.append(f"  δ={item.difficulty.base10}{_usage(row)}\n", style="dim")
    text.append(f"  question  {printable(item.prompt)}\n")
    for call in (call for turn in (response.turns if response else ()) for call in turn.calls):
        text.append(f"  call      {_visible(call.arguments)} → {_visible(call.result or '')}\n")
    if score.parsed is not None:
        text.append_text(_comparison(score.parsed, item.answer))
    else:
        text.append(f"  truth     {printable(answer_text(item.answer))}\n")
        if response is not None:
            label = "error   " if response.error else "response"
            message = response.error.message if response.error else response.text
            text.append(f"  {label}  {_visible(message)}\n", style="red")
    text.append_text(_result(row))
    return text


def _usage(row: ScoredItem) -> str:
    """Return tokens and dollars of a response, as far as they are known."""
    if row.response is None:
        return ""
    generated, cost = row.response.usage.generated, row.response.cost
    tokens = "" if generated is None else f"  {generated:,} tokens"
    return tokens + ("" if cost is None else f"  ${cost:.3g}")


def _result(row: ScoredItem) -> Text:
    score = row.score
    facts = [_result_label(row)]
    if not score.exact_match and score.status == "ok":
        if score.log_smape is not None:
            facts.append(f"log-sMAPE {100 * score.log_smape:.1f}")
        if score.correct_digits is not None:
            digits = "digit" if score.correct_digits == 1 else "digits"
            facts.append(f"{score.correct_digits} leading {digits} correct")
    style = "green" if score.exact_match else "yellow" if score.status == "ok" else "red"
    return Text("  " + ", ".join(facts), style=style)


def _result_label(row: ScoredItem) -> str:
    score = row.score
    if score.exact_match:
        return "exact match"
    if score.protocol != "paper":
        return _DISPLAY[categorize(score)].lower()
    return "wrong" if score.status == "ok" else score.status


def _comparison(answer: Answer, truth: Answer) -> Text:
    """Return truth and answer aligned, red from the first digit or element that differs."""
    if isinstance(answer, str) != isinstance(truth, str):
        answer, truth = answer_text(answer), answer_text(truth)
    shift, difference = align_digits(answer, truth)
    text = Text(f"  truth     {' ' * max(0, -shift)}{printable(answer_text(truth))}\n")
    text.append(f"  answer    {' ' * max(0, shift)}")
    shown = _visible(answer_text(answer))
    if difference is None:
        return text.append(f"{shown}\n", style="green")
    if isinstance(answer, str):
        equal_length = max(0, difference - max(0, shift))
    else:
        equal_length = len(printable(answer_text(answer[:difference])))
    text.append(shown[:equal_length], style="green")
    return text.append(f"{shown[equal_length:]}\n", style="bold red")


def _visible(text: str) -> str:
    """Return model output made safe for a terminal: control characters escaped, length bounded."""
    safe = printable(text[: MAX_SHOWN_CHARACTERS + 1])
    if len(text) <= MAX_SHOWN_CHARACTERS:
        return safe
    return f"{safe[:MAX_SHOWN_CHARACTERS]}… ({len(text):,} characters)"
