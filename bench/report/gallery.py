"""All figures of a report: one line each, and what to draw it from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from matplotlib.figure import Figure

from bench.report import figures
from bench.report.bars import bars
from bench.report.correct_digits import correct_digits, strips_of
from bench.report.difficulty import curves, difficulty_curves
from bench.report.failures import KINDS, failure_kinds, failures_of
from bench.report.layout import Entry
from bench.report.mean_difficulty import mean_difficulty
from bench.report.mean_map import lists_of, mean_map
from bench.report.measured import Measured
from bench.report.pareto import pareto
from bench.report.prices import cost_points, token_points
from bench.report.radar import overview, radar
from bench.report.sample_size import growth, score_vs_items
from bench.report.scatter import tokens_vs_score
from bench.report.series import TaskScores, some_runs, task_scores
from bench.tasks import TASKS

RUNS_A_FIGURE = 8
"""More lines than these in one panel cannot be told apart; further runs get a figure more."""


class Material:
    """What figures are drawn from; `heading` says how the measured entries came about."""

    def __init__(self, runs: Sequence[Measured], published: Sequence[Entry], heading: str) -> None:
        self.runs = runs
        self.published = published
        self.heading = heading
        self.entries = [run.entry for run in runs]
        self.everything = [*self.entries, *published]

    @cached_property
    def scores(self) -> list[TaskScores]:
        """Scores and difficulties of every task that some run answered."""
        return [found for task in TASKS if (found := task_scores(task, self.runs)) is not None]


class LeftOut(NamedTuple):
    """Why a figure is not drawn."""

    reason: str


Drawn = Mapping[str, Figure] | LeftOut


class Plan(NamedTuple):
    """A figure: the stem of its files, its caption, and how it is drawn."""

    name: str
    caption: str
    draw: Callable[[Material], Drawn]


_NOTHING = LeftOut("no answer was counted")


def _overview(material: Material) -> Drawn:
    return {"radar": overview(material.everything, material.heading)}


def _tokens(material: Material) -> Drawn:
    return {"tokens_vs_score": tokens_vs_score(material.everything, material.heading)}


def _bars(material: Material) -> Drawn:
    if not material.scores:
        return _NOTHING
    return {"results": bars(material.entries, material.published)}


def _pareto_tokens(material: Material) -> Drawn:
    points = token_points(material.everything)
    if len(points) < 2:
        return LeftOut("fewer than two runs with a token count on every task")
    axis = "mean generated tokens per answer, over the tasks"
    axis += _of_all(len(points), len(material.everything), "token counts")
    return {"pareto_tokens": pareto(points, axis, material.heading)}


def _pareto_cost(material: Material) -> Drawn:
    points = cost_points(material.runs)
    if len(points) < 2:
        return LeftOut("fewer than two runs whose responses have known costs")
    axis = "US dollars per 1,000 items, mean over the tasks"
    axis += _of_all(len(points), len(material.runs), "costs")
    return {"pareto_cost": pareto(points, axis, material.heading)}


def _of_all(shown: int, count: int, lacking: str) -> str:
    """What a figure says of the runs that it cannot show."""
    if shown == count:
        return ""
    return f"\n{shown} of {count} runs; the others lack a task or its {lacking}"


def _digits(material: Material) -> Drawn:
    tasks = strips_of(material.runs)
    if not tasks:
        return LeftOut("no counted digits (the paper protocol counts none)")
    return {"correct_digits": correct_digits(tasks)}


def _failures(material: Material) -> Drawn:
    if any(run.run.protocol != "exact" for run in material.runs):
        return LeftOut("the paper protocol tells no kinds of errors")
    found = failures_of(material.runs)
    return {"failures": failure_kinds(found, KINDS)} if found else _NOTHING


def _difficulty(material: Material) -> Drawn:
    found = curves(material.scores)
    return _in_parts("difficulty", material, lambda scores: difficulty_curves(scores, found))


def _sample_size(material: Material) -> Drawn:
    grown = growth(material.scores)
    return _in_parts("score_vs_items", material, lambda scores: score_vs_items(scores, grown))


def _mean_difficulty(material: Material) -> Drawn:
    if not any(found.task == "mean" for found in material.scores):
        return LeftOut("no counted answer of the task Mean")
    return _in_parts(
        "mean_difficulty", material, lambda scores: mean_difficulty(scores[0]), ("mean",)
    )


def _mean_map(material: Material) -> Drawn:
    lists = lists_of(material.runs)
    if not lists:
        return LeftOut("no counted answer of the task Mean")
    return {"mean_map": mean_map(lists)}


def _in_parts(
    name: str,
    material: Material,
    draw: Callable[[Sequence[TaskScores]], Figure],
    tasks: Sequence[str] = tuple(TASKS),
) -> Drawn:
    """One figure for up to eight runs; of more the first, second … part, of about equal size."""
    scores = [found for found in material.scores if found.task in tasks]
    places = sorted({s.place for t in scores for s in t.runs})
    if not places:
        return _NOTHING
    count = -(-len(places) // RUNS_A_FIGURE)
    size = -(-len(places) // count)
    parts = [places[start : start + size] for start in range(0, len(places), size)]
    return {
        name if count == 1 else f"{name}_{number}": draw(some_runs(scores, set(part)))
        for number, part in enumerate(parts, 1)
    }


def _radars(material: Material) -> Drawn:
    found = {}
    for model, name in radar_names(figures.models_of(material.entries)).items():
        own = [entry for entry in material.everything if entry.model == model]
        found[name] = radar(model, own, material.heading)
    return found


FIGURES = (
    Plan(
        "radar",
        "Scores of every model on the nine tasks, 0 to 100 (log-sMAPE; comparisons: exact match), "
        "one polygon per reasoning level.",
        _overview,
    ),
    Plan(
        "tokens_vs_score",
        "Score against mean generated tokens. Bars are 95 % bounds; a dotted line is a model "
        "whose tokens are not known. Tokens stand on a log axis where they span more than a "
        "factor of 20.",
        _tokens,
    ),
    Plan(
        "pareto_tokens",
        "Mean score over the tasks against mean generated tokens: no model on the front is beaten "
        "by another in both. Published points of measured models stand beside it."
        " Bounds take the tasks as independent.",
        _pareto_tokens,
    ),
    Plan(
        "pareto_cost",
        "Mean score over the tasks against US dollars per 1,000 items, for runs in which at "
        "most one response in a hundred lacks its cost.",
        _pareto_cost,
    ),
    Plan(
        "results",
        "Score of every run on every task with 95 % bounds; hollow bars are the published scores "
        "of the same model and level.",
        _bars,
    ),
    Plan(
        "correct_digits",
        "How many leading significant digits of an answer are right, as the share of items.",
        _digits,
    ),
    Plan(
        "failures",
        "In what way answers are wrong, over all tasks, as the share of counted items; whiskers "
        "bound the sum.",
        _failures,
    ),
    Plan(
        "difficulty",
        "Score over the difficulty of items, in bins of about equal size; the black line is the "
        "mean of all runs on the items that all answered.",
        _difficulty,
    ),
    Plan(
        "score_vs_items",
        "Mean score of growing random subsets of the items with the 95 % bounds that each subset "
        "alone would give: how much certainty more items buy.",
        _sample_size,
    ),
    Plan(
        "mean_map",
        "Mean: score over magnitude and spread of the lists. Above the dashed line a list's "
        "numbers need share no leading digit.",
        _mean_map,
    ),
    Plan(
        "mean_difficulty",
        "Mean: score over difficulty δ = s − x + 15.",
        _mean_difficulty,
    ),
    Plan(
        "radar_",
        "Scores of one model on the nine tasks, 0 to 100, with 95 % bounds.",
        _radars,
    ),
)
"""In the order in which a report shows them; of several figures of a plan the names go on."""


def plan_of(name: str) -> Plan | None:
    """The plan that a figure or file of this stem belongs to."""
    plain = re.sub(r"_\d+$", "", name)
    exact = next((plan for plan in FIGURES if plan.name in (name, plain)), None)
    return exact or (FIGURES[-1] if name.startswith(FIGURES[-1].name) else None)


def radar_names(models: Sequence[str]) -> dict[str, str]:
    """A file name per model, `radar_gpt-5`; numbered where two would be the same."""
    names: dict[str, str] = {}
    for model in models:
        plain = re.sub("[^a-z0-9]+", "-", model.lower()).strip("-")[:60] or "model"
        name, number = f"radar_{plain}", 2
        while name in names.values():
            name, number = f"radar_{plain}-{number}", number + 1
        names[model] = name
    return names
