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
from numbench.reporting.comparisons import OVERALL, compare_runs
from numbench.reporting.entries import MeasuredRun, measure, published_entries
from numbench.reporting.sampling_design import stratum_of_items
from numbench.reporting.table_model import EXACT_MATCH, LOG_SMAPE, Entry
from numbench.reporting.task_scores import score_matrices
from numbench.scoring import headline_score, score_exact, score_paper
from numbench.scoring.published_labels import read_published_labels
from numbench.stats.multiple_testing import holm
from numbench.stats.paired import Comparison, Difference, compare

EFFECTS = ("labels", "digits", "notation", "parsing", "failed")
"""Causes of a change. `digits` and `notation` are the same step in different tasks."""

EIGHT_TASKS = tuple(task for task in nb.PAPER_TASKS if task != "exponentiation")
"""The tasks that eleven of the thirteen configurations have files for."""

KEYS = ["config", "task", "metric"]


def compute(responses: Path, runs: Sequence[Path]) -> Mapping[str, pd.DataFrame]:
    """Return the tables by name.

    responses: the folder of the paper's CSV files. runs: the run folders imported from them.
    """
    audit = nb.audit(responses)
    wrong = {error.label.prompt for errors in audit.wrong.values() for error in errors}
    exact = measure([nb.score(run) for run in runs])
    paper = [nb.score(run.scored.path, protocol="paper") for run in exact]
    means, pairs_of_eight = _mean_of_eight(exact, paper)
    return {
        "labels": _labels(audit, exact[0].scored.dataset),
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
    exact: Sequence[MeasuredRun], paper: Sequence[nb.ScoredRun], wrong: Collection[str]
) -> pd.DataFrame:
    """Return a row per published score: published, re-scored with interval, and the effects.

    The last columns are empty where no responses are available.
    """
    published = pd.DataFrame(row for entry in published_entries() for row in _estimates(entry))
    rescored = pd.DataFrame(row for run in exact for row in _estimates(run.entry))
    changes = pd.concat(
        effects(after.scored, before, wrong).assign(config=_name(after.entry))
        for after, before in zip(exact, paper, strict=True)
    )
    return (
        published[[*KEYS, "value"]]
        .rename(columns={"value": "published"})
        .merge(rescored.rename(columns={"value": "rescored"}), "left", KEYS)
        .merge(changes, "left", KEYS)
    )


def _name(entry: Entry) -> str:
    return f"{entry.name} ({entry.reasoning})"


def _estimates(entry: Entry) -> Iterator[dict[str, object]]:
    for table in (LOG_SMAPE, EXACT_MATCH):
        for task, estimate in entry.tables[table.name].items():
            metric = _metric(task, table.name)
            yield {"config": _name(entry), "task": task, "metric": metric, **estimate._asdict()}


def _metric(task: str, table: str) -> str:
    """Return the metric of a score: the table of log-sMAPE has the exact match of comparisons."""
    return nb.TASKS[task].metric if table == LOG_SMAPE.name else "exact_match"


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
    exact: Sequence[MeasuredRun], paper: Sequence[nb.ScoredRun]
) -> Iterator[dict[str, object]]:
    """Yield the paired difference of every two configurations by either scoring."""
    names = [_name(run.entry) for run in exact]
    before = compare_runs(paper).contrasts
    after = compare_runs([run.scored for run in exact]).contrasts
    for old, new in zip(before, after, strict=True):
        if new.task != OVERALL and old.result and new.result:
            yield {
                "task": new.task,
                "metric": _metric(new.task, new.table),
                "first": names[new.first],
                "second": names[new.second],
                **_difference("paper_scoring", old.result, old.p_pairs),
                **_difference("rescored", new.result, new.p_pairs),
            }


def _difference(name: str, result: Difference, p: float | None) -> dict[str, object]:
    assert p is not None
    return {name: result.difference, f"{name}_significant": result.is_significant(p)}


def _mean_of_eight(
    exact: Sequence[MeasuredRun], paper: Sequence[nb.ScoredRun]
) -> tuple[pd.DataFrame, list[dict[str, object]]]:
    """Return means over `EIGHT_TASKS` for the configurations with all, and their differences."""
    chosen = [index for index, run in enumerate(exact) if set(EIGHT_TASKS) <= set(run.cells)]
    names = [_name(exact[index].entry) for index in chosen]
    by_paper = _compare_means([paper[index] for index in chosen])
    rescored = _compare_means([exact[index].scored for index in chosen])
    means = pd.DataFrame(
        {
            "config": names,
            "paper_scoring": by_paper.means.mean,
            "rescored": rescored.means.mean,
            "low": rescored.means.low,
            "high": rescored.means.high,
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
            **_difference("paper_scoring", old, p_old),
            **_difference("rescored", new, p_new),
        }
        for (first, second), old, new, p_old, p_new in columns
        if old and new
    ]
    return means, pairs


def _compare_means(runs: Sequence[nb.ScoredRun]) -> Comparison:
    dataset, matrices = runs[0].dataset, score_matrices(runs)
    strata = [
        stratum_of_items(dataset, task, dataset.by_task[task], matrices[task].headline)
        for task in EIGHT_TASKS
    ]
    return compare(strata, list(combinations(range(len(runs)), 2)))
