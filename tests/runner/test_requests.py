"""Several samples per item, worked examples, and the record of what is requested."""

import io
import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from rich.console import Console

from numbench.dataset.store import open_dataset, write_dataset
from numbench.errors import BadInput
from numbench.journal.run_folder import REQUESTS, read_run
from numbench.records import Response
from numbench.runner.execution import run
from numbench.runner.few_shot import example_messages, examples
from numbench.runner.plan_table import plan_table
from numbench.runner.planning import plan
from numbench.runner.recorded_requests import read_requests
from numbench.runner.spec import RunSpec
from numbench.scoring.exact_protocol import score_exact
from numbench.tasks import PAPER_TASKS
from numbench.tasks.items import content_hash, split_of
from tests.runner.batch_provider import Provider
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.runs import MODEL, go, good, questions, run_with
from tests.support.servers import serve

SEED = 7
FLOAT64 = "baseline/float64"
SAMPLED: dict[str, Any] = {"samples": 3, "temperature": 0.7, "seed": SEED}


def requested(server: servers.Server) -> Counter[tuple[str, int]]:
    """Requests per prompt and sample; the seed tells the sample."""
    return Counter((received.prompt, received.body["seed"] - SEED) for received in server.received)


def test_every_item_is_requested_once_per_sample(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        report = go(server, dataset, out, concurrency=1, **SAMPLED)
        # The first sample of every item is sent before any second.
        samples = [received.body["seed"] - SEED for received in server.received]
        assert samples == [0] * 10 + [1] * 10 + [2] * 10
        assert (report.answered, report.skipped, report.generated_tokens) == (30, 0, 120)
        assert go(server, dataset, out, **SAMPLED).skipped == 30
        assert set(requested(server).values()) == {1}
        assert {sample for _, sample in requested(server)} == {0, 1, 2}
        assert {received.body["temperature"] for received in server.received} == {0.7}
    recorded = read_run(out)
    assert (recorded.info.samples, recorded.info.settings["temperature"]) == (3, 0.7)
    assert recorded.info.settings["seed"] == SEED
    stored = {(response.item_id, response.sample) for response in recorded.responses.values()}
    ids = [item.id for items in questions(5).values() for item in items]
    assert stored == set(product(ids, range(3)))


def test_the_number_of_samples_can_be_raised_and_a_smaller_one_keeps_it(
    dataset: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        once = SAMPLED | {"samples": 1}
        assert go(server, dataset, out, **once).answered == 10
        assert "samples" not in read_run(out).info.settings
        assert go(server, dataset, out, **SAMPLED).answered == 20
        assert go(server, dataset, out, **once).answered == 0
        assert go(server, dataset, out, **(SAMPLED | {"limit": 2, "samples": 2})).skipped == 8
        assert read_run(out).info.samples == 3
        assert set(requested(server).values()) == {1}
        with pytest.raises(BadInput, match=r"limit None and 3 samples.*--limit and --samples"):
            go(server, dataset, out, **(SAMPLED | {"limit": 2, "samples": 4}))
        with pytest.raises(BadInput, match=r"settings.temperature 0.7, but this one has 0.2"):
            go(server, dataset, out, **(SAMPLED | {"temperature": 0.2}))


def test_batch_jobs_contain_every_sample_once(dataset: Path, tmp_path: Path) -> None:
    provider, out = Provider(), tmp_path / "run"
    with serve(provider) as server:
        assert go(server, dataset, out, batch=True, **SAMPLED).answered == 30
        assert go(server, dataset, out, batch=True, **(SAMPLED | {"samples": 4})).answered == 10
    assert len(provider.jobs) == 2
    assert len(provider.received) == 40 and set(provider.received.values()) == {1}
    first, *_ = questions(1)["addition"]
    lines = [line for job in ("batch-0", "batch-1") for line in provider.requests(job)]
    of_first = {
        line["custom_id"]: line["body"]["seed"]
        for line in lines
        if line["body"]["messages"][-1]["content"] == first.prompt
    }
    assert of_first == {
        first.id: 7,
        f"{first.id}-sample-1": 8,
        f"{first.id}-sample-2": 9,
        f"{first.id}-sample-3": 10,
    }
    samples = Counter(response.sample for response in read_run(out).responses.values())
    assert samples == {0: 10, 1: 10, 2: 10, 3: 10}


def test_a_plan_counts_each_sample(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    once = plan(RunSpec("gpt-5", reasoning="minimal", dataset=dataset, out=out))
    planned = plan(RunSpec("gpt-5", reasoning="minimal", dataset=dataset, out=out, samples=5))
    assert (once.requests, planned.requests, planned.spec.samples) == (10, 50, 5)
    for name in ("input_tokens", "generated_tokens", "cost"):
        assert getattr(planned.total, name) == pytest.approx(5 * getattr(once.total, name))
    with serve(good) as server:
        spec = {"base_url": server.url, "dataset": dataset, "out": out}
        run_with(model=MODEL, limit=2, **spec, **SAMPLED)
        rest = plan(RunSpec(MODEL, **spec, **SAMPLED))
    assert rest.requests == 30 - 12
    console = Console(file=io.StringIO(), record=True)
    console.print(plan_table([planned]))
    assert "Samples per question: 5." in console.export_text()


def test_examples_are_validation_items_with_well_formed_correct_answers() -> None:
    shown = examples(open_dataset("v1"), tuple(PAPER_TASKS), 8)
    assert shown.keys() == PAPER_TASKS.keys()
    for task, items in shown.items():
        assert len({item.id for item in items}) == 8
        for item, message in zip(items, example_messages(items)[1::2], strict=True):
            assert (item.task, split_of(item.operands)) == (task, "val")
            assert message.role == "assistant"
            score = score_exact(item, Response(item_id=item.id, text=message.content))
            assert (score.exact_match, score.rule) == (True, "json"), message.content


def test_examples_never_share_operands_with_a_question(tmp_path: Path) -> None:
    first, second, *_ = examples(open_dataset("v1"), ("addition",), 4)["addition"]
    other = write_dataset(
        tmp_path,
        {"addition": [first, second]},
        name="foreign",
        generator="somebody",
        seed=1,
        split="val",
        settings={"max_digits": 15},
    )
    (shown,) = examples(other, ("addition",), 4).values()
    received = {content_hash(item.operands) for item in (first, second)}
    assert not received & {content_hash(item.operands) for item in shown}
    assert len(shown) == 4


@each_row(__file__, "unaskable_questions")
def test_questions_that_no_task_has_made_are_not_asked(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    first, second = open_dataset("v1").by_task["addition"][:2]
    items = [first, structs.replace(second, **fields) if fields else first]
    about: dict[str, Any] = {"generator": "test", "seed": None, "split": "test", "settings": {}}
    write_dataset(tmp_path / "data", {"addition": items}, name="own", **about)
    transform = "swap" if fields.get("operands") == ["1"] else None
    with pytest.raises(BadInput, match=message):
        run(RunSpec(FLOAT64, dataset=tmp_path / "data", out=tmp_path / "run", transform=transform))
    assert not (tmp_path / "run" / "responses.jsonl").exists()


def test_examples_precede_every_question(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with serve(lambda _: servers.chat()) as server:
        go(server, dataset, None, few_shot=2, tasks=["minmax"])
        report = go(server, dataset, None, few_shot=2)
        assert report.path == Path("results/openai-some_default_small_2-shot")
        for received in server.received:
            roles = [message["role"] for message in received.body["messages"]]
            assert roles == ["system", *["user", "assistant"] * 2, "user"]
            told = [message["content"] for message in received.body["messages"]]
            assert told[-1] not in told[:-1]
        assert len({received.prompt for received in server.received}) == 10
        assert go(server, dataset, None, few_shot=2).completed == 0
        settings = read_run(report.path).info.settings
        assert settings["few_shot"] == 2
        assert settings["few_shot_sha256"].keys() == {"minmax", "addition"}
        # The hashes of all tasks are recorded, whatever the last call asked.
        assert go(server, dataset, None, few_shot=2, tasks=["addition"]).completed == 0
        assert read_run(report.path).info.settings == settings
        with pytest.raises(BadInput, match=r"few_shot 2, but this one has 3"):
            go(server, dataset, report.path, few_shot=3)
        with pytest.raises(BadInput, match=r"few_shot 2, but this one has None"):
            go(server, dataset, report.path)
        info = json.loads((report.path / "run.json").read_text())
        info["settings"]["few_shot_sha256"]["addition"] = 64 * "0"
        (report.path / "run.json").write_text(json.dumps(info))
        with pytest.raises(
            BadInput, match="examples for addition '000000000000', but this one has"
        ):
            go(server, dataset, report.path, few_shot=2)


def test_one_request_per_task_is_recorded_as_it_was_sent(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out, tasks=["addition"])
        assert [each.task for each in read_requests(out)] == ["addition"]
        go(server, dataset, out, seed=None)
        sent = [each.body for each in server.received]
    recorded = read_requests(out)
    assert [each.task for each in recorded] == ["addition", "minmax"]
    assert {each.item_id for each in recorded} == {items[0].id for items in questions(5).values()}
    assert all(each.body in sent for each in recorded)
    assert read_run(out).info.requests == {each.task: each.sha256 for each in recorded}


def test_older_runs_without_recorded_requests_are_resumed(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out, tasks=["addition"])
        info = json.loads((out / "run.json").read_text())
        del info["requests"]
        (out / "run.json").write_text(json.dumps(info))
        (out / REQUESTS).unlink()
        assert go(server, dataset, out).answered == 5
    assert set(read_run(out).info.requests) == {"addition", "minmax"}


def test_neither_streaming_nor_seeds_of_samples_change_the_shape(
    dataset: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    options: dict[str, Any] = {"seed": 3, "temperature": 0.5}
    with serve(good) as server:
        go(server, dataset, out, **options)
        assert go(server, dataset, out, **options, samples=2, stream=False).answered == 10
        assert {each.body["seed"] for each in server.received} == {3, 4}


def test_a_lost_file_of_requests_does_not_lift_the_check(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out)
        info = json.loads((out / "run.json").read_text())
        info["requests"]["addition"] = "0" * 64
        (out / "run.json").write_text(json.dumps(info))
        (out / REQUESTS).unlink()
        with pytest.raises(BadInput, match=r"requests \(see requests.jsonl\) for addition"):
            go(server, dataset, out)
