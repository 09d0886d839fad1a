"""Single items in the terminal: question, truth, answer, and where the digits part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from bench.errors import BadInput
from bench.records import Answer, ProtocolName
from bench.report.digits import parting
from bench.scoring import Row, score_run

_LONGEST = 300


def show(
    run: Path,
    protocol: ProtocolName = "exact",
    tasks: tuple[str, ...] | None = None,
    wrong: bool = False,
    limit: int | None = None,
) -> Iterator[Text]:
    """One text per item of a run, wrong ones only if `wrong`, at most `limit` per task.

    BadInput for a folder that holds no run, or for a task that the run did not ask.
    """
    scored = score_run(run, protocol)
    for task in tasks or tuple(scored.rows):
        if task not in scored.rows:
            raise BadInput(f"{run} has no task {task!r}: it asked {', '.join(scored.rows)}")
        rows = [row for row in scored.rows[task] if not (wrong and row.score.exact_match)]
        for row in rows[:limit]:
            yield _item(row)


def _item(row: Row) -> Text:
    item, response, score = row
    text = Text()
    text.append(item.id, style="bold")
    text.append(f"  δ={item.difficulty.base10}\n", style="dim")
    text.append(f"  question  {item.prompt}\n")
    text.append(f"  truth     {_plain(item.answer)}\n")
    if score.parsed is not None:
        text.append("  answer    ")
        text.append_text(_against(score.parsed, item.answer))
        text.append("\n")
    elif response is not None:
        said = response.error.message if response.error else response.text
        text.append(f"  said      {_visible(said)}\n", style="red")
    text.append_text(_verdict(row))
    return text


def _verdict(row: Row) -> Text:
    score = row.score
    if score.status != "ok":
        return Text(f"  {score.status}", style="red")
    if score.exact_match:
        return Text("  exact match", style="green")
    facts = [f"wrong ({score.error_kind})"]
    if score.log_smape is not None:
        facts.append(f"log-sMAPE {100 * score.log_smape:.1f}")
    if score.correct_digits is not None:
        facts.append(f"{score.correct_digits} leading digits right")
    return Text("  " + ", ".join(facts), style="yellow")


def _against(answer: Answer, truth: Answer) -> Text:
    """The answer, green as far as it agrees with the truth and red from where the two part."""
    if isinstance(answer, str) != isinstance(truth, str):
        answer, truth = _plain(answer), _plain(truth)
    shift, at = parting(answer, truth)
    shown = _visible(_plain(answer))
    if at is None:
        return Text(shown, style="green")
    agreed = max(0, at - max(0, shift)) if isinstance(answer, str) else len(_plain(answer[:at]))
    return Text(shown[:agreed], style="green").append(shown[agreed:], style="bold red")


def _plain(answer: Answer) -> str:
    return answer if isinstance(answer, str) else ", ".join(answer)


def _visible(text: str) -> str:
    """Model output made harmless for a terminal: control characters spelt out, length bounded."""
    clean = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: _LONGEST + 1])
    return clean if len(text) <= _LONGEST else f"{clean[:_LONGEST]}… ({len(text)} characters)"
