"""Logs of Inspect as runs."""

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from numbench.core import jsonl
from numbench.dataset.store import open_dataset
from numbench.ecosystem.inspect_import import import_logs
from numbench.ecosystem.inspect_log import export_runs
from numbench.errors import BadInput
from numbench.journal.run_folder import INFO, iter_responses
from numbench.records import Failure, Response, RunInfo, Usage
from numbench.runner.few_shot import examples, examples_sha256
from numbench.scoring import score_run, summarize
from tests.ecosystem import canned
from tests.report import runs
from tests.support import servers
from tests.support.command_line import CommandLine

pytest.importorskip("inspect_ai", reason="pip install 'numbench[inspect]'")

import inspect_ai
from inspect_ai.log import ProvenanceData, invalidate_samples, read_eval_log, write_eval_log
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)

from tests.support.case_tables import each_row

pytestmark = pytest.mark.slow

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)
COUNTS = st.none() | st.integers(0, 10**6)
USAGES = st.builds(Usage, input=COUNTS, reasoning=COUNTS, visible=COUNTS, generated=COUNTS)
FAILED_AFTER_REASONING = Response(
    item_id="addition-0",
    reasoning_text="First, 1 + 1 = 2. Then",
    usage=Usage(input=20, reasoning=9, visible=0, generated=9, source="reported"),
    error=Failure(kind="item", message="the response was cut off"),
)
FAILURES = st.builds(Failure, kind=st.sampled_from(["item", "transient"]), message=TEXTS)


def info_of(folder: Path) -> RunInfo:
    return jsonl.read_json(folder / INFO, RunInfo)


def sorted_responses(folder: Path) -> list[Response]:
    return sorted(iter_responses(folder), key=lambda response: response.request_id)


def round_trip(run: Path, folder: Path, dataset: str | None = None) -> Path:
    """Export a run to a log of Inspect, and import the log."""
    list(export_runs([run], folder / "logs"))
    (imported,) = import_logs([folder / "logs"], folder / "imported", dataset)
    return imported


def assert_same_run(run: Path, imported: Path) -> None:
    old, new = info_of(run), info_of(imported)
    assert (imported / new.dataset.path).resolve() == (run / old.dataset.path).resolve()
    same = {"dataset": old.dataset, "source": old.source}
    assert new.source == "imported" and msgspec.structs.replace(new, **same) == old
    assert sorted_responses(imported) == sorted_responses(run)


@settings(max_examples=12, deadline=None)
@example([FAILED_AFTER_REASONING])
@given(
    st.lists(
        st.builds(
            Response,
            item_id=st.just("addition-0"),
            text=TEXTS,
            reasoning_text=st.none() | TEXTS.filter(bool),
            finish_reason=st.sampled_from(["stop", "length", "refusal", "other", None]),
            usage=USAGES,
            cost=st.none() | st.floats(0, 10),
            error=st.none() | FAILURES,
            served_model=st.none() | st.just("gpt-5-2025"),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_an_exported_run_is_imported_without_loss(answers: list[Response]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = runs.dataset(folder)
        responses = {
            str(number): msgspec.structs.replace(answer, sample=number)
            for number, answer in enumerate(answers)
        }
        run = runs.run(
            folder / "run", data, responses, tasks=("addition",), limit=1, samples=len(answers)
        )
        assert_same_run(run, round_trip(run, folder, str(data.path)))


def test_a_run_of_v1_is_found_again_without_a_folder(tmp_path: Path) -> None:
    run = canned.write_canned_run(tmp_path / "run", open_dataset("v1"))
    imported = round_trip(run, tmp_path)
    assert_same_run(run, imported)
    before = (imported / "responses.jsonl").read_bytes()
    import_logs([tmp_path / "logs"], tmp_path / "imported")
    assert (imported / "responses.jsonl").read_bytes() == before


def test_logs_of_two_own_datasets_become_two_runs_or_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "datasets"
    for name, task in (("first", "addition"), ("second", "mean")):
        data = runs.dataset(folder, name, tasks=(task,))
        answers = {"0": runs.right(task, 0)}
        runs.run(tmp_path / name, data, answers, tasks=(task,), limit=1)
        list(export_runs([tmp_path / name], tmp_path / "logs"))
    with pytest.raises(BadInput) as error:
        import_logs([tmp_path / "logs"], tmp_path / "runs", str(folder / "first"))
    assert "of the dataset second@" in str(error.value)
    assert "import this log by itself" in str(error.value)
    assert not (tmp_path / "runs").exists()
    # Here, the other one is found by its name.
    monkeypatch.chdir(tmp_path)
    imported = import_logs([tmp_path / "logs"], tmp_path / "runs", str(folder / "first"))
    assert {info_of(run).dataset.name for run in imported} == {"first", "second"}


def evaluate(folder: Path, respond: Any, **arguments: Any) -> Path:
    """Evaluate two tasks of v1 with Inspect, and return the folder of the log."""
    inspect_ai.eval(
        "numbench/v1",
        model=get_model("mockllm/model", custom_outputs=respond),
        task_args={"tasks": "addition,sorting", "limit": 3, "few_shot": 2},
        log_dir=str(folder),
        display="none",
        **arguments,
    )
    return folder


def thoughtful(messages: list, *_: object) -> ModelOutput:
    """Answer every question with 3, after reasoning."""
    parts = [ContentReasoning(reasoning="hm, 3"), ContentText(text='{"answer": 3}')]
    message = ChatMessageAssistant(content=parts, model="mock", source="generate")
    usage = ModelUsage(
        input_tokens=90, output_tokens=12, reasoning_tokens=7, input_tokens_cache_read=30
    )
    choice = ChatCompletionChoice(message=message, stop_reason="max_tokens")
    return ModelOutput(model="mock-served", choices=[choice], usage=usage)


def test_a_log_of_inspect_has_all_that_it_tells(tmp_path: Path) -> None:
    logs = evaluate(tmp_path / "logs", thoughtful, epochs=2, temperature=0.5, max_tokens=50,
                    reasoning_effort="low")  # fmt: skip
    (run,) = import_logs([logs], tmp_path / "runs")
    info = info_of(run)
    assert (info.model, info.reasoning, info.source) == ("mockllm/model", "low", "imported")
    assert (info.tasks, info.limit, info.samples) == (("sorting", "addition"), 3, 2)
    shown = examples(open_dataset("v1"), info.tasks, 2)
    assert info.settings["few_shot_sha256"] == examples_sha256(shown)
    assert (info.settings["temperature"], info.settings["max_tokens"]) == (0.5, 50)
    responses = sorted_responses(run)
    assert len(responses) == 2 * 2 * 3
    for response in responses:
        assert (response.text, response.reasoning_text) == ('{"answer": 3}', "hm, 3")
        assert response.usage == Usage(
            input=120, reasoning=7, visible=5, generated=12, source="reported"
        )
        assert (response.finish_reason, response.served_model) == ("length", "mock-served")
    scored = score_run(run)
    assert all(row.is_answered for rows in scored.rows.values() for row in rows)


def test_both_kinds_of_log_give_the_scores_of_the_run(tmp_path: Path) -> None:
    texts = canned.texts(open_dataset("v1"))

    def respond(messages: list, *_: object) -> ModelOutput:
        output = ModelOutput.from_content("mock", texts[messages[-1].text])
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    logs = evaluate(tmp_path / "logs", respond)
    (path,) = logs.glob("*.eval")
    log = read_eval_log(str(path))
    write_eval_log(log, str(logs / "same.json"), format="json")
    imported = import_logs([logs], tmp_path / "runs")
    assert len(imported) == 2
    run = canned.write_canned_run(tmp_path / "run", open_dataset("v1"))
    expected = summarize(score_run(run))
    by_item = {row.item.id: row.score for rows in score_run(run).rows.values() for row in rows}
    for folder in imported:
        for rows in score_run(folder).rows.values():
            assert [row.score for row in rows] == [by_item[row.item.id] for row in rows]
    assert {"addition", "sorting"} <= expected.keys()


@each_row(__file__, "cached_tokens")
def test_folders_of_inspect_are_imported_as_its_own_tools_read_them(
    tmp_path: Path, usage: dict[str, int], tokens: tuple[int, int]
) -> None:
    """Other JSON files, invalid samples, both meanings of cached input, and Grok's reasoning."""

    def respond(messages: list, *_: object) -> ModelOutput:
        output = ModelOutput.from_content("mock", "1")
        output.usage = ModelUsage(**usage, input_tokens_cache_read=64)
        return output

    logs = evaluate(tmp_path / "logs", respond)
    (path,) = logs.glob("*.eval")
    log = read_eval_log(str(path))
    (logs / "logs.json").write_text(json.dumps({path.name: {"version": 2, "eval": {}}}))
    (logs / "eval-set.json").write_text('{"eval_set_id": "x", "tasks": []}')
    source = ProvenanceData(author="me", reason="the server was broken")
    first, limited, redacted = log.samples[:3]
    limited.limit = inspect_ai.log.EvalSampleLimit(type="time", limit=1)
    limited.output = ModelOutput()
    blob = ContentReasoning(reasoning="gAAAAB", summary="It adds.", redacted=True)
    redacted.output.message.content = [blob, ContentText(text="1")]
    write_eval_log(invalidate_samples(log, [first.uuid], source), str(path))
    (imported,) = import_logs([logs], tmp_path / "runs")
    responses = sorted_responses(imported)
    assert len(responses) == len(log.samples) - 1
    assert str(first.id) not in {response.item_id for response in responses}
    by_id = {response.item_id: response for response in responses}
    assert by_id[str(redacted.id)].reasoning_text == "It adds."
    assert by_id.pop(str(limited.id)).error is not None
    for known in (response.usage for response in by_id.values()):
        assert (known.input, known.generated) == tokens


def test_a_run_with_other_prompts_is_exported_and_imported(tmp_path: Path) -> None:
    numbench = CommandLine(tmp_path, None)
    with servers.serve(servers.plain) as server:
        options = "--model openai/x --prompts paraphrase-1 --limit 2 --out run --base-url"
        numbench("run", *options.split(), server.url)
    numbench("export", "run", "--to", "inspect", "--out", "logs")
    numbench("import", "logs", "--out", "runs")
    (imported,) = (tmp_path / "runs").iterdir()
    assert sorted_responses(imported) == sorted_responses(tmp_path / "run")
    assert numbench("show", str(imported), "--limit", "1") == numbench(
        "show", "run", "--limit", "1"
    )


def test_other_logs_and_other_questions_are_refused(tmp_path: Path) -> None:
    logs = evaluate(tmp_path / "logs", thoughtful)
    (path,) = logs.glob("*.eval")
    log = read_eval_log(str(path))

    def refused(match: str, question: str | None = None, **changes: Any) -> None:
        changed = log.model_copy(deep=True)
        for name, value in changes.items():
            setattr(changed.eval, name, value)
        if question:
            changed.samples[0].input[-1].content = question
        write_eval_log(changed, str(tmp_path / "changed.eval"), format="eval")
        with pytest.raises(BadInput, match=match):
            import_logs([tmp_path / "changed.eval"], tmp_path / "runs")

    other = {"task": "gsm8k", "task_registry_name": "gsm8k"}
    refused("a log of the task 'gsm8k'; only numbench/v1", **other)
    refused("of the dataset v1@000000, but", metadata={"dataset_sha256": "0" * 64})
    refused("the question of .* is 'What is 1", question="What is 1 + 1?")
    refused("eval.metadata.run is not a run of numbench: ", metadata={"run": {"model": 1}})
    (tmp_path / "broken.eval").write_bytes(b"PK")
    with pytest.raises(BadInput, match=r"broken\.eval: not a log that Inspect can read"):
        import_logs([tmp_path / "broken.eval"], tmp_path / "runs")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="no Inspect log here"):
        import_logs([tmp_path / "empty"], tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_the_command_says_what_to_do(tmp_path: Path) -> None:
    numbench = CommandLine(tmp_path, None)
    evaluate(tmp_path / "logs", thoughtful)
    output = numbench("import", "logs", "--out", "runs")
    assert output.splitlines()[-1] == "next: numbench report runs"
    assert "Sort" in numbench("report", "runs", "--out", "report")
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness" / "results_2026-11-23T03-50-41.json").write_text('{"configs": {}}')
    message = numbench("import", "harness", code=2)
    assert message == "numbench: harness: no Inspect log here\n"
