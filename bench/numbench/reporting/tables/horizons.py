"""Problem sizes: up to which size a model's answers are correct."""

from __future__ import annotations

from collections.abc import Iterator

from numbench.horizon.estimate import TaskHorizon
from numbench.horizon.goodness_of_fit import DOUBTFUL, MISFIT
from numbench.horizon.psychometric import SizeEstimate
from numbench.records import Estimate
from numbench.reporting.comparisons import task_name
from numbench.reporting.data import ReportData
from numbench.reporting.horizon_runs import HorizonRun
from numbench.reporting.tables.model import Cell, Row, declared_table


def _rows(data: ReportData) -> Iterator[Row]:
    # The members of a page are the configurations, then these runs.
    for member, run in enumerate(data.horizons, len(data.configurations)):
        for horizon in run.horizons.values():
            yield Row(_cells(run, horizon), run.label, task=horizon.task, member=member)


def _cells(run: HorizonRun, horizon: TaskHorizon) -> dict[str, Cell]:
    cells: dict[str, Cell] = {
        "model": f"{run.model} ({run.note})" if run.note else run.model,
        "level": run.level,
        "task": task_name(horizon.task),
        "unit": horizon.unit,
        "stopped": TABLE.text(horizon.stop or "unfinished") if horizon.items else "not answered",
        "copy": _size(run.control, run.control.h50.value) if run.control else None,
        "questions": horizon.items,
    }
    if not horizon.items:
        return cells
    size = shown_h50(horizon)
    return cells | {
        "h50": _estimate(horizon, horizon.h50) if horizon.fits else _size(horizon, size),
        "level_at_h50": None if size is None else 100 * horizon.level(size),
        "h90": _estimate(horizon, horizon.h90) if horizon.fits else None,
        "tokens": horizon.tokens_at_h50,
        "prompt_tokens": horizon.prompt_tokens_at_h50,
        "truncated": horizon.truncated,
        "isotonic": _size(horizon, horizon.isotonic),
        "fit": "doubtful" if horizon.is_doubtful else "yes" if horizon.fits else "no",
        "fit_p": horizon.fit_p,
    }


def shown_h50(horizon: TaskHorizon) -> float | None:
    """Return h50, or where no curve fits the isotonic crossing, None if there is none."""
    return horizon.h50.value if horizon.fits else horizon.isotonic


def _estimate(horizon: TaskHorizon, estimate: SizeEstimate | None) -> Cell:
    """Return a size with its interval; only a bound, as text, beyond the sizes of the task."""
    if estimate is None:
        return "not reached"
    size = _size(horizon, estimate.value)
    ends = [min(max(x, horizon.smallest), horizon.largest) for x in estimate[1:]]
    return size if isinstance(size, str) else Estimate(estimate.value, *ends)


def _size(horizon: TaskHorizon, size: float | None) -> Cell:
    if size is None or horizon.smallest <= size < horizon.largest:
        return size
    return horizon.text(size)


def _notes(data: ReportData) -> Iterator[str]:
    """Say at which percentages h50 and h90 are, where guesses make them others than 50 and 90."""
    known: dict[str, None] = {}
    for horizon in (horizon for run in data.horizons for horizon in run.horizons.values()):
        size = shown_h50(horizon)
        if size is not None and horizon.items and round(100 * horizon.level(size)) != 50:
            name, chance = task_name(horizon.task), horizon.chance(size)
            half, most = horizon.level(size), horizon.level(size, 0.9)
            text = TABLE.text("chance", task=name, chance=chance, half=half, most=most)
            known[text] = None
    yield from known


TABLE = declared_table("horizons", _rows, _notes, misfit=MISFIT, doubtful=DOUBTFUL)
