"""Compute the tables of the study from the paper's raw responses.

A score changes in four steps from the paper's scoring to exact scoring. The effect of a step is the
difference of two means over the same responses, so the effects add up to the whole change.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd

import numbench as nb
from numbench.dataset.audit import AuditResult
from numbench.dataset.store import read_published_labels
from numbench.published import published_means
from numbench.reporting.comparisons import (
    ALL,
    NOT_SIGNIFICANT,
    Metric,
    PairDifference,
    compare_runs,
)
from numbench.reporting.data import ReportData
from numbench.reporting.values import make_stratum, run_values
from numbench.scoring import headline_score, score_exact, score_paper
from numbench.stats.design import Stratum
from numbench.stats.intervals import mean_intervals
from numbench.stats.multiple_testing import holm
from numbench.stats.paired import compare

EFFECTS = ("labels", "digits", "notation", "parsing", "failed")
"""Causes of a change. `digits` and `notation` are the same step in different tasks."""

EIGHT_TASKS = tuple(task for task in nb.PAPER_TASKS if task != "exponentiation")
"""The tasks that eleven of the thirteen configurations have files for."""

KEYS = ["config", "task", "metric"]
METRICS: tuple[Metric, ...] = ("score", "exact_match")


def compute(responses: Path, runs: Sequence[Path]) -> Mapping[str, pd.DataFrame]:
    """Return the tables by name.

    responses: the folder of the paper's CSV files. runs: the run folders imported from them.
    """
    audit = nb.audit(responses)
    wrong = {error.label.prompt for errors in audit.wrong.values() for error in errors}
    order = list(published_means())
    exact = sorted(
        (nb.score(run) for run in runs),
        key=lambda run: order.index((run.info.display, run.info.reasoning)),
    )
    paper = [nb.score(run.path, protocol="paper") for run in exact]
    means, pairs_of_eight = _mean_of_eight(exact, paper)
    return {
        "labels": _labels(audit, exact[0].dataset),
        "scores": _scores(exact, paper, wrong),
        "means": means,
        "pairs": pd.DataFrame([*_pairs(exact, paper), *pairs_of_eight]),
    }


def _labels(audit: AuditResult, dataset: nb.Dataset) -> pd.DataFrame:
    """Return the wrong labels per task, and the score of a model that answers all correctly."""
    published = read_published_labels(dataset.path)
    rows = []
    for task, labels in audit.checked.items():
        perfect = [
            score_paper(item, _perfect_response(item), published[item.id])
            for item in dataset.by_task[task]
        ]
        rows.append(
            {
                "task": task,
                "labels": labels,
                "wrong": len(audit.wrong.get(task, [])),
                "ceiling": 100 * fmean(headline_score(task, score) for score in perfect),
                "ceiling_exact_match": 100 * fmean(score.exact_match for score in perfect),
            }
        )
    return pd.DataFrame(rows)


def _perfect_response(item: nb.Item) -> nb.Response:
    answer = item.answer if isinstance(item.answer, str) else f"[{', '.join(item.answer)}]"
    value = json.dumps(answer) if nb.TASKS[item.task].answer_kind == "letter" else answer
    return nb.Response(item_id=item.id, text=f'{{"answer": {value}}}')


def _scores(
    exact: Sequence[nb.ScoredRun], paper: Sequence[nb.ScoredRun], wrong: Collection[str]
) -> pd.DataFrame:
    """Return a row per published score: published, re-scored with interval, and the effects.

    The last columns are empty where no responses are available.
    """
    published = pd.DataFrame(_published())
    rescored = pd.DataFrame(_estimates(ReportData(exact, references=False)))
    changes = pd.concat(
        effects(after, before, wrong).assign(config=_name(after))
        for after, before in zip(exact, paper, strict=True)
    )
    return (
        published[[*KEYS, "value"]]
        .rename(columns={"value": "published"})
        .merge(rescored.rename(columns={"value": "rescored"}), "left", KEYS)
        .merge(changes, "left", KEYS)
    )


def _name(run: nb.ScoredRun) -> str:
    return f"{run.info.display} ({run.info.reasoning})"


def _published() -> Iterator[dict[str, object]]:
    for (model, level), means in published_means().items():
        for measure in METRICS:
            for task in means["score"]:
                if task in means[measure] and _is_shown(task, measure):
                    metric = _metric(task, measure)
                    value = means[measure][task]
                    yield {
                        "config": f"{model} ({level})", "task": task, "metric": metric,
                        "value": value,
                    }  # fmt: skip


def _estimates(data: ReportData) -> Iterator[dict[str, object]]:
    for run in data.runs:
        for measure in METRICS:
            for task in run.tasks:
                estimate = data.estimate(run, measure, task)
                if estimate is not None and _is_shown(task, measure):
                    names = {"config": run.label, "task": task, "metric": _metric(task, measure)}
                    yield {**names, **estimate._asdict()}


def _is_shown(task: str, measure: Metric) -> bool:
    return measure == "score" or nb.TASKS[task].metric == "log_smape"


def _metric(task: str, measure: Metric) -> str:
    return nb.TASKS[task].metric if measure == "score" else "exact_match"


def effects(exact: nb.ScoredRun, paper: nb.ScoredRun, wrong: Collection[str]) -> pd.DataFrame:
    """Return the scores of a run by the paper's scoring and the effect of each cause in points."""
    stages = pd.DataFrame(_stages(exact, paper, wrong))
    means = 100 * stages.groupby(["task", "metric", "stage"])["score"].mean().unstack()
    steps = means.diff(axis="columns")
    is_number = np.array([nb.TASKS[task].metric == "log_smape" for task, _ in means.index])
    return pd.DataFrame(
        {
            "paper_scoring": means[0],
            "labels": steps[1],
            "digits": steps[2].where(is_number, 0.0),
            "notation": steps[2].mask(is_number, 0.0),
            "parsing": steps[3],
            "failed": steps[4],
        }
    ).reset_index()


def _stages(
    exact: nb.ScoredRun, paper: nb.ScoredRun, wrong: Collection[str]
) -> Iterator[dict[str, object]]:
    """Yield the score of every response at each stage from the paper's to exact scoring."""
    for task, rows in paper.rows.items():
        metrics = dict.fromkeys((nb.TASKS[task].metric, "exact_match"))
        for before, after in zip(rows, exact.rows[task], strict=True):
            item, by_label = before.item, before.score
            if item.prompt in wrong and before.response is not None:
                by_label = score_paper(item, before.response)
            stages = [before.score, by_label, _by_value(item, by_label), after.score]
            if after.is_answered:
                stages.append(after.score)
            for stage, score in enumerate(stages):
                for metric in metrics:
                    value = float(getattr(score, metric) or 0.0)
                    yield {"task": task, "metric": metric, "stage": stage, "score": value}


def _by_value(item: nb.Item, score: nb.Score) -> nb.Score:
    """Return the exact score of the answer that the paper's parser read."""
    if score.parsed is None:
        return score_exact(item, None)
    text = json.dumps({"answer": score.parsed})
    return score_exact(item, nb.Response(item_id=item.id, text=text))


def _pairs(
    exact: Sequence[nb.ScoredRun], paper: Sequence[nb.ScoredRun]
) -> Iterator[dict[str, object]]:
    """Yield the paired difference of every two configurations by either scoring."""
    names = [_name(run) for run in exact]
    before, after = _by_pair(paper), _by_pair(exact)
    order = {
        task: number for number, task in enumerate(next(iter(published_means().values()))["score"])
    }
    for left, right, metric, task in sorted(
        after, key=lambda key: (*key[:2], METRICS.index(key[2]), order[key[3]])
    ):
        old, new = (known[left, right, metric, task] for known in (before, after))
        yield {
            "task": task,
            "metric": _metric(task, metric),
            "first": names[left],
            "second": names[right],
            **_difference("paper_scoring", old),
            **_difference("rescored", new),
        }


def _by_pair(
    runs: Sequence[nb.ScoredRun],
) -> dict[tuple[int, int, Metric, str], PairDifference]:
    """Return the differences of tasks, with Holm's correction over the pairs of each task."""
    known = {
        (one.left, one.right, metric, one.task): one
        for metric in METRICS
        for one in compare_runs(runs, metric=metric).differences
        if one.task != ALL and _is_shown(one.task, metric)
    }
    families: dict[tuple[Metric, str], list[tuple[int, int, Metric, str]]] = {}
    for key in known:
        families.setdefault(key[2:], []).append(key)
    for keys in families.values():
        for key, p in zip(keys, holm([known[key].p for key in keys]), strict=True):
            known[key] = known[key]._replace(p_adjusted=p)
    return known


def _difference(name: str, result: PairDifference) -> dict[str, object]:
    is_significant = result.verdict != NOT_SIGNIFICANT
    return {name: result.difference, f"{name}_significant": is_significant}


def _mean_of_eight(
    exact: Sequence[nb.ScoredRun], paper: Sequence[nb.ScoredRun]
) -> tuple[pd.DataFrame, list[dict[str, object]]]:
    """Return means over `EIGHT_TASKS` for the configurations with all, and their differences."""
    chosen = [index for index, run in enumerate(exact) if set(EIGHT_TASKS) <= set(run.rows)]
    names = [_name(exact[index]) for index in chosen]
    strata = [_strata([runs[index] for index in chosen]) for runs in (paper, exact)]
    by_paper, rescored = (compare(one, list(combinations(range(len(chosen)), 2))) for one in strata)
    mean, low, high = mean_intervals(strata[1])
    means = pd.DataFrame(
        {
            "config": names,
            "paper_scoring": mean_intervals(strata[0]).mean,
            "rescored": mean,
            "low": low,
            "high": high,
        }
    )
    p_values = [
        holm([result.p for result in comparison.overall if result])
        for comparison in (by_paper, rescored)
    ]
    columns = zip(
        combinations(names, 2), by_paper.overall, rescored.overall, *p_values, strict=True
    )
    pairs: list[dict[str, object]] = [
        {
            "task": "eight",
            "metric": "headline",
            "first": first,
            "second": second,
            "paper_scoring": old.difference,
            "paper_scoring_significant": old.is_significant(p_old),
            "rescored": new.difference,
            "rescored_significant": new.is_significant(p_new),
        }
        for (first, second), old, new, p_old, p_new in columns
        if old and new
    ]
    return means, pairs


def _strata(runs: Sequence[nb.ScoredRun]) -> list[Stratum]:
    values = [run_values(run).tasks for run in runs]
    strata = []
    for task in EIGHT_TASKS:
        items = runs[0].dataset.by_task[task]
        matrix = np.full((len(items), len(runs)), np.nan)
        for column, known in enumerate(values):
            matrix[known[task].index, column] = known[task].score
        difficulty = np.array([item.difficulty.base10 for item in items], dtype=np.float64)
        share = values[0][task].share_per_item
        strata.append(
            make_stratum(task, matrix, difficulty, [item.operands for item in items], share)
        )
    return strata
