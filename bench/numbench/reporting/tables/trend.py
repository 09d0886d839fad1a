"""Runs that differ only in their date: score, tokens and dollars over time."""

from __future__ import annotations

from collections.abc import Iterator

from numbench.journal.identity import find_difference
from numbench.journal.run_folder import utc_time
from numbench.reporting.data import ReportData
from numbench.reporting.tables.model import Cell, Row, declared_table


def _repeated_runs(data: ReportData) -> Iterator[list[int]]:
    """Yield the indices of runs that differ in nothing but their date, in order of time."""
    series: list[list[int]] = []
    more = ("tasks", "limit", "samples", "shard")
    infos = [run.scored.info for run in data.runs]
    times = {index: time for index, info in enumerate(infos) if (time := utc_time(info.created))}
    for index in sorted(times, key=times.__getitem__):
        alike = (each for each in series if not find_difference(infos[each[0]], infos[index], more))
        if (members := next(alike, None)) is None:
            series.append(members := [])
        members.append(index)
    yield from (each for each in series if len({times[index] for index in each}) > 1)


def _rows(data: ReportData) -> Iterator[Row]:
    for number, members in enumerate(_repeated_runs(data), 1):
        for index in members:
            run = data.runs[index]
            cells: dict[str, Cell] = {
                "model": run.name,
                "level": run.level,
                "series": number,
                "date": utc_time(run.scored.info.created)[:16].replace("T", " "),
                "questions": sum(len(values.score) for values in run.values.tasks.values()),
                "score": data.estimate(run),
                "tokens": data.estimate(run, "generated_tokens"),
                "cost": data.cost(run),
            }
            yield Row(cells, data.group_of(run).heading, run=index, member=index)


TABLE = declared_table("trend", _rows)
