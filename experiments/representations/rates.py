"""The learning rate of each encoding, chosen from the sweep by the rule of plan.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bittoken.training import metrics_log
from experiments.comparison import Comparison
from experiments.representations.contrasts import ENCODINGS, final_score
from experiments.results_store import read_logged_recipe
from experiments.sample_complexity.outcomes import outcome


def rate_scores(sweep: Comparison, folder: Path) -> dict[str, dict[float, float]]:
    """Return the mean score of the operations by encoding and factor, of complete encodings."""
    scores: dict[str, dict[float, list[float]]] = {}
    incomplete = set()
    for run in sweep.runs:
        encoding, recipe = run.recipe.model.encoding, read_logged_recipe(folder / run.name)
        if recipe is None:
            incomplete.add(encoding)
            continue
        result = outcome(recipe, metrics_log.read_log(folder / run.name))
        by_factor = scores.setdefault(encoding, {})
        by_factor.setdefault(recipe.optimizer.scale, []).append(final_score(result))
    return {
        encoding: {factor: float(np.mean(values)) for factor, values in by_factor.items()}
        for encoding, by_factor in scores.items()
        if encoding not in incomplete
    }


def chosen_factor(scores: dict[float, float]) -> float:
    """Return the factor with the highest score; of equals, the smallest."""
    return max(sorted(scores), key=lambda factor: scores[factor])


def rate_table(sweep: Comparison, folder: Path) -> str:
    """Return the scores of the sweep as a table in Markdown, empty if there are none."""
    scores = rate_scores(sweep, folder)
    columns = [name for forms in ENCODINGS.values() for name in forms.values() if name in scores]
    if not columns:
        return ""
    factors = sorted({factor for of in scores.values() for factor in of})
    lines = [
        "## Learning rates",
        "",
        "The factor of the learning rates of `integers-bittoken`: mean exact match of addition and",
        "multiplication after a quarter of the budget, with another seed, in percent (bold: the",
        "chosen one).",
        "",
        f"| Factor | {' | '.join(columns)} |",
        "|---|" + "---:|" * len(columns),
    ]
    lines += [f"| {factor:g} | {_cells(factor, columns, scores)} |" for factor in factors]
    return "\n".join(lines)


def _cells(factor: float, columns: Sequence[str], scores: dict[str, dict[float, float]]) -> str:
    cells = []
    for name in columns:
        text = f"{100 * scores[name][factor]:.1f}"
        cells.append(f"**{text}**" if chosen_factor(scores[name]) == factor else text)
    return " | ".join(cells)
