"""`numbench/v1` in Inspect: our questions, our scores. Needs `pip install 'numbench[inspect]'`."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.models import describe_model
from bench.paths import PACKAGE
from bench.records import Response
from bench.runner.spec import RunSpec, resolve
from bench.scoring import score_exact, summarize
from tests.ecosystem import canned

inspect_ai = pytest.importorskip("inspect_ai", reason="pip install 'numbench[inspect]'")

from inspect_ai.log import EvalLog, read_eval_log  # noqa: E402
from inspect_ai.model import (  # noqa: E402
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)


def evaluated(folder: Path, output: object, **arguments: object) -> EvalLog:
    """The log of `numbench/v1` with a mock model that answers each question by `output`."""

    def say(messages: list, *_: object) -> ModelOutput:
        said = output(messages[-1].text)
        if isinstance(said, str):
            said = ModelOutput.from_content("mock", said)
        # Counts of its own spare Inspect's mock the download of a tokenizer.
        said.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return said

    (log,) = inspect_ai.eval(
        "numbench/v1",
        model=get_model("mockllm/model", custom_outputs=say),
        task_args=arguments,
        log_dir=str(folder),
        display="none",
    )
    assert log.status == "success", log.error
    return log


def figures(log: EvalLog) -> dict[str, dict[str, float]]:
    """Scorer → name of a figure → value."""
    return {
        score.name: {name: one.value for name, one in score.metrics.items()}
        for score in log.results.scores
    }


def test_means_per_task_are_those_of_our_own_run(tmp_path: Path) -> None:
    said = canned.texts()
    found = figures(evaluated(tmp_path / "logs", said.__getitem__, limit=canned.LIMIT))
    for task, cell in summarize(canned.scored(tmp_path / "run")).items():
        assert 100 * found["log_smape"][task] == pytest.approx(cell.score, abs=1e-9)
        assert 100 * found["exact_match"][task] == pytest.approx(cell.exact_match, abs=1e-9)
        assert 100 * found["compliance"][task] == pytest.approx(cell.compliance, abs=1e-9)
        assert found["exact_match"][f"{task}_stderr"] > 0
    assert next(iter(found["log_smape"])) == "all"


def test_every_sample_has_our_score_and_how_it_came_about(tmp_path: Path) -> None:
    said, items = canned.texts(), canned.source().by_id
    log = evaluated(tmp_path, said.__getitem__, limit=canned.LIMIT)
    assert len(log.samples) == canned.LIMIT * 9
    for sample in log.samples:
        item = items[sample.id]
        ours = score_exact(item, Response(item_id=item.id, text=said[item.prompt]))
        match = sample.scores["exact_match"]
        assert match.value == ours.exact_match
        assert match.metadata["status"] == ours.status
        assert match.metadata["error_kind"] == ours.error_kind
        if ours.log_smape is not None:
            assert sample.scores["log_smape"].value == ours.log_smape


def test_a_number_wrong_in_its_seventh_digit_is_no_match(tmp_path: Path) -> None:
    wrong = {"What is 76.9379398552 + 0.000727334?": '{"answer": 76.93866}'}
    log = evaluated(tmp_path, lambda text: wrong.get(text, ""), tasks="addition", limit=3)
    sample = next(one for one in log.samples if one.input[-1].text in wrong)
    assert sample.target == "76.9386671892"
    assert sample.scores["exact_match"].value == 0
    assert 0 < sample.scores["log_smape"].value < 1


def test_thoughts_are_not_the_answer(tmp_path: Path) -> None:
    said = canned.texts()

    def think(text: str) -> ModelOutput:
        content = [ContentReasoning(reasoning=said[text]), ContentText(text="I would not know.")]
        choice = ChatCompletionChoice(message=ChatMessageAssistant(content=content))
        return ModelOutput(model="mock", choices=[choice])

    log = evaluated(tmp_path, think, tasks="mean", limit=1)
    assert log.samples[0].scores["exact_match"].metadata["status"] == "unparseable"


@pytest.mark.parametrize(
    ("reason", "status"), [("max_tokens", "truncated"), ("content_filter", "refused")]
)
def test_why_a_response_ended_is_its_status(tmp_path: Path, reason: str, status: str) -> None:
    def cut(_: str) -> ModelOutput:
        return ModelOutput.from_content("mock", "Let me see", stop_reason=reason)

    log = evaluated(tmp_path, cut, tasks="mean", limit=1)
    assert log.samples[0].scores["exact_match"].metadata["status"] == status


@pytest.mark.parametrize("few_shot", [0, 2])
def test_the_model_is_sent_what_our_runner_sends(tmp_path: Path, few_shot: int) -> None:
    spec = RunSpec("openai/any", reasoning="none", tasks=["sorting"], limit=1, few_shot=few_shot)
    plan = resolve(spec, describe_model("openai/any", "none", None))
    request = plan.request(plan.asked["sorting"][0], 1.0)
    log = evaluated(tmp_path, lambda _: "", tasks="sorting", limit=1, few_shot=few_shot)
    sent = [(message.role, message.text) for message in log.samples[0].input]
    assert sent == [tuple(message) for message in request.messages]
    assert len(sent) == 2 + 2 * few_shot


def test_a_few_samples_are_of_all_tasks(tmp_path: Path) -> None:
    log = evaluated(tmp_path, lambda _: "", limit=2)
    assert len({name.partition("-")[0] for name in log.eval.dataset.sample_ids[:9]}) == 9


@pytest.mark.parametrize("installed", [False, True], ids=["checkout", "installed"])
def test_inspects_command_finds_the_task_by_its_name(tmp_path: Path, installed: bool) -> None:
    """`inspect eval numbench/v1 --model mockllm/model`, with arguments of the task."""
    # Inspect names what lies in site-packages after its folder, other code not.
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "bench").symlink_to(PACKAGE, target_is_directory=True)
    # The mock counts tokens with a tokenizer that would be downloaded; LiteLLM comes with it.
    litellm = find_spec("litellm")
    assert litellm is not None and litellm.origin is not None
    tokenizers = Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers"
    wanted = "-T tasks=addition,mean -T limit=2 --display plain"
    command = f"-m inspect_ai eval numbench/v1 --model mockllm/model {wanted} --log-dir logs"
    done = subprocess.run(
        [sys.executable, *command.split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ
        | {"TIKTOKEN_CACHE_DIR": str(tokenizers)}
        | ({"PYTHONPATH": str(packages)} if installed else {}),
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = (tmp_path / "logs").glob("*.eval")
    log = read_eval_log(str(path))
    assert log.eval.task_registry_name == "numbench/v1"
    assert [scorer.metrics[0].name for scorer in log.eval.scorers] == ["numbench/by_task"] * 3
    assert [log.results.total_samples, log.status] == [4, "success"]
    assert {"addition", "mean", "all"} <= figures(log)["exact_match"].keys()
