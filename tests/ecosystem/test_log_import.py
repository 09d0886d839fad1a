"""Logs of Inspect and lm-evaluation-harness as runs."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numbench import jsonl
from numbench.dataset.store import open_dataset
from numbench.ecosystem.inspect_log import export_runs
from numbench.ecosystem.log_import import import_logs
from numbench.errors import BadInput
from numbench.journal import INFO, iter_responses
from numbench.records import Failure, Response, RunInfo, Usage
from numbench.runner.few_shot import examples, examples_sha256
from numbench.scoring import score_run, summarize
from tests.command_line import CommandLine
from tests.ecosystem import canned
from tests.reporting import runs

pytest.importorskip("inspect_ai", reason="pip install 'numbench[inspect]'")

import inspect_ai
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)

pytestmark = pytest.mark.slow

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)
COUNTS = st.none() | st.integers(0, 10**6)
USAGES = st.builds(Usage, input=COUNTS, reasoning=COUNTS, visible=COUNTS, generated=COUNTS)
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
        # Where a request has failed without a text, a log has no message and so no reasoning.
        responses = {
            str(number): msgspec.structs.replace(
                answer,
                sample=number,
                reasoning_text=None if answer.error and not answer.text else answer.reasoning_text,
            )
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


def test_an_interrupted_log_is_imported_as_far_as_it_goes(tmp_path: Path) -> None:
    logs = evaluate(tmp_path / "logs", thoughtful)
    (path,) = logs.glob("*.eval")
    log = read_eval_log(str(path))
    log.status, log.samples = "cancelled", log.samples[:4]
    write_eval_log(log, str(path), format="eval")
    notes: list[str] = []
    (run,) = import_logs([path], tmp_path / "runs", on_message=notes.append)
    assert notes == [f"{path}: 4 of 6 answers; the rest is missing"]
    missing = [r for rows in score_run(run).rows.values() for r in rows if r.response is None]
    assert len(missing) == 2


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
    (tmp_path / "broken.eval").write_bytes(b"PK")
    with pytest.raises(BadInput, match=r"broken\.eval: not a log that Inspect can read"):
        import_logs([tmp_path / "broken.eval"], tmp_path / "runs")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="no log of Inspect or lm-evaluation-harness here"):
        import_logs([tmp_path / "empty"], tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def write_lm_eval(folder: Path, limit: int = 3) -> Path:
    """Write files as `lm_eval run --log_samples` does, with two texts per question."""
    folder.mkdir()
    time = "2026-11-23T03-50-41.779502"
    tasks = ("addition", "sorting")
    names = [f"numbench_v1_{task}" for task in tasks]
    config = {"metadata": {"numbench_dataset": "v1@acae8c"}, "generation_kwargs": {"until": []}}
    results = {
        "config": {"model": "local-chat-completions", "model_args": "model=Qwen,base_url=http://x"},
        "configs": {**dict.fromkeys(names, config), "gsm8k": {}},
        "n-shot": dict.fromkeys(names, 1),
        "date": 1795405784.5,
        "lm_eval_version": "0.4.13",
        "model_name": "local",
    }
    (folder / f"results_{time}.json").write_text(json.dumps(results))
    for task, name in zip(tasks, names, strict=True):
        lines = [
            {
                "doc_id": number,
                "doc": {"id": item.id, "item": msgspec.json.encode(item).decode()},
                "resps": [[canned.correct(item), "no"]],
            }
            for number, item in enumerate(open_dataset("v1").by_task[task][:limit])
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"samples_{name}_{time}.jsonl").write_text(text)
    return folder


def test_results_of_the_harness_are_a_run(tmp_path: Path) -> None:
    (run,) = import_logs([write_lm_eval(tmp_path / "out")], tmp_path / "runs")
    info = info_of(run)
    assert (info.model, info.reasoning, info.limit, info.samples) == ("Qwen", "default", 3, 2)
    assert info.settings["few_shot"] == 1 and info.versions["lm_eval"] == "0.4.13"
    for rows in score_run(run).rows.values():
        assert [row.score.exact_match for row in rows] == [True, False] * 3
    assert {response.usage for response in sorted_responses(run)} == {Usage()}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("v1@acae8c", "v1@000000", "of the dataset v1@000000, but"),
        ("numbench_v1", "other_v1", "no task of numbench"),
        ("2026-11-23T03", "2026-11-24T03", "missing; evaluate with --log_samples"),
    ],
)
def test_unsuitable_results_of_the_harness_are_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    folder = write_lm_eval(tmp_path / "out")
    (results,) = folder.glob("results_*.json")
    results.rename(results.with_name(results.name.replace(old, new)))
    (results,) = folder.glob("results_*.json")
    results.write_text(results.read_text().replace(old, new))
    with pytest.raises(BadInput, match=message):
        import_logs([folder], tmp_path / "runs")


def test_the_command_says_what_to_do(tmp_path: Path) -> None:
    numbench = CommandLine(tmp_path, None)
    write_lm_eval(tmp_path / "out")
    assert "next: numbench report runs --protocol exact" in numbench(
        "import", "out", "--out", "runs"
    )
    assert "Sort" in numbench("report", "runs", "--out", "report")
    samples = next((tmp_path / "out").glob("samples_*"))
    samples.write_text('{"doc": 1}\n')
    message = numbench("import", "out", code=2).replace("\n", " ")
    assert f"{samples.name}, line 1: not a file of lm-evaluation-harness" in message
