"""Runs as Inspect logs. Needs `pip install 'numbench[inspect]'`."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from numbench.dataset.store import open_dataset
from numbench.ecosystem.export import METRIC_NAMES
from numbench.ecosystem.inspect_log import export_runs
from numbench.errors import BadInput
from numbench.journal.run_folder import write_run
from numbench.records import Response, Usage
from numbench.runner.few_shot import example_messages, examples, examples_sha256
from numbench.scoring import score_run, summarize
from numbench.tasks.prompts import load_prompt_set
from tests.ecosystem import canned
from tests.report import runs
from tests.support.runs import INFO

pytest.importorskip("inspect_ai", reason="pip install 'numbench[inspect]'")

from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log

from tests.ecosystem.inspect_evaluation import evaluate_task, metric_values

pytestmark = pytest.mark.slow


def export_log(run: Path, out: Path) -> EvalLog:
    """Export a run and read its log."""
    (path,) = export_runs([run], out)
    return read_eval_log(str(path))


def addition_run(folder: Path, *responses: Response, **changes: object) -> Path:
    """Write a run of the first item of v1."""
    folder.mkdir()
    data = open_dataset("v1")
    fields: dict = {"model": "gpt-5", "reasoning": "minimal", "tasks": ("addition",), "limit": 1}
    fields |= {"dataset": data.ref(folder), "prompt": load_prompt_set().ref(("addition",))}
    write_run(folder, replace(INFO, **fields | {"settings": {}} | changes), responses)
    return folder


def assert_same_metrics(log: EvalLog, expected: EvalLog) -> None:
    assert metric_values(log).keys() == metric_values(expected).keys() == set(METRIC_NAMES)
    for name, values in metric_values(log).items():
        assert values == pytest.approx(metric_values(expected)[name], abs=1e-12)


def first_id() -> str:
    return open_dataset("v1").by_task["addition"][0].id


def test_exported_results_equal_those_of_an_evaluation_by_inspect(tmp_path: Path) -> None:
    dataset = open_dataset("v1")
    log = export_log(canned.write_canned_run(tmp_path / "run", dataset), tmp_path / "out")
    texts = canned.texts(dataset)
    expected = evaluate_task(tmp_path / "logs", texts.__getitem__, limit=canned.LIMIT)
    assert_same_metrics(log, expected)
    scores = {sample.id: sample.scores for sample in expected.samples}
    assert {sample.id: sample.scores for sample in log.samples} == scores
    for result, other in zip(log.results.scores, expected.results.scores, strict=True):
        assert (result.name, result.scorer) == (other.name, other.scorer)
        assert result.scored_samples == other.scored_samples
        assert [(m.name, m.group) for m in result.metrics.values()] == [
            (m.name, m.group) for m in other.metrics.values()
        ]
    assert log.eval.task == expected.eval.task
    assert log.eval.task_version == expected.eval.task_version


def test_samples_of_an_item_are_epochs(tmp_path: Path) -> None:
    items = open_dataset("v1").by_task["addition"][:2]
    texts = {
        items[0].id: (canned.correct(items[0]), '{"answer": 3}', canned.correct(items[0])),
        items[1].id: ('{"answer": 3}', canned.correct(items[1])),
    }
    responses = [
        Response(item_id=item_id, sample=sample, text=text)
        for item_id, of_item in texts.items()
        for sample, text in enumerate(of_item)
    ]
    run = addition_run(tmp_path / "run", *responses, limit=2, settings={"samples": 3})
    log = export_log(run, tmp_path / "out")
    assert (log.eval.config.epochs, log.eval.dataset.samples) == (3, 2)
    assert log.eval.dataset.sample_ids == [item.id for item in items]
    epochs = {(sample.id, sample.epoch) for sample in log.samples}
    assert epochs == {(items[0].id, n) for n in (1, 2, 3)} | {(items[1].id, n) for n in (1, 2)}
    assert (log.results.total_samples, log.results.completed_samples) == (6, 5)
    values = metric_values(log)["exact_match"]
    assert values["addition"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    summary = summarize(score_run(run))["addition"]
    assert summary.exact_match == pytest.approx(100 * values["addition"])


def test_sample_contains_text_reasoning_tokens_and_times(tmp_path: Path) -> None:
    response = Response(
        item_id=first_id(),
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
    log = export_log(addition_run(tmp_path / "run", response), tmp_path / "out")
    (sample,) = log.samples
    assert [message.role for message in sample.messages] == ["system", "user", "assistant"]
    assert sample.output.completion == '{"answer": 1}'
    assert sample.output.message.content[0].reasoning == "Let me see."
    assert sample.output.model == "gpt-5-2025-08-07"
    assert sample.output.stop_reason == "max_tokens"
    usage = sample.output.usage
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (185, 42, 30)
    assert log.stats.model_usage["gpt-5"].total_tokens == 227
    assert sample.completed_at == "2026-01-31T12:00:10.500000+00:00"
    assert sample.total_time == 2.5
    assert sample.metadata["response"]["cost"] == 0.00044
    assert sample.metadata["response"]["attempts"] == 3
    assert log.eval.model == "gpt-5"
    assert log.eval.metadata["signatures"]["addition"].endswith("model:gpt-5|reasoning:minimal")


def test_unknown_tokens_and_times_stay_unknown(tmp_path: Path) -> None:
    ids = [item.id for item in open_dataset("v1").by_task["addition"][:2]]
    unknown = Response(item_id=ids[0], text="7", usage=Usage(generated=5))
    known = Response(item_id=ids[1], text="7", usage=Usage(input=1, generated=5))
    run = addition_run(tmp_path / "run", unknown, known, limit=2, created="")
    log = export_log(run, tmp_path / "out")
    first, second = log.samples
    assert first.output.usage is None and second.output.usage.total_tokens == 6
    assert log.stats.model_usage == {}
    assert first.metadata["response"]["usage"]["generated"] == 5
    assert (first.completed_at, first.total_time) == (None, None)
    assert (log.stats.started_at, log.stats.completed_at) == ("", "")
    assert log.eval.created.startswith("1970-01-01T00:00:00")
    assert log.eval.metadata["run"]["created"] == ""


def test_failed_items_have_no_score_and_missing_ones_no_sample(tmp_path: Path) -> None:
    run = runs.mixed_run(tmp_path)
    log = export_log(run, tmp_path / "out")
    cells = summarize(score_run(run))
    assert log.status == "cancelled"
    assert log.results.total_samples == sum(cell.n for cell in cells.values()) == 36
    assert len(log.samples) == 35
    assert log.results.completed_samples == 34
    failed = [sample for sample in log.samples if sample.error]
    assert [sample.id for sample in failed] == ["multiplication-0"]
    assert not failed[0].scores
    for task, cell in cells.items():
        assert 100 * metric_values(log)["log_smape"][task] == pytest.approx(cell.score)


def test_messages_of_the_run_are_left_out_only_if_the_prompts_have_changed(tmp_path: Path) -> None:
    by_task = examples(open_dataset("v1"), ["addition"], 2)
    settings = {"few_shot": 2, "few_shot_sha256": examples_sha256(by_task)}
    response = Response(item_id=first_id(), text="7")
    run = addition_run(tmp_path / "run", response, settings=settings)
    (sample,) = export_log(run, tmp_path / "out").samples
    messages = [(message.role, message.text) for message in sample.input[1:-1]]
    assert messages == [tuple(message) for message in example_messages(by_task["addition"])]
    settings["few_shot_sha256"] = {"addition": "of an older generator"}
    log = export_log(addition_run(tmp_path / "old", response, settings=settings), tmp_path / "logs")
    assert [message.role for message in log.samples[0].input] == ["user"]
    assert log.eval.metadata["messages_complete"] is False


def test_several_runs_are_exported_to_one_folder_of_logs(tmp_path: Path) -> None:
    response = Response(item_id=first_id(), text="7")
    addition_run(tmp_path / "minimal", response)
    addition_run(tmp_path / "high", response, reasoning="high")
    written = list(export_runs([tmp_path], tmp_path / "out"))
    assert len(written) == 2
    assert list(export_runs([tmp_path], tmp_path / "out")) == written
    listed = list_eval_logs(str(tmp_path / "out"))
    assert {info.task for info in listed} == {"minimal", "high"}
    assert len({info.task_id for info in listed}) == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="no run here"):
        list(export_runs([tmp_path / "empty"], tmp_path / "out"))
