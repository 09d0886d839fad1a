"""Registry of a report's figures: `FIGURES`, and the figures of installed packages.

A figure of another package is a `FigureSpec`, registered as an entry point in the group
`numbench.figures`. The report writes it to `figures/NAME.svg`, and in other formats on request, and
shows it in `report.html`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from numbench.plugins import load_plugins
from numbench.reporting.budget_curves import budget_curves
from numbench.reporting.correct_digits import correct_digits, digit_distributions
from numbench.reporting.difficulty_curves import binned_curves, difficulty_curves, mean_difficulty
from numbench.reporting.failures import failure_kinds, failure_shares
from numbench.reporting.figure_spec import FigureResult, FigureSpec, SkippedFigure
from numbench.reporting.horizon_curves import horizon_curves
from numbench.reporting.horizon_dots import horizon_dots
from numbench.reporting.horizon_radar import horizon_radar
from numbench.reporting.horizon_runs import horizon_tasks
from numbench.reporting.horizon_tokens import horizon_tokens, runs_with_tokens
from numbench.reporting.mean_map import mean_items, mean_map
from numbench.reporting.pareto import pareto
from numbench.reporting.pareto_points import cost_points, describe_token_points, token_points
from numbench.reporting.radar import radar
from numbench.reporting.radar_axes import MIN_TASKS
from numbench.reporting.registration import check_names
from numbench.reporting.report_data import ReportData
from numbench.reporting.result_dots import result_dots
from numbench.reporting.sample_curves import sample_curves
from numbench.reporting.sample_size import score_vs_items, subset_means
from numbench.reporting.scatter import tokens_vs_score
from numbench.reporting.task_scores import TaskScores, select_runs
from numbench.reporting.variant_effects import figure_effects, variant_effects

ENTRY_POINTS = "numbench.figures"

MAX_RUNS_PER_FIGURE = 8
"""More lines in one panel are hard to distinguish; further runs get a further figure."""


_NO_COUNTED_ANSWERS = SkippedFigure("no counted answers")
_NO_MEAN_ANSWERS = SkippedFigure("no counted answers for the task Mean")


def _radar(data: ReportData) -> FigureResult:
    if len(data.tasks) < MIN_TASKS:
        return SkippedFigure(f"fewer than {MIN_TASKS} tasks")
    return radar(data.all_entries, data.tasks, data.heading)


def _tokens(data: ReportData) -> FigureResult:
    return tokens_vs_score(data.all_entries, data.tasks, data.heading)


def _results(data: ReportData) -> FigureResult:
    if not data.scores:
        return _NO_COUNTED_ANSWERS
    return result_dots(data.entries, data.published, data.model_styles)


def _pareto_tokens(data: ReportData) -> FigureResult:
    points = token_points(data)
    if len(points) < 2:
        return SkippedFigure("fewer than two runs with token counts for every task")
    axis = "mean generated tokens per answer, over the tasks"
    axis += _omitted_runs_note(len(points), len(data.all_entries), "token counts")
    return pareto(points, axis, data.heading)


def _pareto_cost(data: ReportData) -> FigureResult:
    points = cost_points(data)
    if len(points) < 2:
        return SkippedFigure("fewer than two runs with known costs")
    axis = "US dollars per 1,000 items, mean over the tasks"
    axis += _omitted_runs_note(len(points), len(data.runs), "costs")
    return pareto(points, axis, data.heading)


def _budget_curves(data: ReportData) -> FigureResult:
    groups = data.budgets.groups
    if not groups:
        return SkippedFigure("no model with several reasoning levels and token counts")
    names = [data.runs[group.indices[0]].entry.model for group in groups]
    return {
        stem: budget_curves([groups[i] for i in part], [names[i] for i in part], data.model_styles)
        for stem, part in _parts("reasoning_budgets", range(len(groups))).items()
    }


def _omitted_runs_note(count: int, total: int, what: str) -> str:
    """Return a second line for the axis label if some runs are not in the figure."""
    if count == total:
        return ""
    return f"\n{count} of {total} runs; the others lack a task or {what}"


def _digits(data: ReportData) -> FigureResult:
    if data.protocol == "paper":
        return SkippedFigure("correct digits are not available under the paper protocol")
    tasks = digit_distributions(data.runs)
    return correct_digits(tasks) if tasks else _NO_COUNTED_ANSWERS


def _failures(data: ReportData) -> FigureResult:
    if data.protocol == "paper":
        return SkippedFigure("error kinds are not available under the paper protocol")
    shares = failure_shares(data.runs)
    return failure_kinds(shares) if shares else _NO_COUNTED_ANSWERS


def _difficulty(data: ReportData) -> FigureResult:
    curves = binned_curves(data.scores)
    return _split_by_runs(
        "difficulty", data.scores, lambda s: difficulty_curves(s, curves, data.run_styles)
    )


def _sample_size(data: ReportData) -> FigureResult:
    means = subset_means(data.scores)
    return _split_by_runs(
        "score_vs_items", data.scores, lambda s: score_vs_items(s, means, data.run_styles)
    )


def _pass_at_k(data: ReportData) -> FigureResult:
    statistics = data.repeated_samples
    if not statistics:
        return SkippedFigure("no run has several samples per item")
    indices = list(dict.fromkeys(row.run_index for row in statistics))
    labels = {index: data.runs[index].label for index in indices}
    return {
        stem: sample_curves(
            [row for row in statistics if row.run_index in part], labels, data.run_styles
        )
        for stem, part in _parts("pass_at_k", indices).items()
    }


def _variant_effects(data: ReportData) -> FigureResult:
    effects = figure_effects(data.runs, data.prompt_effects, data.metamorphic_results)
    if not effects:
        return SkippedFigure("no runs that differ only in prompts or in the form of the items")
    return {
        f"variant_effects_{number}": variant_effects(data.runs[reference].label, of_run)
        for number, (reference, of_run) in enumerate(effects.items(), 1)
    }


def _mean_difficulty(data: ReportData) -> FigureResult:
    scores = [task for task in data.scores if task.task == "mean"]
    if not scores:
        return _NO_MEAN_ANSWERS
    return _split_by_runs(
        "mean_difficulty", scores, lambda s: mean_difficulty(s[0], data.run_styles)
    )


def _mean_map(data: ReportData) -> FigureResult:
    items = mean_items(data.runs)
    return mean_map(items) if items else _NO_MEAN_ANSWERS


def _horizon_dots(data: ReportData) -> FigureResult:
    parts = _parts("horizons", range(len(data.horizons)))
    return {
        stem: horizon_dots([data.horizons[i] for i in part], [data.horizon_styles[i] for i in part])
        for stem, part in parts.items()
    }


def _horizon_curves(data: ReportData) -> FigureResult:
    return {
        f"horizon_curves_{number}": horizon_curves(run)
        for number, run in enumerate(data.horizons, 1)
    }


def _horizon_tokens(data: ReportData) -> FigureResult:
    known = runs_with_tokens(data.horizons)
    if len(known) < 2:
        return SkippedFigure("fewer than two runs with horizons and token counts")
    return horizon_tokens(known, data.model_styles)


def _horizon_radar(data: ReportData) -> FigureResult:
    if len(horizon_tasks(data.horizons)) < MIN_TASKS:
        return SkippedFigure(f"fewer than {MIN_TASKS} tasks with horizons")
    return horizon_radar(data.horizons)


def _split_by_runs(
    name: str,
    scores: Sequence[TaskScores],
    draw: Callable[[Sequence[TaskScores]], Figure],
) -> FigureResult:
    """Draw one figure for up to eight runs, or several with about equally many runs."""
    indices = sorted({run.run_index for task in scores for run in task.runs})
    if not indices:
        return _NO_COUNTED_ANSWERS
    parts = _parts(name, indices)
    return {stem: draw(select_runs(scores, set(part))) for stem, part in parts.items()}


def _parts(name: str, indices: Sequence[int]) -> dict[str, Sequence[int]]:
    """Return stem → runs for one figure of up to eight runs, or several of about equally many."""
    count = -(-len(indices) // MAX_RUNS_PER_FIGURE)
    size = -(-len(indices) // count)
    parts = [indices[start : start + size] for start in range(0, len(indices), size)]
    return {
        name if count == 1 else f"{name}_{number}": part for number, part in enumerate(parts, 1)
    }


FIGURES: tuple[FigureSpec, ...] = (
    FigureSpec(
        "radar",
        "What can each model do? Score on every task, 0 to 100 (log-sMAPE; comparison tasks: exact "
        "match), one polygon per reasoning level.",
        _radar,
    ),
    FigureSpec(
        "tokens_vs_score",
        "How many tokens does a score take, task by task? Score against mean generated tokens, "
        "with 95 % bounds; dotted line: token count unknown. Log scale if token counts span more "
        "than a factor of 20.",
        _tokens,
    ),
    FigureSpec(
        "pareto_tokens",
        "Which models are best for their tokens? Mean score over the tasks against mean generated "
        "tokens; models on the front are not dominated by any other.",
        _pareto_tokens,
        details=describe_token_points,
    ),
    FigureSpec(
        "pareto_cost",
        "Which models are best for their price? Mean score over the tasks against US dollars per "
        "1,000 items, for runs with known costs for at least 99 % of the responses.",
        _pareto_cost,
    ),
    FigureSpec(
        "reasoning_budgets",
        "What does more reasoning gain? Score against mean generated tokens of a model's reasoning "
        "levels, with 95 % bounds; line and band: the monotone curve and its 95 % band.",
        _budget_curves,
    ),
    FigureSpec(
        "results",
        "How good is every run at every task? Scores with 95 % bounds; rings: published scores of "
        "the same model and level.",
        _results,
    ),
    FigureSpec(
        "correct_digits",
        "How many leading digits of an answer are correct? Percentage of items by the number of "
        "correct leading significant digits.",
        _digits,
    ),
    FigureSpec(
        "failures",
        "What goes wrong? Kinds of errors over all tasks, as percentage of counted items; error "
        "bars: 95 % bounds of the total. A run without all items is marked: its other tasks may be "
        "harder.",
        _failures,
    ),
    FigureSpec(
        "difficulty",
        "Which items are hard? Score against difficulty δ, in eight bins of about equal size; "
        "black line: mean of all runs over the items that all of them answered. Where a title says "
        "that scores rise with δ, it does not order the items of this task by difficulty.",
        _difficulty,
    ),
    FigureSpec(
        "score_vs_items",
        "Are there enough items? Mean score of growing random subsets of the items, with the 95 % "
        "bounds of each subset.",
        _sample_size,
    ),
    FigureSpec(
        "pass_at_k",
        "Do repeated samples help? pass@k (solid): the percentage of items with a correct answer "
        "among k samples; dashed: the accuracy of the most frequent answer among k samples.",
        _pass_at_k,
    ),
    FigureSpec(
        "variant_effects",
        "How much of a score is wording? Runs that differ only in prompts or in the form of the "
        "items: difference of the score from the reference with 95 % bounds, per task. Numbers "
        "beside a panel: percentage of items with consistent answers.",
        _variant_effects,
    ),
    FigureSpec(
        "mean_map",
        "Which lists are hard to average? Score on Mean against magnitude and spread of the lists. "
        "Above the dashed line the numbers of a list need not share a leading digit.",
        _mean_map,
    ),
    FigureSpec(
        "mean_difficulty",
        "At which difficulty does Mean fail? Score against difficulty δ = s − x + 15.",
        _mean_difficulty,
    ),
    FigureSpec(
        "horizons",
        "How large a problem can each run solve? h50 (halfway between chance and 100% correct: "
        "75% for Comparison, where chance is 50%) on every task with 95% intervals, and h90 where "
        "it is reached, in digits of the operands, elements of the list, or operations. Grey: the "
        "control, which only copies digits.",
        _horizon_dots,
        needs="horizons",
    ),
    FigureSpec(
        "horizon_curves",
        "How do right answers fall with size, and does the curve describe it? Exactly right "
        "answers with 95 % intervals (larger dots: more answers), the fitted curve with its 95 % "
        "band, the isotonic regression, and for tasks in digits the curve of the control. Vertical "
        "line: h50, or the isotonic crossing where no curve fits; both at the level halfway "
        "between chance and 100%.",
        _horizon_curves,
        needs="horizons",
    ),
    FigureSpec(
        "horizon_tokens",
        "Does more reasoning reach larger problems? h50 with its 95 % interval against the tokens "
        "that the model generates for an answer of that size; lines connect the reasoning levels "
        "of a model.",
        _horizon_tokens,
        needs="horizons",
    ),
    FigureSpec(
        "horizon_radar",
        "Which tasks gain from reasoning? h50 on every task on a logarithmic scale, one polygon "
        "per reasoning level. The units of the axes differ: compare levels along an axis, not "
        "areas, nor one axis with another.",
        _horizon_radar,
        needs="horizons",
    ),
)
"""The built-in figures, in the order of the page."""


def all_figures() -> list[FigureSpec]:
    """Return `FIGURES`, then the figures of installed packages by entry-point name.

    Raises BadInput if one of these cannot be loaded, has an invalid name, or the name of another.
    """
    plugins = [spec for _, spec in load_plugins(ENTRY_POINTS, FigureSpec)]
    check_names(ENTRY_POINTS, [spec.name for spec in FIGURES], [spec.name for spec in plugins])
    return [*FIGURES, *plugins]
