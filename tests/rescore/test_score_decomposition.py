"""Decomposition of score changes: each correction has its own effect."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from numbench.rescore.analysis import StudyAnalysis, format_score
from numbench.rescore.score_decomposition import CORRECTIONS, ScoreDecomposition
from numbench.scoring import score_run, summarize
from numbench.tasks import PAPER_TASKS
from tests.rescore.conftest import read
from tests.rescore.files import ADDITION, write_benchmark, write_responses


def _decomposition(
    study: StudyAnalysis, task: str, metric: str = "exact_match"
) -> ScoreDecomposition:
    (decomposition,) = (
        score.decomposition
        for score in study.scores
        if (score.decomposition.task, score.decomposition.metric) == (task, metric)
    )
    return decomposition


def test_each_correction_changes_the_score_by_its_own_effect(small: StudyAnalysis) -> None:
    decomposition = _decomposition(small, "addition")
    names = [correction.name for correction in CORRECTIONS]
    effects = dict(zip(names, decomposition.changes, strict=True))
    assert decomposition.published == 0
    assert effects == {"labels": 25, "comparing": 25, "parsing": 25, "counting": 25}
    assert (decomposition.exact, decomposition.n) == (100, 3)


def test_other_notation_is_an_effect_of_comparing(small: StudyAnalysis) -> None:
    assert _decomposition(small, "minmax").changes == (0, 50, 0, 0)


def test_comparison_tasks_have_one_score_and_the_others_two(small: StudyAnalysis) -> None:
    scores = [
        (score.decomposition.task, score.decomposition.metric, score.table)
        for score in small.scores
    ]
    assert scores == [
        ("minmax", "exact_match", "log_smape"),
        ("addition", "log_smape", "log_smape"),
        ("addition", "exact_match", "exact_match"),
    ]


def test_correct_label_of_the_response_file_is_not_corrected(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "csv", "Addition", ADDITION[:1])
    write_responses(tmp_path / "csv", "Addition", [ADDITION[0]._replace(label="3.75")])
    decomposition = _decomposition(read(tmp_path / "csv", tmp_path / "runs"), "addition")
    assert (decomposition.published, decomposition.changes) == (100, (0, 0, 0, 0))


def test_wrong_label_of_the_response_file_is_corrected(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "csv", "Addition", [ADDITION[0]._replace(label="3.75")])
    write_responses(tmp_path / "csv", "Addition", ADDITION[:1])
    decomposition = _decomposition(read(tmp_path / "csv", tmp_path / "runs"), "addition")
    assert (decomposition.published, decomposition.changes) == (0, (100, 0, 0, 0))


def test_answer_that_repeats_a_wrong_label_loses_by_the_correction(tmp_path: Path) -> None:
    row = ADDITION[0]._replace(text='{"answer": 3.7499}')
    write_responses(tmp_path / "csv", "Addition", [row])
    decomposition = _decomposition(read(tmp_path / "csv", tmp_path / "runs"), "addition")
    assert (decomposition.published, decomposition.changes, decomposition.exact) == (
        100,
        (-100, 0, 0, 0),
        0,
    )


def test_effects_add_up_to_the_whole_change_exactly(small: StudyAnalysis) -> None:
    for score in small.scores:
        assert (
            score.decomposition.published + sum(score.decomposition.changes)
            == score.decomposition.exact
        )
        assert all(isinstance(change, Decimal) for change in score.decomposition.changes)


@pytest.mark.slow
def test_first_stage_is_the_published_score_and_the_last_the_exact_score(
    whole: StudyAnalysis,
) -> None:
    assert whole.scores
    for score in whole.scores:
        assert score.reproduced is not False, score
        assert (
            score.decomposition.published + sum(score.decomposition.changes)
            == score.decomposition.exact
        )
    for run in whole.exact:
        cells = summarize(score_run(run.scored.path))
        for score in whole.scores:
            if score.config != (run.entry.name, run.entry.reasoning):
                continue
            cell = cells[score.decomposition.task]
            value = cell.exact_match if score.decomposition.metric == "exact_match" else cell.score
            assert value is not None
            assert (
                format_score(score.decomposition.exact)
                == format_score(value)
                == format_score(score.estimate.value)
            )
    assert sum(len(run.cells) for run in whole.exact) == len(
        {(score.config, score.decomposition.task) for score in whole.scores}
    )


@pytest.mark.slow
def test_labels_cause_the_change_of_log_smape_on_mean_and_std(whole: StudyAnalysis) -> None:
    for score in whole.scores:
        task, changes = score.decomposition.task, score.decomposition.changes
        if score.decomposition.metric == "log_smape" and task in ("mean", "std"):
            assert changes[0] > 0 and abs(changes[0]) > 10 * sum(map(abs, changes[1:])), score
        if PAPER_TASKS[task].metric == "exact_match":
            assert changes[0] == 0, score
