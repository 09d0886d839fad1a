"""The response model recovers what was planted, and says how well it does."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import msgspec
import numpy as np
import pytest

from experiments.study_calibration.responses import read_study_scores
from numbench.calibration.cross_validation import cross_validate
from numbench.calibration.expected_score import expected_scores
from numbench.calibration.features import item_features
from numbench.calibration.response_model import (
    MIN_EVENTS,
    fit_features,
    fit_response_model,
    fit_weighted,
)
from numbench.dataset.store import open_dataset
from numbench.records import Item
from numbench.stats.intervals import score_interval
from numbench.tasks import PAPER_TASKS
from numbench.tasks.items import make_item
from tests.calibration import planted

pytestmark = pytest.mark.slow


def uniform(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(5).uniform(-2, 2, (rows, columns))


def test_planted_coefficients_are_recovered() -> None:
    features = uniform(20_000, 3)
    logits = 0.5 + features @ [1.0, -0.7, 0.0]
    answers = planted.answers(1 / (1 + np.exp(-logits)), 1)
    matrix = np.column_stack([np.ones(len(features)), features])
    found = fit_weighted(matrix, answers, np.ones((1, len(answers))), 0.3, np.zeros((1, 4)))[0]
    assert found == pytest.approx([0.5, 1.0, -0.7, 0.0], abs=0.06)


def test_weights_count_rows() -> None:
    features = uniform(300, 2)
    answers = planted.answers(1 / (1 + np.exp(-features[:, 0])), 2)
    matrix = np.column_stack([np.ones(len(features)), features])
    times = np.arange(len(answers)) % 3
    start = np.zeros((1, 3))
    weighted = fit_weighted(matrix, answers, times[None, :].astype(float), 1.0, start)
    rows = np.repeat(np.arange(len(answers)), times)
    repeated = fit_weighted(matrix[rows], answers[rows], np.ones((1, len(rows))), 1.0, start)
    assert weighted == pytest.approx(repeated, abs=1e-6)


def test_fit_is_the_maximum_of_an_independent_likelihood() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    features = uniform(400, 2)
    answers = planted.answers(1 / (1 + np.exp(1 - 2 * features[:, 1])), 3)
    matrix = np.column_stack([np.ones(len(features)), features])

    def loss(beta: np.ndarray) -> float:
        p = 1 / (1 + np.exp(-matrix @ beta))
        likelihood = np.sum(answers * np.log(p) + (1 - answers) * np.log(1 - p))
        return float(-likelihood + 3.0 * np.sum(beta[1:] ** 2) / 2)

    best = optimize.minimize(loss, np.zeros(3), tol=1e-10).x
    found = fit_weighted(matrix, answers, np.ones((1, 400)), 3.0, np.zeros((1, 3)))[0]
    assert found == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("scores", [np.ones(50), np.zeros(50), np.r_[np.zeros(5), np.ones(45)]])
def test_few_errors_give_a_constant_model(scores: np.ndarray) -> None:
    assert min(scores.sum(), (1 - scores).sum()) < MIN_EVENTS
    model = fit_features(uniform(50, 2), scores)
    assert model.penalty is None
    predicted = model.predict_features(10 * uniform(20, 2))
    assert predicted == pytest.approx(np.full(20, scores.mean()), abs=0.01)


def test_separable_answers_have_a_finite_fit() -> None:
    features = uniform(200, 2)
    model = fit_features(features, (features[:, 0] > 0).astype(float))
    assert np.isfinite(model.coefficients).all()
    predicted = model.predict_features(features)
    assert ((predicted > 0.5) == (features[:, 0] > 0)).mean() > 0.98


def test_predictions_do_not_extrapolate() -> None:
    features = uniform(500, 1)
    model = fit_features(features, planted.answers(1 / (1 + np.exp(-features[:, 0])), 4))
    ends = np.array([[features.max()], [1e6]])
    assert model.predict_features(ends)[0] == model.predict_features(ends)[1]
    assert model.columns.outside(ends) == 0.5


def test_predictions_match_planted_probabilities() -> None:
    rows = planted.items("multiplication", 4000)
    truth = planted.smooth(rows)
    model = fit_response_model(rows[:2000], list(planted.answers(truth, 7)[:2000]))
    assert np.abs(model.predict(rows[2000:]) - truth[2000:]).mean() < 0.03


def test_fractional_scores_have_their_mean_modelled() -> None:
    rows = planted.items("multiplication", 2000)
    truth = 0.1 + 0.9 * planted.smooth(rows)
    right = planted.answers(planted.smooth(rows), 8)
    model = fit_response_model(rows, list(0.1 + 0.9 * right))
    assert np.abs(model.predict(rows) - truth).mean() < 0.05
    assert cross_validate(rows, list(0.1 + 0.9 * right)).slope == pytest.approx(1, abs=0.1)


def test_cross_validation_finds_no_skill_in_noise() -> None:
    rows = planted.items("addition", 500)
    noise = cross_validate(rows, list(planted.answers(np.full(500, 0.5), 9)))
    real = cross_validate(rows, list(planted.answers(planted.smooth(rows), 9)))
    assert noise.skill < 0.01 < 0.1 < real.skill
    assert noise.auc is not None and abs(noise.auc - 0.5) < 0.08
    assert real.slope == pytest.approx(1, abs=0.25)
    assert abs(real.bias) < 0.01


def test_every_task_has_the_same_features_for_all_items() -> None:
    for task, rows in open_dataset("v1").by_task.items():
        names = {tuple(item_features(item)) for item in rows}
        assert len(names) == 1, task


def test_features_of_an_addition() -> None:
    features = item_features(_item("addition", "-", ("-1200.5", "0.03")))
    assert features["digits of the longer operand"] == 5
    assert features["places of the exact sum"] == 6
    assert features["subtracts"] == 0  # -1200.5 - 0.03 adds the absolute values
    assert features["negative operands"] == 1


def test_features_of_a_list() -> None:
    features = item_features(_item("mean", "mean", ("100", "100.5", "-0.5")))
    assert features["places"] == 4
    assert features["both signs"] == 1
    # Mean 66.67, largest deviation 67.17.
    assert features["magnitude of the mean"] == pytest.approx(np.log10(200 / 3))
    assert features["spread"] == pytest.approx(np.log10(67.1667 / 66.6667), abs=1e-4)


def test_unknown_task_has_no_features() -> None:
    item = _item("addition", "+", ("1", "2"))
    with pytest.raises(ValueError, match="no features"):
        item_features(msgspec.structs.replace(item, task="copy"))


def _item(task: str, operator: str, operands: tuple[str, ...]) -> Item:
    return make_item(task, operator, operands, {})


def test_score_on_the_answered_items_is_the_observed_one() -> None:
    rows = planted.items("division", 400)
    answers = planted.answers(planted.smooth(rows), 11)
    (same,) = expected_scores(rows, list(answers), [rows], resamples=50)
    assert same.score == pytest.approx(100 * answers.mean(), abs=1e-6)
    assert same.offset == pytest.approx(0, abs=1e-6)
    assert same.outside == 0


def test_a_perfect_model_has_the_interval_of_its_score_and_no_offset() -> None:
    rows = planted.items("minmax", 100)
    (perfect,) = expected_scores(rows, [1.0] * 100, [rows])
    assert (perfect.score, perfect.offset) == (100.0, None)
    assert perfect.interval == score_interval(np.full(100, 100.0))


@pytest.mark.parametrize("name", planted.MODELS)
def test_interval_covers_the_planted_score(name: str) -> None:
    """Of 24 simulated studies, fewer than 18 covering has a probability of 1 in 10,000."""
    target = planted.items("multiplication", 300, seed=9, max_digits=15)
    truth = 100 * planted.MODELS[name](target).mean()
    pool = planted.items("multiplication", 24 * 300, seed=2)
    covered: defaultdict[str, int] = defaultdict(int)
    for study in range(24):
        rows = pool[300 * study : 300 * (study + 1)]
        chances = planted.MODELS[name](rows)
        (found,) = expected_scores(rows, list(planted.answers(chances, study)), [target], 100)
        assert found.offset_interval is not None
        offset = truth - 100 * chances.mean()
        covered["score"] += found.interval.low <= truth <= found.interval.high
        covered["offset"] += found.offset_interval.low <= offset <= found.offset_interval.high
    assert min(covered.values()) >= 18, dict(covered)


def test_study_responses_are_predicted(paper_results: Path) -> None:
    """The models beat the mean score, are calibrated, and rank right above wrong answers."""
    scores = read_study_scores(paper_results)
    assert set(next(iter(scores.values()))) == set(PAPER_TASKS)
    for of_task in scores.values():
        for task in ("multiplication", "division", "mean"):
            found = cross_validate(of_task[task].items, of_task[task].exact_match)
            assert abs(found.bias) < 0.01
            if min(found.mean_score, 1 - found.mean_score) > 0.05:
                assert found.skill > 0.1 and found.auc is not None and found.auc > 0.75
                assert found.slope == pytest.approx(1, abs=0.25)
