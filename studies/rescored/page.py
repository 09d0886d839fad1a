"""Write the page of the study from its tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from numbench.tasks import PAPER_TASKS, TASKS
from studies.csv_tables import each_row
from studies.pages import render_page, table
from studies.rescored.figures import causes, ceilings
from studies.rescored.tables import EFFECTS

HARD = ("multiplication", "division", "exponentiation", "std")
NUMBERS = tuple(task for task in PAPER_TASKS if TASKS[task].metric == "log_smape")
METRICS = {"exact_match": "exact match", "log_smape": "log-sMAPE", "headline": "score"}
SMALLEST = 0.05
"""Effects below this many points are printed as 0."""

Tables = Mapping[str, pd.DataFrame]


def render(tables: Tables) -> dict[str, bytes]:
    """Return the page and its figures by file name."""
    page = render_page(Path(__file__).with_name("page.md"), values(tables))
    labels, scores = tables["labels"], tables["scores"]
    return {
        "README.md": page.encode(),
        "ceiling.svg": ceilings(labels, scores),
        "causes.svg": causes(scores),
    }


def values(tables: Tables) -> dict[str, object]:
    """Return the values that the template prints."""
    labels, scores, pairs = tables["labels"], tables["scores"], tables["pairs"]
    available = scores[scores["rescored"].notna()]
    by_paper, rescored = pairs["paper_scoring_significant"], pairs["rescored_significant"]
    turned = pairs[by_paper & rescored & (pairs["paper_scoring"] * pairs["rescored"] < 0)]
    wrong = labels[labels["wrong"] > 0]
    effect = _MeanEffects(available)
    return {
        "wrong": labels["wrong"].sum(),
        "labels": f"{labels['labels'].sum():,}",
        "wrong_by_task": _listed(f"{_display(r.task)} {r.wrong}" for r in each_row(wrong)),
        "configs": scores["config"].nunique(),
        "cells": len(available),
        "reproduced": (
            available["paper_scoring"].map(one_decimal) == available["published"].map(one_decimal)
        ).sum(),
        "missing": _missing(scores),
        "score": lambda *key: scores.set_index(["config", "task", "metric"]).loc[key],
        "ceiling": labels.set_index("task"),
        "effect": effect,
        "largest": lambda cause: available[available["metric"] == "log_smape"][cause].abs().max(),
        "bound": lambda value: f"{math.ceil(100 * value) / 100:.2f}",
        "failed": _failed(available),
        "causes": _causes_table(labels, effect),
        "exact_match": _score_table(scores, "exact_match", NUMBERS),
        "log_smape": _score_table(scores, None, tuple(PAPER_TASKS)),
        "order": _order_table(tables),
        "pairs": len(pairs),
        "lost": (by_paper & ~rescored).sum(),
        "gained": (~by_paper & rescored).sum(),
        "turned": [
            f"{METRICS[r.metric]} on {_display(r.task)}, {r.first} minus {r.second}: "
            f"{signed(r.paper_scoring)} → {signed(r.rescored)} points"
            for r in each_row(turned)
        ],
        "claims": _claims_table(scores, pairs),
        "signed": signed,
        "one_decimal": one_decimal,
    }


def one_decimal(value: float) -> str:
    """Format a score in percent as the paper prints it."""
    return f"{value:z.1f}"


def signed(value: float) -> str:
    """Format a change in points."""
    return f"{value:+.1f}" if abs(value) >= SMALLEST else "0"


class _MeanEffects:
    """Mean effects on a score over the configurations with responses."""

    def __init__(self, available: pd.DataFrame) -> None:
        self._means: Any = available.groupby(["task", "metric"])[list(EFFECTS)].mean()

    def __call__(self, task: str, metric: str, cause: str | None = None) -> float:
        row = self._means.loc[(task, metric)]
        return float(row.sum() if cause is None else row[cause])

    def total(self, cause: str) -> float:
        """Return the mean effect on exact match over the tasks with numeric results."""
        return fmean(self(task, "exact_match", cause) for task in NUMBERS)


def _failed(available: pd.DataFrame) -> str:
    """List the effects of failed requests on exact match of a point or more."""
    matches = available[(available["metric"] == "exact_match") & (available["failed"] >= 1)]
    largest = matches.sort_values("failed", ascending=False)
    return _listed(
        f"{r.config} on {_display(r.task)} {signed(r.failed)} "
        f"(without it {one_decimal(r.rescored - r.failed)})"
        for r in each_row(largest)
    )


def _display(task: str) -> str:
    return "mean of eight tasks" if task == "eight" else TASKS[task].display


def _listed(parts: Iterable[str]) -> str:
    *most, last = [*parts] or ["none"]
    return f"{', '.join(most)} and {last}" if most else last


def _missing(scores: pd.DataFrame) -> str:
    empty = scores[scores["rescored"].isna()].drop_duplicates(["config", "task"])
    groups = empty.groupby("config", sort=False)["task"]
    return "; ".join(f"{config}: {_listed(map(_display, tasks))}" for config, tasks in groups)


def _causes_table(labels: pd.DataFrame, effect: _MeanEffects) -> str:
    rows = []
    for row in each_row(labels):
        is_number = row.task in NUMBERS
        rows.append(
            [
                _display(row.task),
                str(row.wrong),
                one_decimal(row.ceiling) if is_number else "",
                one_decimal(row.ceiling_exact_match),
                signed(effect(row.task, "log_smape")) if is_number else "",
                f"**{signed(effect(row.task, 'exact_match'))}**",
                *(signed(effect(row.task, "exact_match", cause)) for cause in EFFECTS),
            ]
        )
    header = ["Task", "Wrong labels of 500", "Ceiling, log-sMAPE", "Ceiling, exact match"]
    header += ["log-sMAPE", "Exact match", "wrong labels", "truncated digits", "notation"]
    return table([*header, "misread answers", "failed requests"], rows)


def _score_table(scores: pd.DataFrame, metric: str | None, tasks: Sequence[str]) -> str:
    """Tabulate published and re-scored values; metric None: the headline metric of each task."""
    known = {(row.config, row.task, row.metric): row for row in each_row(scores)}
    rows = [
        [config, *(_cell(known[config, task, metric or TASKS[task].metric]) for task in tasks)]
        for config in scores["config"].unique()
    ]
    return table(["Model (reasoning)", *map(_display, tasks)], rows)


def _cell(row: Any) -> str:
    published = f"*{one_decimal(row.published)}*"
    if pd.isna(row.rescored):
        return published
    bounds = f"[{one_decimal(row.low)}, {one_decimal(row.high)}]"
    return f"{published} → **{one_decimal(row.rescored)}**<br>{bounds}"


def _order_table(tables: Tables) -> str:
    """Tabulate the ranks that each configuration may have, best mean of eight tasks first."""
    scores, pairs = tables["scores"], tables["pairs"]
    means = tables["means"].sort_values("rescored", ascending=False).set_index("config")
    others = [config for config in scores["config"].unique() if config not in means.index]
    headline = pairs[pairs["metric"].isin(["headline", *{t.metric for t in PAPER_TASKS.values()}])]
    rows = []
    for config in [*means.index, *others]:
        mean = ""
        if config in means.index:
            row = means.loc[config]
            bounds = f"[{one_decimal(row['low'])}, {one_decimal(row['high'])}]"
            mean = f"**{one_decimal(row['rescored'])}** {bounds}"
        ranks = [
            _ranks(headline[(headline["task"] == task) & (headline["metric"] == metric)], config)
            for task, metric in [
                ("eight", "headline"),
                *((task, TASKS[task].metric) for task in PAPER_TASKS),
            ]
        ]
        rows.append([config, mean, *ranks])
    header = ["Model (reasoning)", "Mean of eight tasks", "Ranks", *map(_display, PAPER_TASKS)]
    return table(header, rows)


def _ranks(pairs: pd.DataFrame, config: str) -> str:
    """Return the best and the worst rank of a configuration; empty if it is in no pair."""
    significant = pairs[pairs["rescored_significant"]]
    difference = significant["rescored"]
    is_first, is_second = significant["first"] == config, significant["second"] == config
    better = ((is_first & (difference < 0)) | (is_second & (difference > 0))).sum()
    worse = ((is_first & (difference > 0)) | (is_second & (difference < 0))).sum()
    members = {*pairs["first"], *pairs["second"]}
    if config not in members:
        return ""
    best, worst = 1 + better, len(members) - worse
    return str(best) if best == worst else f"{best}–{worst}"


def _claims_table(scores: pd.DataFrame, pairs: pd.DataFrame) -> str:
    hard = scores[(scores["metric"] == "log_smape") & scores["task"].isin(HARD)]
    hard = hard.assign(maximal=hard["config"].str.endswith("(maximal)"))
    quotes = (
        (
            "“a clear separation between high reasoning and non- or minimal-reasoning models”",
            "on each of these tasks, the lowest score with maximal reasoning is above the highest "
            "without",
            _separation,
        ),
        (
            "“none achieving above 60% log-sMAPE”",
            "no configuration below maximal reasoning is above 60 on any of these tasks",
            _highest,
        ),
        (
            "“Only once we allow a large number of reasoning tokens do we see improved "
            "performance”",
            "every model with two levels is better at the maximal one on each of these tasks",
            _improvement,
        ),
    )
    rows = [
        [quote, reading, *(test(hard, column, pairs) for column in ("published", "rescored"))]
        for quote, reading, test in quotes
    ]
    header = ["Claim", "Our reading", "Published, all configurations", "Re-scored, available files"]
    return table(header, rows, 4)


def _separation(hard: pd.DataFrame, column: str, pairs: pd.DataFrame) -> str:
    parts = []
    for task in HARD:
        of_task = hard[(hard["task"] == task) & hard[column].notna()]
        low = of_task[of_task["maximal"]].nsmallest(1, column).iloc[0]
        high = of_task[~of_task["maximal"]].nlargest(1, column).iloc[0]
        text = f"{_display(task)} {one_decimal(low[column])} / {one_decimal(high[column])}"
        if column == "rescored" and not _is_significant(pairs, task, low["config"], high["config"]):
            text += " (difference not significant)"
        parts.append(text)
    return f"lowest / highest: {', '.join(parts)}"


def _highest(hard: pd.DataFrame, column: str, pairs: pd.DataFrame) -> str:
    row = hard[~hard["maximal"]].nlargest(1, column).iloc[0]
    bound = "" if column == "published" else f", upper bound {one_decimal(row['high'])}"
    return f"highest {one_decimal(row[column])}{bound} ({_display(row['task'])}, {row['config']})"


def _improvement(hard: pd.DataFrame, column: str, pairs: pd.DataFrame) -> str:
    model = hard["config"].str.replace(r" \(\w+\)$", "", regex=True)
    both = hard.assign(model=model)[hard[column].notna()]
    levels = both[both["maximal"]].merge(
        both[~both["maximal"]], on=["model", "task"], suffixes=("", "_other")
    )
    gains = levels[column] - levels[f"{column}_other"]
    text = f"better in {(gains > 0).sum()} of {len(levels)} cells, by {gains.min():.1f} or more"
    if column == "published":
        return text
    known = [
        _is_significant(pairs, row.task, row.config, row.config_other) for row in each_row(levels)
    ]
    return f"{text} (significant in {sum(known)})"


def _is_significant(pairs: pd.DataFrame, task: str, one: str, other: str) -> bool:
    found = pairs[
        (pairs["task"] == task)
        & (pairs["metric"] == "log_smape")
        & pairs["first"].isin([one, other])
        & pairs["second"].isin([one, other])
    ]
    return bool(found["rescored_significant"].iloc[0])
