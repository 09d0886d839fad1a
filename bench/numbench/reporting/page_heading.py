"""What a report page is about: its title and description, and the dates of its runs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import NamedTuple

from numbench.reporting.report_data import ReportData
from numbench.reporting.summary_table import ranked_runs
from numbench.reporting.table_model import LOG_SMAPE, format_estimate

PAPER_URL = "https://arxiv.org/abs/2510.06824"
"""The paper whose benchmark this is."""

_NAMED_SCORES = 3
"""Runs whose scores are in the description."""


class PageHeading(NamedTuple):
    """The texts that name a page.

    title: `numbench: GPT 5 (high) and 1 more, 2026-11-23`. description: one sentence with the
    scores of the first runs, for search engines and previews of links. dates: of the first and the
    last run, as `2026-11-20 to 2026-11-23`; empty if none is known.
    """

    title: str
    description: str
    dates: str


def page_heading(data: ReportData) -> PageHeading:
    """Return the texts that name the page of `data`; the run with the highest mean comes first."""
    ranked = ranked_runs(data)
    labels = [data.runs[index].label for index in ranked] + [run.label for run in data.horizons]
    created = [run.scored.info.created for run in data.runs] + [
        run.created for run in data.horizons
    ]
    days = sorted(_days(created))
    title = f"numbench: {_first_and_more(labels, 1)}"
    return PageHeading(
        title=f"{title}, {days[-1]}" if days else title,
        description=_description(data, ranked, labels),
        dates=" to ".join(dict.fromkeys(str(day) for day in (days[:1] + days[-1:]))),
    )


def _description(data: ReportData, ranked: list[int], labels: list[str]) -> str:
    subject = "How well language models compute with numbers"
    means = {index: data.comparisons.overall[index] for index in ranked}
    scores = [
        f"{data.runs[index].label} {format_estimate(LOG_SMAPE, mean)}"
        for index, mean in means.items()
        if mean is not None
    ]
    if not scores:
        return f"{subject}: {_first_and_more(labels, _NAMED_SCORES)}."
    return (
        f"{subject}. Mean of tasks in percent, with 95 % bounds: "
        f"{_first_and_more(scores, _NAMED_SCORES)}."
    )


def _first_and_more(names: list[str], count: int) -> str:
    """Return the first names, and the number of the others."""
    shown = ", ".join(names[:count])
    return f"{shown} and {len(names) - count} more" if len(names) > count else shown


def _days(created: Iterable[str]) -> Iterable[date]:
    """Yield the day of each time in UTC, without those that are unknown or no times."""
    for text in created:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            continue
        yield (moment.astimezone(UTC) if moment.tzinfo else moment).date()
