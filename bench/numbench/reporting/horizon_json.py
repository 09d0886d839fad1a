"""Horizons in `report.json`."""

from __future__ import annotations

from collections.abc import Sequence

from numbench.horizon.estimate import TaskHorizon
from numbench.horizon.goodness_of_fit import SizeCount
from numbench.horizon.psychometric import Estimate
from numbench.reporting.horizon_runs import HorizonRun
from numbench.reporting.horizon_tables import estimate_text


def horizons_json(runs: Sequence[HorizonRun]) -> list[dict[str, object]]:
    """Return the horizons for `report.json`; null for a size that is outside the sizes."""
    return [
        {
            "path": run.path,
            "model": run.name,
            "display": run.model,
            "reasoning": run.reasoning,
            "source": run.source,
            "created": run.created,
            "samples": run.samples,
            "signature": run.signature,
            "tasks": {task: _horizon_json(horizon) for task, horizon in run.horizons.items()},
        }
        for run in runs
    ]


def _horizon_json(horizon: TaskHorizon) -> dict[str, object]:
    return {
        "unit": horizon.unit,
        "h50": _estimate_json(horizon, horizon.h50, 0.5),
        "h90": _estimate_json(horizon, horizon.h90, 0.9),
        "isotonic": horizon.isotonic,
        "tokens_at_h50": horizon.tokens_at_h50,
        "items": horizon.items,
        "truncated": horizon.truncated,
        "stop": horizon.stop,
        "fit_p": horizon.fit_p,
        "slope": horizon.curve.slope,
        "lapse": horizon.curve.lapse,
        "smallest": horizon.smallest,
        "largest": horizon.largest,
        "sizes": [_size_json(count) for count in horizon.counts],
    }


def _estimate_json(
    horizon: TaskHorizon, estimate: Estimate | None, without_guesses: float
) -> dict[str, object]:
    within: dict[str, float | None] = dict.fromkeys((*Estimate._fields, "level"))
    if estimate is not None and horizon.items:
        within |= {
            name: size if horizon.smallest <= size < horizon.largest else None
            for name, size in estimate._asdict().items()
        }
        within["level"] = 100 * horizon.level(estimate.value, without_guesses)
    return {**within, "text": estimate_text(horizon, estimate)}


def _size_json(count: SizeCount) -> dict[str, object]:
    return {
        "size": count.size,
        "items": count.total,
        "right": count.right,
        "truncated": count.truncated,
        "tokens": count.tokens,
    }
