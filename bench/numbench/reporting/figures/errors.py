"""Figures of errors: their kinds as stacked bars, and the correct leading digits of the answers."""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import NamedTuple

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from numbench.plot_style import FULL_WIDTH, PALETTE
from numbench.records import Estimate
from numbench.reporting.data import ReportData, amount_estimate
from numbench.reporting.declarations import declarations
from numbench.reporting.figures.draw import (
    Dot,
    color_bar,
    dots,
    facets,
    fit_text,
    heat,
    interval_key,
    legend,
    legend_label,
    stacked,
)
from numbench.reporting.figures.model import Drawn, run_label
from numbench.reporting.values import RunConfiguration, row_stratum
from numbench.scoring.scored_run import counted_rows
from numbench.tasks import TASKS

KINDS = declarations().figures["failures"].kinds
"""Kind of error → the categories of `numbench.scoring.error_kinds`, in the order of the bars."""

_KIND_OF = {category: kind for kind, categories in KINDS.items() for category in categories}
_BAR_HEIGHT = 0.2
_BAR_LABEL_WIDTH = 2.6

DIGITS = 15
_COLORS = "Blues"
_MEAN_COLOR = "#D55E00"
_ROW_HEIGHT = 0.15
_ACROSS = 4
_LABEL_WIDTH = 1.7


def failure_shares(run: RunConfiguration) -> dict[str, float]:
    """Return kind of error → percentage of the counted questions, mean over the run's tasks."""
    by_task = []
    for task in run.tasks:
        rows = counted_rows(run.scored, task)
        counts = rows.samples_by_item
        samples = counts[rows.item_numbers].tolist()
        weights: Counter[str] = Counter()
        for category, count in zip(rows.categories, samples, strict=True):
            if kind := _KIND_OF.get(category):
                weights[kind] += 100 / count / len(counts)
        by_task.append(weights)
    return {kind: fmean(weights[kind] for weights in by_task) for kind in KINDS}


def failures(data: ReportData) -> Drawn:
    if data.protocol == "paper":
        return "error kinds are not available under the paper protocol"
    runs = [run for run in data.runs if run.tasks]
    if not runs:
        return "no counted answers"
    figure = Figure(figsize=(FULL_WIDTH, 0.6 + _BAR_HEIGHT * len(runs)), layout="constrained")
    axes = figure.add_subplot()
    labels, totals = [], []
    for run in runs:
        name = legend_label(run_label(data, run))
        fewer = "" if run.completeness.is_complete else f", {run.completeness} questions"
        labels.append(fit_text(name + fewer, _BAR_LABEL_WIDTH))
        value, low, high = data.estimate(run, "exact_match") or Estimate(100.0)
        ends = (None if bound is None else 100 - bound for bound in (high, low))
        totals.append(Estimate(100 - value, *ends))
    colors = dict(zip(KINDS, PALETTE, strict=False))
    stacked(axes, list(map(failure_shares, runs)), colors, totals, labels)
    axes.set_xlabel("percent of the questions, mean over the tasks")
    interval_key(axes)
    legend(figure)
    return figure


class DigitShares(NamedTuple):
    """Correct leading digits of a run on a task.

    shares: percentage of the questions without a readable number, then with 0, 1, … 15 correct
    digits. mean: of the readable ones.
    """

    shares: np.ndarray
    mean: Estimate


def digit_shares(data: ReportData, run: int, task: str) -> DigitShares | None:
    """Return the correct digits of a run on a task; None without any, as for lists and letters."""
    scored = data.runs[run].scored
    if task not in scored.rows:
        return None
    rows = counted_rows(scored, task)
    digits, counts = rows.columns["correct_digits"], rows.samples_by_item
    mean = amount_estimate([row_stratum(scored, task, rows, digits)])
    if mean is None:
        return None
    bins = np.nan_to_num(digits + 1).astype(np.int64)
    weights = 1 / counts[rows.item_numbers]
    shares = 100 * np.bincount(bins, weights, minlength=DIGITS + 2) / len(counts)
    high = None if mean.high is None else min(mean.high, DIGITS)
    return DigitShares(shares, mean._replace(high=high))


def correct_digits(data: ReportData) -> Drawn:
    if data.protocol == "paper":
        return "correct digits are not available under the paper protocol"
    known = {
        (run, task): shares
        for task in data.tasks
        for run in range(len(data.runs))
        if (shares := digit_shares(data, run, task)) is not None
    }
    if not known:
        return "no counted answers"
    tasks = list(dict.fromkeys(task for _, task in known))
    runs = sorted({run for run, _ in known})
    names = [fit_text(run_label(data, data.runs[run]), _LABEL_WIDTH) for run in runs]
    norm = PowerNorm(0.5, 0, 100)
    figure = facets(len(tasks), across=_ACROSS, height=0.5 + _ROW_HEIGHT * len(runs))
    for number, (axes, task) in enumerate(zip(figure.axes, tasks, strict=True)):
        # A white column separates unreadable answers from the digits.
        table = np.full((len(runs), DIGITS + 3), np.nan)
        means = []
        for row, run in enumerate(runs):
            if of_run := known.get((run, task)):
                table[row, 0] = of_run.shares[0]
                table[row, 2:] = of_run.shares[1:]
                label = "mean with 95% interval"
                means.append(Dot(row, of_run.mean, _MEAN_COLOR, label=label, key=f"{run}.{task}"))
        dots(axes, means, names, are_shown=number % _ACROSS == 0)
        axes.grid(False)
        heat(axes, table, np.arange(-2.5, DIGITS + 1).tolist(), _COLORS, norm)
        axes.set_xticks([-2, 0, 5, 10, 15], ["–", "0", "5", "10", "15"])
        axes.set_title(TASKS[task].display)
    figure.supxlabel("correct leading digits (–: no readable number)")
    color_bar(figure, _COLORS, norm, "percent of questions").set_ticks([0, 5, 20, 50, 100])
    legend(figure)
    return figure
