"""The page of results/representations: scores of the sixteen cells, contrasts, predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from experiments.representations.contrasts import (
    BITS,
    ENCODINGS,
    EXPECTED,
    TARGET,
    Contrast,
    Difference,
    Form,
    contrast,
)
from experiments.sample_complexity.outcomes import Cell, Outcomes
from experiments.sample_complexity.page import TABLES, format_ratio
from experiments.sample_complexity.statistics import Ratio
from numbench.tasks import TASKS

OPERATIONS = ("addition", "multiplication", "division", "minmax")


def title(base: int, form: Form) -> str:
    """Return the name of an encoding on the page."""
    return f"Base {base}, {form}"


def render_page(text: str, outcomes: Outcomes, missing: Mapping[Cell, int], rates: str) -> str:
    """Return the page. text: its introduction, with `{results}` for the tables."""
    parts = ["\n".join(_predictions(outcomes)), "\n".join(_scores(outcomes)), rates]
    if missing:
        lines = [f"- {TASKS[c.task].display}: {c.encoding} ({n})" for c, n in missing.items()]
        parts.append("\n".join(["## Not complete yet (missing seeds)", "", *lines]))
    return text.replace("{results}", "\n\n".join(part for part in parts if part))


def _predictions(outcomes: Outcomes) -> Iterator[str]:
    yield "## The predictions"
    yield ""
    yield (
        "Ratios are questions to 50 %, fixed relative to floating: above 1, fixed point needs "
        "more. Differences are exact match at the budget, fixed − floating, in percentage "
        "points; a training that ended early counts as 90 %. In parentheses: 95 % intervals "
        "over seeds."
    )
    yield ""
    yield "| Operation | Base | Ratio | Difference | Predicted better | Prediction |"
    yield "|---|---:|---:|---:|---|---|"
    contrasts = {
        (task, base): contrast(outcomes, task, base) for task in OPERATIONS for base in ENCODINGS
    }
    for (task, base), one in contrasts.items():
        if one is None:
            continue
        expected = EXPECTED.get(task)
        verdict = one.verdict(expected) if expected else _minmax_verdict(outcomes, base, contrasts)
        cells = [_ratio(one), _difference(one.difference), expected or "neither", verdict]
        yield f"| {TASKS[task].display} | {base} | {' | '.join(cells)} |"


def _minmax_verdict(
    outcomes: Outcomes, base: int, contrasts: Mapping[tuple[str, int], Contrast | None]
) -> str:
    """Return whether both forms reach 50 %, and differ less than in the other operations."""
    found = [contrasts[task, base] for task in ("minmax", "addition", "multiplication")]
    differences = [abs(one.difference.value) for one in found if one and one.difference]
    if len(differences) < len(found):
        return "not decided"
    cells = [Cell("minmax", BITS, 0, name) for name in ENCODINGS[base].values()]
    reached = all(one.reached[TARGET] is not None for cell in cells for one in outcomes[cell])
    return "holds" if reached and differences[0] < min(differences[1:]) else "does not hold"


def _ratio(one: Contrast) -> str:
    """Return fixed / floating. A bound of the opposite ratio becomes an upper bound of this one."""
    if one.slower["fixed"] is not None:
        return format_ratio(one.slower["fixed"])
    opposite = one.slower["floating"]
    if opposite is None:
        return ""
    inverse = Ratio(1 / opposite.value, 1 / opposite.low, None, ())
    return f"at most × {inverse.value:.2f} (upper bound {inverse.low:.2f})"


def _difference(value: Difference | None) -> str:
    if value is None:
        return ""
    return f"{100 * value.value:+.1f} ({100 * value.low:+.1f} to {100 * value.high:+.1f})"


def _scores(outcomes: Outcomes) -> Iterator[str]:
    yield "## Scores"
    header = " | ".join(TASKS[task].display for task in OPERATIONS)
    for name, format_cell in TABLES.items():
        yield ""
        yield f"| {name} | {header} |"
        yield "|---|" + "---:|" * len(OPERATIONS)
        for base, forms in ENCODINGS.items():
            for form, encoding in forms.items():
                cells = []
                for task in OPERATIONS:
                    seeds = outcomes.get(Cell(task, BITS, 0, encoding), ())
                    cells.append(format_cell(seeds) if seeds else "")
                yield f"| {title(base, form)} | {' | '.join(cells)} |"
