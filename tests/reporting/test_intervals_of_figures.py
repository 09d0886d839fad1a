"""Tables and figures have the same intervals, by the design of a stratified dataset."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import numbench as nb
from numbench.records import Usage
from numbench.reporting.correct_digits import DIGITS, digit_distributions
from numbench.reporting.entries import measure
from numbench.reporting.failures import failure_shares
from numbench.reporting.pareto_points import cost_points, token_points
from numbench.reporting.repeated_samples import repeated_samples
from numbench.reporting.report_data import ReportData
from numbench.scoring import score_run
from numbench.stats.design import Column
from numbench.stats.intervals import score_interval
from tests.reporting import large_runs

TASKS = ("mean", "std")
SIZE = 200


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    """A run that answers the easier half correctly, with tokens and dollars by difficulty.

    Two responses have no token count.
    """
    folder = tmp_path_factory.mktemp("drawn")
    data = nb.generate("drawn", tasks=TASKS, size=SIZE, out=folder / "drawn")
    rng = np.random.default_rng(4)
    luck = {item.operands: float(rng.exponential(300)) for item in data.by_task["mean"]}
    responses = []
    for task in TASKS:
        ranked = sorted(data.by_task[task], key=lambda item: item.difficulty.base10)
        for rank, item in enumerate(ranked):
            tokens = None if rank == 7 else round(5 * rank + luck[item.operands])
            usage = Usage(input=5, visible=tokens, generated=tokens, source="reported")
            answer = item.answer if rank < SIZE / 2 else 7
            responses.append(
                nb.Response(
                    item_id=item.id,
                    text=f'{{"answer": {answer}}}',
                    finish_reason="stop",
                    usage=usage,
                    cost=(5 * rank + luck[item.operands]) / 1e6,
                )
            )
    run = large_runs.write(folder / "run", data, responses, TASKS)
    return ReportData(measure([score_run(run)]))


def column(report: ReportData, task: str, name: str) -> Column:
    rows = report.runs[0].scored.rows[task]
    if name == "tokens":
        known = [row.response.usage.generated for row in rows if row.response]
        return np.array([count for count in known if count is not None], dtype=float)
    return np.array([float(getattr(row.score, name)) for row in rows])


def test_pareto_score_is_the_mean_of_the_table(report: ReportData) -> None:
    (overall,) = report.comparisons.overall
    (tokens,), (costs,) = token_points(report), cost_points(report)
    assert overall is not None and tokens.score == costs.score == overall


def test_missing_token_counts_do_not_change_the_design(report: ReportData) -> None:
    estimate = report.entries[0].tables["tokens"]["mean"]
    counts = column(report, "mean", "tokens")
    assert len(counts) == SIZE - 1 and estimate.value == pytest.approx(counts.mean())
    assert estimate.low is not None and estimate.high is not None
    independent = 2 * 1.96 * counts.std() / math.sqrt(len(counts))
    # Without the part that grows with difficulty: 300 tokens of the exponential distribution.
    residual = 2 * 1.96 * 300 / math.sqrt(len(counts))
    assert estimate.high - estimate.low == pytest.approx(residual, rel=0.3)
    assert estimate.high - estimate.low < 0.85 * independent


def test_mean_tokens_and_costs_allow_for_shared_lists(report: ReportData) -> None:
    tables = report.entries[0].tables["tokens"]
    widths = [estimate.high - estimate.low for estimate in tables.values()]  # type: ignore[operator]
    (tokens,), (costs,) = token_points(report), cost_points(report)
    assert tokens.price.value == pytest.approx(np.mean([e.value for e in tables.values()]))
    for price in (tokens.price, costs.price):
        assert price.low is not None and price.high is not None
        width = (price.high - price.low) * price.value**-1 * tokens.price.value
        # Equal noise on the same lists: wider than of independent tasks, by up to the root of two.
        assert width == pytest.approx(math.hypot(*widths) / 2 * math.sqrt(2), rel=0.1)


def test_error_bars_of_failures_are_the_complement_of_the_matches(report: ReportData) -> None:
    (shares,) = failure_shares(report.runs)
    matches = np.concatenate([column(report, task, "exact_match") for task in TASKS])
    low, high = score_interval(100 - 100 * matches)
    assert shares.bounds.low < 100 - 100 * matches.mean() < shares.bounds.high
    assert shares.bounds.high - shares.bounds.low < 0.4 * (high - low)


def test_correct_digits_use_the_design(report: ReportData) -> None:
    distributions = digit_distributions(report.runs)
    for task in TASKS:
        (result,) = distributions[task]
        digits = column(report, task, "correct_digits")
        assert result.mean == pytest.approx(digits.mean())
        low, high = score_interval(digits, DIGITS)
        assert result.bounds.high - result.bounds.low < 0.4 * (high - low)


def test_samples_and_plan_agree_and_use_the_design(tmp_path: Path) -> None:
    data = nb.generate("drawn", tasks=["multiplication"], size=SIZE, out=tmp_path / "drawn")
    ranked = sorted(data.by_task["multiplication"], key=lambda item: item.difficulty.base10)
    rng = np.random.default_rng(9)
    responses = [
        nb.Response(
            item_id=item.id,
            sample=sample,
            text=f'{{"answer": {item.answer if rng.random() > rank / SIZE else 7}}}',
            finish_reason="stop",
        )
        for rank, item in enumerate(ranked)
        for sample in range(3)
    ]
    run = large_runs.write(tmp_path / "run", data, responses, ["multiplication"], samples=3)
    (measured,) = measure([score_run(run)])
    (result,) = repeated_samples([measured])
    assert result.variance and result.standard_error
    assert result.variance.residual < 0.2
    estimate = measured.entry.tables["log_smape"]["multiplication"]
    assert estimate.low is not None and estimate.high is not None
    half = (estimate.high - estimate.low) / 2
    assert 1.96 * result.standard_error == pytest.approx(half, rel=0.03)
    for samples in (1, 3):
        (task,) = nb.plan_precision(
            "baseline/float64", pilot=run, dataset=data.path, samples=samples
        ).tasks
        assert task.items == result.items_needed(samples)
