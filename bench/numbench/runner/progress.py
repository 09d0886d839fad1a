"""Progress of a run: its statistics, and their display on stderr.

A live table on a terminal, a line every 30 seconds in a log.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from numbench.errors import printable
from numbench.records import Completion, Item, Response
from numbench.tasks import TASKS

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

SEPARATOR, NO_VALUE = " · ", "–"

REDRAW_INTERVAL_SECONDS = 0.25
LOG_INTERVAL_SECONDS = 30.0

FIRST_LINE_DELAY_SECONDS = 2.0
"""Seconds without results after which the progress is first shown."""

_MAX_FAILURE_CHARACTERS = 150


class TaskProgress(NamedTuple):
    """Progress of one task, with the results of earlier calls of the same run.

    Counts are of requests: one per item, or per sample of an item. answered, errors: completed.
    scored, correct: answers that were scored, and how many of them match. generated_tokens: a sum
    over `answers_with_tokens` answers. cost: US dollars; both are None if nothing was reported.
    unknown_costs: number of answers of unknown cost.
    """

    task: str
    total: int = 0
    answered: int = 0
    errors: int = 0
    scored: int = 0
    correct: int = 0
    answers_with_tokens: int = 0
    generated_tokens: int | None = None
    cost: float | None = None
    unknown_costs: int = 0

    @property
    def done(self) -> int:
        """Number of completed items."""
        return self.answered + self.errors

    @property
    def accuracy(self) -> float | None:
        """Share of the scored answers that are correct, None if there are none."""
        return self.correct / self.scored if self.scored else None

    @property
    def tokens_per_answer(self) -> float | None:
        """Mean generated tokens over the answers that report them, None if there are none."""
        if self.generated_tokens is None:
            return None
        return self.generated_tokens / self.answers_with_tokens

    def plus(self, other: TaskProgress) -> TaskProgress:
        """Return the sum of both, for the task of this one."""
        return TaskProgress(self.task, *map(_sum, self[1:], other[1:]))


class RunProgress(NamedTuple):
    """Progress of a run: of the whole run in `tasks`, of this call in the other fields.

    Counts are of requests: one per item, or per sample of an item. previously_done: requests that
    earlier calls completed. seconds: elapsed seconds. in_flight, concurrency_limit: requests in
    flight, and their present limit (0 if there is none to report). pause_seconds: seconds
    for which the provider still accepts no requests. note: a message for the user. last_failure:
    why the latest attempt failed, empty once a question is answered. horizons: of a measurement,
    what is known of each task. complete: number of its tasks that are.
    """

    tasks: tuple[TaskProgress, ...]
    previously_done: int = 0
    retries: int = 0
    seconds: float = 0.0
    in_flight: int = 0
    concurrency_limit: int = 0
    pause_seconds: float = 0.0
    note: str = ""
    last_failure: str = ""
    horizons: Mapping[str, str] = MappingProxyType({})
    complete: int = 0

    @property
    def overall(self) -> TaskProgress:
        """The sum of all tasks; its accuracy is that of all scored answers together."""
        return reduce(TaskProgress.plus, self.tasks, TaskProgress("all"))

    @property
    def total(self) -> int:
        """Number of items of the whole run."""
        return sum(task.total for task in self.tasks)

    @property
    def done(self) -> int:
        """Number of completed items of the whole run."""
        return sum(task.done for task in self.tasks)

    @property
    def rate(self) -> float:
        """Requests per second over the whole of this call."""
        return (self.done - self.previously_done) / self.seconds if self.seconds > 0 else 0.0

    @property
    def remaining_seconds(self) -> float | None:
        """Seconds to the end at this rate, None if there is no rate."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None


ProgressCallback = Callable[[RunProgress], None]
"""Receives the progress of a run after every change."""

ScoreCallback = Callable[[Item, Completion], bool | None]
"""Returns whether an answer is correct, None if it cannot be scored."""


def judged(item: Item, completion: Completion, judge: ScoreCallback | None) -> TaskProgress:
    """Return what the completion of a request adds to the progress of its task, but for costs."""
    failed = completion.error is not None
    correct = judge(item, completion) if judge else None
    generated = None if failed else completion.usage.generated
    return TaskProgress(
        item.task,
        answered=not failed,
        errors=failed,
        scored=correct is not None,
        correct=bool(correct),
        answers_with_tokens=generated is not None,
        generated_tokens=generated,
        unknown_costs=completion.cost is None and not failed,
    )


@dataclass(kw_only=True)
class RunReport:
    """The result of one call of `run`.

    Counts are of requests, one per item and sample.

    answered, errors: results stored by this call. skipped: requests that earlier calls completed.
    permanent_errors: errors that only `retry` requests again. last_error: message of the latest
    error. input_tokens, generated_tokens, cost (US dollars): sums over the reported values, None if
    none was reported. seconds: elapsed time of this call. interrupted: whether a signal ended it
    early; the same call resumes the run. possibly_billed: attempts without an answer, such as
    timeouts, that may have been billed and are not part of `cost`; possibly_billed_cost: US dollars
    for those of all calls, None if unknown. unanswered: requests of the run, those of earlier calls
    included, without an answer. warnings: what the user should know about the answers, of earlier
    calls too.
    """

    path: Path = Path()
    answered: int = 0
    skipped: int = 0
    errors: int = 0
    permanent_errors: int = 0
    last_error: str | None = None
    retries: int = 0
    input_tokens: int | None = None
    generated_tokens: int | None = None
    cost: float | None = None
    seconds: float = 0.0
    interrupted: bool = False
    possibly_billed: int = 0
    possibly_billed_cost: float | None = None
    unanswered: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def completed(self) -> int:
        """Results stored by this call."""
        return self.answered + self.errors

    @property
    def has_failed(self) -> bool:
        """Whether requests failed, and no request of the run was ever answered."""
        return bool(self.errors) and not self.answered and not self.skipped

    @property
    def state(self) -> str:
        """What is on disk, what else may be billed, and how to continue."""
        return self.describe("the same command continues")

    def describe(self, continuation: str) -> str:
        """Return what is on disk, what else may be billed, and a sentence how to continue."""
        parts = [
            f"{self.answered:,} answered now, {self.unanswered:,} still open",
            f"saved in {self.path}",
        ]
        if self.possibly_billed_cost:
            parts.append(f"up to ${self.possibly_billed_cost:.4f} more may be billed")
        elif self.possibly_billed:
            answers = f"lost answer{'s' * (self.possibly_billed > 1)}"
            parts.append(f"{self.possibly_billed:,} {answers} may be billed")
        return "; ".join((", ".join(parts), continuation))


class RunStats:
    """Counts the results of a run, those of earlier calls included.

    report: counts of this call alone, and sums over the reported values. previously_done: requests
    that earlier calls completed.
    """

    def __init__(
        self,
        items: Iterable[Item],
        judge: ScoreCallback | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`items`: all of the run. Without `judge` there is no accuracy."""
        self.report = RunReport()
        self._tasks: dict[str, TaskProgress] = {}
        self.expect(items)
        self._judge, self._clock = judge, clock
        self.previously_done = 0
        self._start = clock()

    def expect(self, items: Iterable[Item]) -> None:
        """Count items that are going to be requested, or were in an earlier call."""
        for task, count in Counter(item.task for item in items).items():
            self.add(TaskProgress(task, count))

    def count(self, item: Item, response: Response) -> None:
        """Count the result of `item` in this call."""
        result, report = judged(item, response, self._judge), self.report
        self.add(result._replace(cost=response.cost))
        report.answered += result.answered
        report.errors += result.errors
        if response.error is not None:
            report.permanent_errors += response.error.kind == "item"
            report.last_error = response.error.message
        report.input_tokens = _sum(report.input_tokens, response.usage.input)
        report.generated_tokens = _sum(report.generated_tokens, response.usage.generated)
        self.count_abandoned(response)

    def count_abandoned(self, response: Response) -> None:
        """Count the cost of a result that is none of this call: cut off, repeated, or unasked."""
        self.report.possibly_billed += response.possibly_billed_attempts
        self.report.cost = _sum(self.report.cost, response.cost)

    def progress(self, **of_scheduler: Any) -> RunProgress:
        """Return the progress, with the fields that only the scheduler knows."""
        return RunProgress(
            tasks=tuple(self._tasks.values()),
            previously_done=self.previously_done,
            retries=self.report.retries,
            seconds=self._clock() - self._start,
            **of_scheduler,
        )

    def add(self, result: TaskProgress) -> None:
        """Count a result, or a part of one, for the whole run and not for this call."""
        task = result.task
        self._tasks[task] = self._tasks.get(task, TaskProgress(task)).plus(result)


def _sum(total: Any, value: Any) -> Any:
    """Return the sum of two numbers that may be None for unknown."""
    if value is None:
        return total
    return value if total is None else total + value


@contextmanager
def show_progress(name: str, as_lines: bool = False) -> Iterator[ProgressCallback]:
    """Yield a callback that shows the progress of the run `name` on stderr.

    as_lines: lines of text also on a terminal, where only one table can be shown at a time.
    """
    console = None
    if not as_lines and sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
        from numbench.safe_console import SafeConsole

        console = SafeConsole(stderr=True)
    display = ProgressDisplay(name, console)
    try:
        yield display.update
    finally:
        display.close()


class ProgressDisplay:
    """A table on a terminal, redrawn a few times per second, or lines at intervals, and the end."""

    def __init__(self, name: str, console: Console | None = None) -> None:
        """Show nothing yet. console: that of the terminal, None for lines on stderr."""
        self._name, self._live = printable(name), None
        self._latest: RunProgress | None = None
        self._shown: RunProgress | None = None
        self._interval = LOG_INTERVAL_SECONDS
        if console is not None:
            from rich.live import Live

            # stdout may be redirected to a file, so it is left alone.
            self._live = Live(console=console, auto_refresh=False, redirect_stdout=False)
            self._interval = REDRAW_INTERVAL_SECONDS

    def update(self, progress: RunProgress) -> None:
        """Show the progress if it is time to."""
        self._latest = progress
        if self._shown is None or progress.seconds - self._shown.seconds >= self._interval:
            self._show(progress)

    def close(self) -> None:
        """Show the final state, and restore the terminal."""
        if self._latest is not None and (self._live or self._latest is not self._shown):
            self._show(self._latest, ended=True)
        if self._live is not None:
            with suppress(OSError):
                self._live.stop()

    def _show(self, progress: RunProgress, ended: bool = False) -> None:
        # A run that is refused ends within the delay, and prints nothing but its error.
        has_results = progress.done > progress.previously_done
        if not has_results and progress.seconds < FIRST_LINE_DELAY_SECONDS:
            return
        self._shown = progress
        if self._live is None:
            now = datetime.now().astimezone().isoformat(" ", timespec="seconds")
            line = printable(progress_line(progress, ended))
            print(f"{now} {self._name}: {line}", file=sys.stderr, flush=True)
            return
        # The terminal may have been closed; the work continues without it.
        with suppress(OSError):
            self._live.start()
            self._live.update(run_view(self._name, progress, ended), refresh=True)


def run_view(name: str, progress: RunProgress, ended: bool = False) -> RenderableType:
    """Return what a terminal shows of a run: the heading, a row per task, and the footer."""
    from rich.console import Group
    from rich.text import Text

    # Each part stays whole.
    footer = (part.replace(" ", "\N{NO-BREAK SPACE}") for part in _footer(progress, ended))
    return Group(Text(name, style="bold"), _table(progress, ended), Text(SEPARATOR.join(footer)))


def _table(progress: RunProgress, ended: bool) -> RenderableType:
    """Return a row per task and one for all.

    How many items a measurement takes is not known before its end.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    table = Progress(
        TextColumn("{task.description}"),
        MofNCompleteColumn(),
        *([] if progress.horizons else [BarColumn(bar_width=16)]),
        TextColumn("{task.fields[values]}"),
        auto_refresh=False,
    )
    is_open = bool(progress.horizons) and not ended
    counts = {task.task: task for task in (*progress.tasks, progress.overall)}
    for name in dict.fromkeys((*progress.horizons, *counts)):
        task = counts.get(name, TaskProgress(name))
        table.add_task(
            TASKS[name].display if name in TASKS else "All",
            total=None if is_open else task.total,
            completed=task.done,
            start=not is_open,
            values=progress.horizons.get(name) or SEPARATOR.join(_values(task)),
        )
    return table.get_renderable()


def progress_line(progress: RunProgress, ended: bool = False) -> str:
    """Return the progress as one line of text; estimates are omitted once the run has ended."""
    overall = progress.overall
    count = f"{overall.done:,}/{overall.total:,} done"
    parts = [f"{overall.answered:,} answered" if progress.horizons else count]
    return SEPARATOR.join((*parts, *_values(overall), *_footer(progress, ended)))


def _values(task: TaskProgress) -> list[str]:
    """Return what is known of the answers to a task."""
    values = []
    if task.scored:
        values.append(f"{_percent(task)} correct")
    if task.tokens_per_answer is not None:
        values.append(f"{task.tokens_per_answer:,.0f} tokens each")
    if task.cost is not None:
        digits = 4 if task.cost < 10 else 2
        values.append(f"{'≥ ' if task.unknown_costs else ''}${task.cost:,.{digits}f}")
    return values


def _footer(progress: RunProgress, ended: bool) -> list[str]:
    """Return what concerns all tasks together, the most important first."""
    horizons = progress.horizons
    ended = ended or (progress.done == progress.total and not horizons)
    remaining = progress.remaining_seconds
    parts = [f"{progress.complete} of {len(horizons)} tasks complete"] if horizons else []
    parts += [progress.note] if progress.note else []
    parts += [f"{60 * progress.rate:,.0f} answers/min"] if progress.rate else []
    parts.append(f"{format_duration(progress.seconds)} elapsed")
    if not ended and not horizons and remaining is not None:
        parts.append(f"{format_duration(remaining)} remaining")
    parts.append(f"{progress.retries:,} {'retry' if progress.retries == 1 else 'retries'}")
    if progress.overall.errors:
        parts.append(f"{progress.overall.errors:,} failed")
    if not ended and progress.concurrency_limit:
        parts.append(f"{progress.in_flight} in flight, limit {progress.concurrency_limit}")
    if not ended and progress.pause_seconds:
        pause = format_duration(max(progress.pause_seconds, 1.0))
        parts.append(f"paused by the provider for {pause}")
    if progress.previously_done:
        parts.append(f"{progress.previously_done:,} done earlier")
    if progress.last_failure:
        failure = printable(" ".join(progress.last_failure.split()))
        is_long = len(failure) > _MAX_FAILURE_CHARACTERS
        parts.append(f"last failure: {failure[:_MAX_FAILURE_CHARACTERS]}{'…' * is_long}")
    return parts


def _percent(task: TaskProgress) -> str:
    """Return the accuracy; `100%` only if all scored answers are correct, `0%` if none is."""
    accuracy = task.accuracy or 0.0
    if accuracy in (0.0, 1.0):
        return f"{accuracy:.0%}"
    return f"{min(max(100 * accuracy, 0.1), 99.9):.1f}%"


def format_duration(seconds: float) -> str:
    """Return seconds as `0:05`, `12:30` or `4:00:12`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
