"""A score taken apart: each fault of the study's scoring is repaired on its own step."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from bench.rescore.ladder import REPAIRS, Ladder
from bench.rescore.study import Study, shown
from bench.scoring import score_run, summarize
from bench.tasks import TASKS
from tests.rescore.conftest import read
from tests.rescore.files import ADDITION, write_benchmark, write_responses


def _ladder(study: Study, task: str, metric: str = "exact_match") -> Ladder:
    (found,) = (
        score.ladder
        for score in study.scores
        if (score.ladder.task, score.ladder.metric) == (task, metric)
    )
    return found


def test_each_repair_moves_the_score_on_its_own_step(small: Study) -> None:
    ladder = _ladder(small, "addition")
    steps = dict(zip((repair.name for repair in REPAIRS), ladder.steps, strict=True))
    assert ladder.published == 0
    assert steps == {"labels": 25, "comparing": 25, "parsing": 25, "counting": 25}
    assert (ladder.exact, ladder.n) == (100, 3)


def test_a_number_in_other_notation_is_a_matter_of_comparing(small: Study) -> None:
    assert _ladder(small, "minmax").steps == (0, 50, 0, 0)


def test_comparison_tasks_have_one_score_and_the_others_two(small: Study) -> None:
    found = [(score.ladder.task, score.ladder.metric, score.table) for score in small.scores]
    assert found == [
        ("minmax", "exact_match", "log_smape"),
        ("addition", "log_smape", "log_smape"),
        ("addition", "exact_match", "exact_match"),
    ]


def test_a_right_label_of_the_response_file_itself_is_no_wrong_label(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "csv", "Addition", ADDITION[:1])
    write_responses(tmp_path / "csv", "Addition", [ADDITION[0]._replace(label="3.75")])
    ladder = _ladder(read(tmp_path / "csv", tmp_path / "runs"), "addition")
    assert (ladder.published, ladder.steps) == (100, (0, 0, 0, 0))


def test_a_wrong_label_of_the_response_file_itself_is_repaired(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "csv", "Addition", [ADDITION[0]._replace(label="3.75")])
    write_responses(tmp_path / "csv", "Addition", ADDITION[:1])
    ladder = _ladder(read(tmp_path / "csv", tmp_path / "runs"), "addition")
    assert (ladder.published, ladder.steps) == (0, (100, 0, 0, 0))


def test_an_answer_that_repeats_a_wrong_label_loses_by_the_repair(tmp_path: Path) -> None:
    row = ADDITION[0]._replace(text='{"answer": 3.7499}')
    write_responses(tmp_path / "csv", "Addition", [row])
    ladder = _ladder(read(tmp_path / "csv", tmp_path / "runs"), "addition")
    assert (ladder.published, ladder.steps, ladder.exact) == (100, (-100, 0, 0, 0), 0)


def test_steps_add_up_to_the_whole_change_exactly(small: Study) -> None:
    for score in small.scores:
        assert score.ladder.published + sum(score.ladder.steps) == score.ladder.exact
        assert all(isinstance(step, Decimal) for step in score.ladder.steps)


def test_the_first_rung_is_the_published_cell_and_the_last_the_exact_score(whole: Study) -> None:
    assert whole.scores
    for score in whole.scores:
        assert score.reproduced is not False, score
        assert score.ladder.published + sum(score.ladder.steps) == score.ladder.exact
    for run in whole.exact:
        cells = summarize(score_run(run.run.path))
        for score in whole.scores:
            if score.config != (run.entry.name, run.entry.reasoning):
                continue
            cell = cells[score.ladder.task]
            value = cell.exact_match if score.ladder.metric == "exact_match" else cell.score
            assert value is not None
            assert shown(score.ladder.exact) == shown(value) == shown(score.estimate.value)
    assert sum(len(run.cells) for run in whole.exact) == len(
        {(score.config, score.ladder.task) for score in whole.scores}
    )


def test_labels_are_what_moves_log_smape_on_mean_and_std(whole: Study) -> None:
    for score in whole.scores:
        task, steps = score.ladder.task, score.ladder.steps
        if score.ladder.metric == "log_smape" and task in ("mean", "std"):
            assert steps[0] > 0 and abs(steps[0]) > 10 * sum(map(abs, steps[1:])), score
        if TASKS[task].metric == "exact_match":
            assert steps[0] == 0, score
