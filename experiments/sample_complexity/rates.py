"""The learning rate of each encoding, chosen from the sweep by the rule of plan.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bittoken.training import metrics_log
from experiments.comparison import Comparison
from experiments.results_store import read_logged_recipe
from experiments.sample_complexity.outcomes import TARGETS, Outcome, outcome
from experiments.sample_complexity.page import TITLES


class Trial(NamedTuple):
    """One training of the sweep. scale: the factor of the recipe's rates."""

    scale: float
    outcome: Outcome


def chosen_rates(sweep: Comparison, folder: Path) -> dict[str, tuple[float, list[Trial]]]:
    """Return the chosen factor and all trials of each encoding whose trials are complete."""
    trials: dict[str, list[Trial]] = {}
    incomplete = set()
    for run in sweep.runs:
        encoding = run.recipe.model.encoding
        recipe = read_logged_recipe(folder / run.name)
        if recipe is None:
            incomplete.add(encoding)
            continue
        result = outcome(recipe, metrics_log.read_log(folder / run.name))
        trials.setdefault(encoding, []).append(Trial(recipe.optimizer.scale, result))
    return {
        encoding: (best_trial(of).scale, of)
        for encoding, of in trials.items()
        if encoding not in incomplete
    }


def best_trial(trials: Sequence[Trial]) -> Trial:
    """Return the trial with the fewest questions to 90 %, else with the highest exact match."""

    def preference(trial: Trial) -> tuple[float, float]:
        reached = trial.outcome.reached[TARGETS[-1]]
        return (reached.questions if reached else float("inf"), -trial.outcome.exact)

    return min(trials, key=preference)


def rate_table(chosen: Mapping[str, tuple[float, Sequence[Trial]]]) -> str:
    """Return the trials of the sweep as a table in Markdown, empty if there are none."""
    if not chosen:
        return ""
    scales = sorted({trial.scale for _, trials in chosen.values() for trial in trials})
    lines = [
        "## Learning rates",
        "",
        "The factor of the recipe's learning rates, chosen on products of 8-bit integers with half",
        "the budget and another seed (bold): exact match at the end, or the questions to 90 %.",
        "",
        "| Factor | " + " | ".join(TITLES[name] for name in TITLES if name in chosen) + " |",
        "|---|" + "---:|" * len(chosen),
    ]
    for scale in scales:
        cells = [_trial_cell(scale, *chosen[name]) for name in TITLES if name in chosen]
        lines.append(f"| {scale:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _trial_cell(scale: float, best: float, trials: Sequence[Trial]) -> str:
    for trial in trials:
        if trial.scale == scale:
            reached = trial.outcome.reached[TARGETS[-1]]
            text = f"{reached.questions:,}" if reached else f"{100 * trial.outcome.exact:.1f} %"
            return f"**{text}**" if scale == best else text
    return ""
