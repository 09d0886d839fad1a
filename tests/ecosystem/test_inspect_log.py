"""Runs as Inspect logs: nothing lost, nothing made up. Needs `pip install 'numbench[inspect]'`."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.dataset.store import open_dataset
from bench.ecosystem.inspect_log import export_runs
from bench.ecosystem.measures import MEASURES
from bench.errors import BadInput
from bench.journal import write_run
from bench.records import Failure, Response, RunInfo, Usage
from bench.runner.few_shot import examples, fingerprint, turns
from bench.scoring import score_run, summarize
from bench.tasks.phrasing import prompts
from tests.ecosystem import canned
from tests.report import runs

pytest.importorskip("inspect_ai", reason="pip install 'numbench[inspect]'")

from inspect_ai.log import (
    EvalLog,
    list_eval_logs,
    read_eval_log,
    recompute_metrics,
)

from tests.ecosystem.test_inspect_task import evaluated, figures


def exported(run: Path, out: Path) -> EvalLog:
    (path,) = export_runs([run], out)
    return read_eval_log(str(path))


def one_answer(folder: Path, *responses: Response, **changes: object) -> Path:
    """A run of the first item of v1."""
    folder.mkdir()
    data = open_dataset("v1")
    given: dict = {
        "model": "gpt-5",
        "display": "GPT 5",
        "reasoning": "minimal",
        "dataset": data.ref(folder),
        "prompt": prompts().ref,
        "tasks": ("addition",),
        "limit": 1,
        "settings": {},
        "versions": {},
        "created": "2026-01-31T12:00:00Z",
    }
    write_run(folder, RunInfo(**given | changes), responses)
    return folder


def same_figures(one: EvalLog, other: EvalLog) -> None:
    assert figures(one).keys() == figures(other).keys() == set(MEASURES)
    for name, values in figures(one).items():
        assert values == pytest.approx(figures(other)[name], abs=1e-12)


def first() -> str:
    return open_dataset("v1").by_task["addition"][0].id


def test_an_exported_run_has_the_results_that_inspect_itself_finds(tmp_path: Path) -> None:
    ours = exported(canned.run(tmp_path / "run"), tmp_path / "out")
    theirs = evaluated(tmp_path / "logs", canned.texts().__getitem__, limit=canned.LIMIT)
    same_figures(ours, theirs)
    scores = {sample.id: sample.scores for sample in theirs.samples}
    assert {sample.id: sample.scores for sample in ours.samples} == scores
    for one, other in zip(ours.results.scores, theirs.results.scores, strict=True):
        assert (one.name, one.scorer) == (other.name, other.scorer)
        assert one.scored_samples == other.scored_samples
        assert [(m.name, m.group) for m in one.metrics.values()] == [
            (m.name, m.group) for m in other.metrics.values()
        ]
    assert ours.eval.task == theirs.eval.task
    assert ours.eval.task_version == theirs.eval.task_version


def test_inspect_can_work_the_results_out_again(tmp_path: Path) -> None:
    log = exported(canned.run(tmp_path / "run"), tmp_path / "out")
    again = log.model_copy(deep=True)
    again.results = None
    recompute_metrics(again)
    same_figures(again, log)


def test_a_sample_keeps_text_thoughts_tokens_and_times(tmp_path: Path) -> None:
    response = Response(
        item_id=first(),
        text='{"answer": 1}',
        reasoning_text="Let me see.",
        finish_reason="length",
        usage=Usage(input=185, reasoning=30, visible=12, generated=42, source="reported"),
        cost=0.00044,
        latency=2.5,
        served_model="gpt-5-2025-08-07",
        provider="openai",
        attempts=3,
        at="2026-01-31T12:00:10.500+00:00",
    )
    log = exported(one_answer(tmp_path / "run", response), tmp_path / "out")
    (sample,) = log.samples
    assert [message.role for message in sample.messages] == ["system", "user", "assistant"]
    assert sample.output.completion == '{"answer": 1}'
    assert sample.output.message.content[0].reasoning == "Let me see."
    assert sample.output.model == "gpt-5-2025-08-07"
    assert sample.output.stop_reason == "max_tokens"
    usage = sample.output.usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (185, 42, 30)
    assert log.stats.model_usage["gpt-5"].total_tokens == 227
    assert sample.started_at == "2026-01-31T12:00:08+00:00"
    assert sample.completed_at == "2026-01-31T12:00:10.500000+00:00"
    assert sample.total_time == 2.5
    assert sample.metadata["response"]["cost"] == 0.00044
    assert sample.metadata["response"]["attempts"] == 3
    assert log.eval.model == "gpt-5"
    assert log.eval.metadata["signatures"]["addition"].endswith("model:gpt-5|reasoning:minimal")


def test_unknown_tokens_and_times_stay_unknown(tmp_path: Path) -> None:
    response = Response(item_id=first(), text="7", usage=Usage(generated=5))
    log = exported(one_answer(tmp_path / "run", response), tmp_path / "out")
    (sample,) = log.samples
    assert sample.output.usage is None
    assert log.stats.model_usage == {}
    assert sample.metadata["response"]["usage"]["generated"] == 5
    assert (sample.started_at, sample.completed_at, sample.total_time) == (None, None, None)


def test_a_total_is_of_all_responses_or_none(tmp_path: Path) -> None:
    ids = [item.id for item in open_dataset("v1").by_task["addition"][:2]]
    known = Response(item_id=ids[0], text="7", usage=Usage(input=1, generated=5))
    unknown = Response(item_id=ids[1], text="7")
    log = exported(one_answer(tmp_path / "run", known, unknown, limit=2), tmp_path / "out")
    assert {sample.id: bool(sample.output.usage) for sample in log.samples} == {
        ids[0]: True,
        ids[1]: False,
    }
    assert log.stats.model_usage == {}


def test_an_answer_without_delay_began_when_it_ended(tmp_path: Path) -> None:
    response = Response(item_id=first(), text="7", latency=0.0, at="2026-01-31T12:00:10Z")
    log = exported(one_answer(tmp_path / "run", response), tmp_path / "out")
    assert log.samples[0].started_at == log.samples[0].completed_at == "2026-01-31T12:00:10+00:00"


def test_failed_items_have_no_score_and_missing_ones_no_sample(tmp_path: Path) -> None:
    run = runs.mixed_run(tmp_path)
    log = exported(run, tmp_path / "out")
    cells = summarize(score_run(run))
    assert log.status == "cancelled"
    assert log.results.total_samples == sum(cell.n for cell in cells.values()) == 36
    assert len(log.samples) == 35
    assert log.results.completed_samples == 34
    failed = [sample for sample in log.samples if sample.error]
    assert [sample.id for sample in failed] == ["multiplication-0"]
    assert not failed[0].scores
    for task, cell in cells.items():
        assert 100 * figures(log)["log_smape"][task] == pytest.approx(cell.score)


def test_an_error_says_why(tmp_path: Path) -> None:
    failure = Failure(kind="item", message="too long", status=400)
    response = Response(item_id=first(), error=failure)
    log = exported(one_answer(tmp_path / "run", response), tmp_path / "out")
    assert log.samples[0].error.message == "item: too long"
    assert log.samples[0].output.choices == []


def test_examples_that_the_run_showed_are_in_its_messages(tmp_path: Path) -> None:
    shown = examples(open_dataset("v1"), ["addition"], 2)
    settings = {"few_shot": 2, "few_shot_sha256": fingerprint(shown)}
    run = one_answer(tmp_path / "run", Response(item_id=first(), text="7"), settings=settings)
    (sample,) = exported(run, tmp_path / "out").samples
    said = [(message.role, message.text) for message in sample.input[1:-1]]
    assert said == [tuple(message) for message in turns(shown["addition"])]


def test_messages_that_cannot_be_known_any_more_are_left_out(tmp_path: Path) -> None:
    settings = {"few_shot": 2, "few_shot_sha256": "of an older generator"}
    run = one_answer(tmp_path / "run", Response(item_id=first(), text="7"), settings=settings)
    log = exported(run, tmp_path / "out")
    assert [message.role for message in log.samples[0].input] == ["user"]
    assert log.eval.metadata["messages_complete"] is False


def test_runs_lie_side_by_side_in_one_folder_of_logs(tmp_path: Path) -> None:
    response = Response(item_id=first(), text="7")
    one_answer(tmp_path / "minimal", response)
    one_answer(tmp_path / "high", response, reasoning="high")
    written = list(export_runs([tmp_path], tmp_path / "out"))
    assert len(written) == 2
    assert list(export_runs([tmp_path], tmp_path / "out")) == written
    listed = list_eval_logs(str(tmp_path / "out"))
    assert {info.task for info in listed} == {"numbench-v1"}
    assert len({info.task_id for info in listed}) == 2


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no run here"):
        list(export_runs([tmp_path], tmp_path / "out"))
