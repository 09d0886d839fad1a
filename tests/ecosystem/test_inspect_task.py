"""The task `numbench/v1` in Inspect. Needs `pip install 'numbench[inspect]'`."""

from pathlib import Path

import pytest

from numbench.dataset.store import open_dataset
from numbench.models import describe_model
from numbench.records import Response
from numbench.runner.prepare import resolve
from numbench.runner.spec import RunSpec
from numbench.scoring import score_exact, summarize
from tests.ecosystem import canned

pytest.importorskip("inspect_ai", reason="pip install 'numbench[inspect]'")

from inspect_ai.log import EvalLog
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    ModelOutput,
)

from tests.ecosystem.inspect_evaluation import evaluate_task, metric_values

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def canned_log(tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    """The log of an evaluation with the canned responses to v1."""
    texts = canned.texts(open_dataset("v1"))
    return evaluate_task(tmp_path_factory.mktemp("log"), texts.__getitem__, limit=canned.LIMIT)


def test_means_per_task_equal_those_of_a_numbench_run(canned_log: EvalLog, tmp_path: Path) -> None:
    values = metric_values(canned_log)
    run = canned.scored_run(tmp_path / "run", open_dataset("v1"))
    for task, summary in summarize(run).items():
        assert 100 * values["log_smape"][task] == pytest.approx(summary.score, abs=1e-9)
        assert 100 * values["exact_match"][task] == pytest.approx(summary.exact_match, abs=1e-9)
        assert 100 * values["compliance"][task] == pytest.approx(summary.compliance, abs=1e-9)
        assert values["exact_match"][f"{task}_stderr"] > 0
    assert next(iter(values["log_smape"])) == "all"


def test_every_sample_has_the_score_of_the_exact_protocol(canned_log: EvalLog) -> None:
    dataset = open_dataset("v1")
    texts = canned.texts(dataset)
    assert len(canned_log.samples) == canned.LIMIT * 9
    for sample in canned_log.samples:
        item = dataset.by_id[sample.id]
        expected = score_exact(item, Response(item_id=item.id, text=texts[item.prompt]))
        match = sample.scores["exact_match"]
        assert match.value == expected.exact_match
        assert match.metadata["status"] == expected.status
        assert match.metadata["error_kind"] == expected.error_kind
        if expected.log_smape is not None:
            assert sample.scores["log_smape"].value == expected.log_smape


def test_answer_in_the_reasoning_does_not_count(tmp_path: Path) -> None:
    texts = canned.texts(open_dataset("v1"))

    def think(text: str) -> ModelOutput:
        content = [ContentReasoning(reasoning=texts[text]), ContentText(text="I do not know.")]
        choice = ChatCompletionChoice(message=ChatMessageAssistant(content=content))
        return ModelOutput(model="mock", choices=[choice])

    log = evaluate_task(tmp_path, think, tasks="mean", limit=1)
    assert log.samples[0].scores["exact_match"].metadata["status"] == "unparseable"


@pytest.mark.parametrize(
    ("reason", "status"), [("max_tokens", "truncated"), ("content_filter", "refused")]
)
def test_stop_reason_determines_the_status(tmp_path: Path, reason: str, status: str) -> None:
    def respond(_: str) -> ModelOutput:
        return ModelOutput.from_content("mock", "Let me see", stop_reason=reason)

    log = evaluate_task(tmp_path, respond, tasks="mean", limit=1)
    assert log.samples[0].scores["exact_match"].metadata["status"] == status


@pytest.mark.parametrize("few_shot", [0, 2])
def test_messages_equal_those_of_a_numbench_run(tmp_path: Path, few_shot: int) -> None:
    options = {"dataset": "v1", "tasks": ["sorting"], "limit": 1, "few_shot": few_shot}
    spec = RunSpec("openai/any", reasoning="none", **options)
    plan = resolve(spec, describe_model("openai/any", "none"))
    request = plan.request(plan.requests_by_task["sorting"][0])
    log = evaluate_task(tmp_path, lambda _: "", tasks="sorting", limit=1, few_shot=few_shot)
    messages = [(message.role, message.text) for message in log.samples[0].input]
    assert messages == [tuple(message) for message in request.messages]
    assert len(messages) == 2 + 2 * few_shot
