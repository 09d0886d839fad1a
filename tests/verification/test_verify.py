"""A run is valid as `numbench run` writes it, and not after any manipulation."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from math import gcd
from pathlib import Path
from typing import Any

import msgspec
import pytest

import numbench as nb
from numbench.errors import BadInput
from numbench.journal.run_folder import read_info
from numbench.records import Failure, FailureKind, Response, Usage
from numbench.scoring import score_run
from numbench.tasks import TASKS
from numbench.tasks.prompts import load_prompt_set
from numbench.verification import Severity, verify
from tests.support.command_line import Call
from tests.support.run_fixtures import keys
from tests.support.runs import flawed, go, small_dataset
from tests.support.servers import serve
from tests.tasks.gcd_task import GCD

__all__ = ["keys"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a baseline on items of its own."""
    folder = tmp_path_factory.mktemp("verify")
    nb.generate(name="own", size=4, tasks=["addition", "sorting"], seed=3, out=folder / "own")
    run = nb.run(
        model="baseline/float32", dataset=folder / "own", tasks=["addition", "sorting"],
        out=folder / "run",
    )  # fmt: skip
    assert run.path == folder / "run"
    return folder


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "copy")
    return tmp_path / "copy" / "run"


def findings(run: Path, severity: Severity) -> list[str]:
    (result,) = verify([run])
    return [f"{check}: {text}" for found, check, text in result.findings if found == severity]


def rewrite(run: Path, change: Callable[[list[Response]], list[Response]]) -> None:
    path = run / "responses.jsonl"
    decoder = msgspec.json.Decoder(Response)
    responses = [decoder.decode(line) for line in path.read_bytes().splitlines()]
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in change(responses)))


def edit_json(path: Path, change: Callable[[Any], object]) -> None:
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))


def test_a_run_as_written_is_valid(run: Path) -> None:
    assert findings(run, "error") == []
    assert "answers: 8 samples, each answered once" in findings(run, "ok")
    assert any("not a released dataset" in text for text in findings(run, "warning"))


def test_a_run_with_a_limit_is_valid_unless_it_must_be_complete(run: Path) -> None:
    (result,) = verify([run], require_complete=True)
    assert result.is_valid
    edit_json(run / "run.json", lambda info: info.update(limit=3))
    asked = {row.item.id for rows in score_run(run).rows.values() for row in rows}
    rewrite(run, lambda responses: [one for one in responses if one.item_id in asked])
    warnings = " ".join(findings(run, "warning"))
    assert "complete: 6 of 8 samples of the dataset are answered" in warnings
    assert "run all tasks without --limit" in warnings
    (result,) = verify([run], require_complete=True)
    errors = [finding.text for finding in result.findings if finding.severity == "error"]
    assert len(errors) == 1 and errors[0].startswith("6 of 8 samples")


@pytest.mark.parametrize(
    ("kind", "way_out"),
    [("item", "with --retry error"), ("transient", "resume the run with its command")],
)
def test_only_permanent_failures_need_an_option(run: Path, kind: FailureKind, way_out: str) -> None:
    def fail(responses: list[Response]) -> list[Response]:
        failed = Response(item_id=responses[0].item_id, error=Failure(kind=kind, message="no"))
        return [failed, *responses[1:]]

    rewrite(run, fail)
    (result,) = verify([run], require_complete=True)
    texts = [found.text for found in result.findings if found.check in ("answers", "complete")]
    assert len(texts) == 2 and all(text.endswith(way_out) for text in texts)


def test_answers_that_were_requested_again_are_valid(tmp_path: Path) -> None:
    data, out = small_dataset(tmp_path / "data", 5), tmp_path / "run"
    with serve(flawed) as server:
        go(server, data, out, max_tokens=5)
        go(server, data, out, max_tokens=50, retry=("truncated",))
        go(server, data, out, retry=("empty", "refused", "error"), max_tokens=5)
    (result,) = verify([out])
    texts = [found.text for found in result.findings if found.check == "answers"]
    (text,) = [text for text in texts if "with --retry" in text]
    assert text.startswith("4 samples have an answer in place of one that was truncated, refused")
    assert not any("several answers" in text for text in texts)


Change = Callable[[Any], object]
V1 = nb.load_dataset("v1").manifest.sha256


def of_run(change: Change) -> Change:
    return lambda run: edit_json(run / "run.json", change)


def of_dataset(**fields: str) -> Change:
    """A dataset folder whose manifest claims something, and a run that agrees."""

    def change(run: Path) -> None:
        edit_json(run.parent / "own" / "manifest.json", lambda m: m.update(fields))
        edit_json(run / "run.json", lambda info: info["dataset"].update(fields))

    return change


def of_responses(change: Callable[[list[Response]], list[Response]]) -> Change:
    return lambda run: rewrite(run, change)


def change_item(run: Path) -> None:
    items = run.parent / "own" / "addition.jsonl"
    items.write_bytes(items.read_bytes().replace(b'"answer":"', b'"answer":"1', 1))


@pytest.mark.parametrize(
    ("change", "severity", "text"),
    [
        (of_run(lambda info: info.update(shard={"index": 1, "count": 2})), "warning",
         "join the shards with `numbench merge`"),
        (of_run(lambda info: info["prompt"]["tasks"].update(addition="0" * 64)), "error",
         "prompts of addition"),
        (of_responses(lambda known: known[1:]), "error", "1 of 8 samples have no answer"),
        (of_responses(lambda known: [*known, known[1]]), "error", "1 samples have several answers"),
        (of_responses(
            lambda known: [*known, msgspec.structs.replace(known[0], item_id="addition-other")]
         ), "error", "1 responses to questions that the run does not ask"),
        (change_item, "error", "content differs from the hash"),
        # A forged folder claims the name and hash of v1: its own items are not used.
        (of_dataset(name="v1", sha256=V1), "error", "samples have no answer"),
        (of_dataset(sha256="1" * 64), "error", "sha256 is not the hash of its files"),
    ],
)  # fmt: skip
def test_a_manipulation_is_found(run: Path, change: Change, severity: Severity, text: str) -> None:
    change(run)
    assert text in " ".join(findings(run, severity))


@pytest.fixture(scope="module")
def original_horizon(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A horizon measurement of a baseline."""
    out = tmp_path_factory.mktemp("horizon") / "run"
    nb.measure_horizons(
        "baseline/float32", tasks=["copy"], max_items=12, max_size=8, precision=0.5, out=out
    )
    return out


def test_changed_prompts_of_a_horizon_are_errors(original_horizon: Path, tmp_path: Path) -> None:
    run = shutil.copytree(original_horizon, tmp_path / "run")
    assert findings(run, "error") == []
    assert any(text.startswith("prompts: ") for text in findings(run, "ok"))
    edit_json(run / "run.json", lambda info: info["prompt"]["tasks"].update(copy="0" * 64))
    (changed,) = findings(run, "error")
    assert changed.startswith("prompts: ") and "the prompts of copy are not those" in changed


@pytest.fixture(scope="module")
def original_memory_test(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory test of a baseline that is right on all frozen and fresh items."""
    out = tmp_path_factory.mktemp("certificate") / "c"
    options = {"tasks": ("interval",), "limit": 60, "margin": 40.0}
    assert nb.run_memory_test("baseline/float64", out=out, **options).verdict == "equivalent"
    return out


def memory_findings(folder: Path) -> dict[str, list[tuple[Severity, str]]]:
    """Return the findings about the memory test, by the name of its run."""
    return {
        path.name: [(severity, text) for severity, check, text in found if check == "memory test"]
        for path, found in verify([folder])
    }


def test_both_runs_of_a_memory_test_have_its_verdict(
    original_memory_test: Path, tmp_path: Path
) -> None:
    def forget(responses: list[Response]) -> list[Response]:
        return [msgspec.structs.replace(one, text='{"answer": 0}') for one in responses]

    folder = shutil.copytree(original_memory_test, tmp_path / "c")
    expected = [("ok", "verdict: equivalent")]
    assert memory_findings(folder) == {"fresh": expected, "frozen": expected}
    rewrite(folder / "fresh", forget)
    expected = [("warning", "verdict: memory")]
    assert memory_findings(folder) == {"fresh": expected, "frozen": expected}
    edit_json(folder / "certificate.json", lambda content: content.update(seed="0" * 64))
    text = "no verdict: the revealed seed is not the registered one"
    expected = [("warning", text)]
    assert memory_findings(folder) == {"fresh": expected, "frozen": expected}


def test_half_of_a_memory_test_has_no_verdict(original_memory_test: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(original_memory_test, tmp_path / "c")
    assert memory_findings(folder / "frozen")["frozen"][0][1] == "verdict: equivalent"
    shutil.rmtree(folder / "fresh")
    assert memory_findings(folder / "frozen") == {"frozen": []}


def test_a_plugin_task_of_exact_match_is_verified_and_memory_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("numbench.dataset.shard_files.POOL_SIZE", 60)
    task = replace(
        GCD, metric="exact_match", approximate=lambda _, numbers, __: gcd(*map(int, numbers))
    )
    monkeypatch.setitem(TASKS, "gcd", task)
    load_prompt_set.cache_clear()
    nb.generate(name="own", size=12, tasks=["gcd"], seed=3, out="own")
    nb.run_memory_test("baseline/float64", dataset=Path("own"), tasks=("gcd",), out="c", margin=40)
    results = verify([Path("c")])
    assert len(results) == 2 and all(result.is_valid for result in results)
    # Neither its correct nor its incorrect answers are compared with computations of other tasks.
    assert not any(found.check == "float64" for result in results for found in result.findings)
    assert memory_findings(Path("c"))["fresh"][0][1].startswith("verdict: ")
    load_prompt_set.cache_clear()


def test_implausible_usage_is_a_warning(run: Path) -> None:
    info = msgspec.structs.replace(read_info(run), model="some-model")
    usage = Usage(visible=5000, reasoning=1, generated=10, source="reported")
    rewrite(run, lambda responses: [msgspec.structs.replace(one, usage=usage) for one in responses])
    (run / "run.json").write_bytes(msgspec.json.encode(info))
    warnings = " ".join(findings(run, "warning"))
    assert "more visible tokens than their text has bytes" in warnings
    assert "fewer generated tokens" in warnings


def test_the_command_reports_places_and_exit_codes(run: Path, tmp_path: Path, call: Call) -> None:
    valid = call("verify", "copy/run")
    assert (valid.code, valid.out.splitlines()[0]) == (0, "copy/run: valid")
    shutil.copytree(run, run.parent / "other")
    path = run / "responses.jsonl"
    path.write_bytes(path.read_bytes().replace(b"{", b"[", 1))
    damaged = call("verify", "copy/run")
    assert damaged.code == 1
    assert "responses.jsonl, line 1" in damaged.out and "NOT VALID" in damaged.out
    both = call("verify", "copy/run", "copy/other")
    assert "1 of 2 runs is not valid" in both.err
    assert call("verify", "nothing").code == 2
    with pytest.raises(BadInput):
        verify([tmp_path / "nothing"])
