"""Warnings about another model than the one asked, about changes within a run, and no effects."""

import asyncio
import io
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console
from typer.testing import CliRunner

from numbench.cli import app
from numbench.core.csv_files import read_csv
from numbench.journal.run_folder import read_run
from numbench.journal.served_models import Effects, ServedModels, is_same_model
from numbench.records import Completion, Failure, Response
from numbench.runner import workers
from numbench.runner.plan_table import plan_table
from numbench.runner.planning import plan
from numbench.runner.progress import RunProgress
from numbench.runner.spec import RunSpec
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.command_line import Call
from tests.support.run_fixtures import dataset, keys
from tests.support.runs import INFO, MODEL, go
from tests.support.servers import ReceivedRequest, Reply, serve
from tests.support.tools import turn_of

pytestmark = pytest.mark.slow

__all__ = ["dataset", "keys"]


def warnings_of(responses: list[Completion], asked: str | None = None) -> list[str]:
    served = ServedModels(replace(INFO, settings={"route": asked}))
    for response in responses:
        served.count(response)
    return served.warnings


def test_names_of_one_model_and_of_different_ones() -> None:
    for _, row in read_csv(Path(__file__).with_name("served_names.csv")):
        asked, served, is_same = row["asked"], row["served"], row["same"] == "yes"
        assert is_same_model(asked, served) is is_same, row
        answers = [Completion(served_model=served), Completion(served_model=asked), Completion()]
        warning = f"asked for {asked}, but 1 of 2 answers name another model: {served} (1)"
        assert (warning in warnings_of(answers, asked)) is not is_same
        assert is_same <= (warnings_of(answers[:1], asked) == [])


def test_each_of_model_provider_and_fingerprint_is_compared() -> None:
    same = Completion(served_model="a", provider="p", extra={"system_fingerprint": "f"})
    assert warnings_of([same, same, Completion(), Completion(served_model="a")]) == []
    other = Completion(served_model="b", provider="q", extra={"system_fingerprint": "g"})
    assert warnings_of([same, same, other]) == [
        "the answers come from 2 models: a (2), b (1)",
        "the answers come from 2 providers: p (2), q (1)",
        "the answers come from 2 system fingerprints: f (2), g (1)",
    ]
    first = Response(item_id="x", served_model="b")
    conversation = Response(item_id="x", served_model="a", turns=(first, first))
    assert warnings_of(2 * [conversation], "a") == [
        "asked for a, but 2 of 2 answers name another model: b (2)",
        "the answers come from 2 models: a (2), b (2)",
    ]
    failure = Failure(kind="item", message="x")
    assert warnings_of([Completion(served_model="a", error=failure), Completion()]) == []
    many = [Completion(served_model=str(n)) for n in range(9)]
    assert warnings_of(many)[0].endswith("4 (1), and 4 more")


@pytest.mark.usefixtures("without_figures")
def test_a_model_that_changes_between_calls_is_a_warning_of_run_and_report(
    dataset: Path, tmp_path: Path, call: Call
) -> None:
    model = "gpt-x-1"
    warning = "the answers come from 2 models: gpt-x-1 (5), gpt-x-2 (5)"
    with serve(lambda _: servers.chat(model=model)) as server:
        report = go(server, dataset, tmp_path / "run", tasks=["addition"])
        asked = "asked for openai/some, but 5 of 5 answers name another model: gpt-x-1 (5)"
        assert report.warnings == (asked,)
        model = "gpt-x-2"
        command = ("run", "--model", MODEL, "--base-url", server.url)
        done = call(*command, "--dataset", "data", "--out", "run", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert f"warning: run: {warning}" in done.out
    shown = call("report", "run", "--out", "page")
    assert warning in " ".join(shown.out.split())
    assert warning in (tmp_path / "page" / "report.json").read_text()


# What a server ignores: options of the run, text and fields of each answer, and the warning.
# Texts and models of the turns of a conversation are divided by bars.
@each_row(__file__, "settings_without_effect")
def test_a_setting_without_effect_is_a_warning_of_run_and_report(
    dataset: Path,
    tmp_path: Path,
    options: dict[str, Any],
    text: str,
    fields: dict[str, Any],
    warning: str,
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        usage = {"prompt_tokens": 5, "completion_tokens": 7}
        parts = text.replace("{number}", str(received.number)), fields.get("model", "some")
        turns = (each.split("|") for each in parts)
        answer, model = (each[turn_of(received) % len(each)] for each in turns)
        return servers.chat(answer, usage=usage, **(fields | {"model": model}))

    with serve(script) as server:
        report = go(server, dataset, tmp_path / "run", tasks=["addition"], **options)
    assert [each[: len(warning)] for each in report.warnings] == [warning] * bool(warning)
    # The journal has the same answers.
    assert tuple(read_run(tmp_path / "run").served.warnings) == report.warnings


def test_a_sample_that_is_asked_again_is_no_second_one() -> None:
    effects = Effects("default", {"base_url": "http://127.0.0.1", "temperature": 0.7})
    for sample, count in ((0, 0), (0, 0), (1, 1)):
        effects.count(Response(item_id="x", sample=sample))
        assert len(effects.warnings) == count


def test_a_plan_says_what_limits_an_answer_of_a_server(dataset: Path, tmp_path: Path) -> None:
    def notes(**options: Any) -> str:
        spec = RunSpec(model=MODEL, dataset=str(dataset), out=tmp_path / "run", **options)
        file = io.StringIO()
        Console(file=file, width=80).print(plan_table([plan(spec)]))
        return file.getvalue()

    server = "http://127.0.0.1:9/v1"
    assert "server's context" in notes(base_url=server)
    assert "server's context" not in notes(base_url=server, max_tokens=9)
    assert "server's context" not in notes()


def test_progress_counts_long_answers_that_only_the_context_ends(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_now", lambda: asyncio.get_running_loop().time() + 7200)
    monkeypatch.setattr(workers, "PROGRESS_INTERVAL_SECONDS", 0.01)
    notes, is_noted = list[str](), threading.Event()

    async def script(received: ReceivedRequest) -> Reply:
        await asyncio.to_thread(is_noted.wait)
        return servers.chat(model="some")

    def watch(progress: RunProgress) -> None:
        if progress.in_flight == 5:
            notes.append(progress.note)
            is_noted.set()

    with serve(script) as server:
        arguments = {"tasks": ["addition"], "concurrency": 5, "on_progress": watch}
        go(server, dataset, tmp_path / "free", **arguments)
        assert notes[0] == "5 answers pending for up to 120 min; see --max-tokens"
        notes.clear()
        is_noted.clear()
        go(server, dataset, tmp_path / "limited", max_tokens=9, **arguments)
        assert notes[0] == ""


def test_no_command_prints_the_escape_codes_of_a_run_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another person's run, or the server of one's own, may contain any text."""
    monkeypatch.chdir(tmp_path)
    runner, hostile = CliRunner(), "a\x1b[31mX\x1b]0;t\x07\x1b]8;;http://e\x07\x9b31m[/red]"
    for name in ("old", "new"):
        run = ["run", "--model", "baseline/float64", "--tasks", "addition", "--limit", "5"]
        assert runner.invoke(app, [*run, "--out", name]).exit_code == 0
        responses = Path(name, "responses.jsonl")
        lines = [json.loads(line) for line in responses.read_text().splitlines()]
        fields = {"text": hostile, "served_model": hostile, "provider": hostile}
        lines[0] |= fields | {"extra": {"system_fingerprint": hostile}}
        lines[1] |= {"served_model": "other", "provider": "other"}
        lines[2] |= {"text": "", "error": {"kind": "item", "message": hostile}}
        responses.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        settings = json.loads(Path(name, "run.json").read_text())
        settings |= {"display": hostile, "reasoning": hostile}
        Path(name, "run.json").write_text(json.dumps(settings))
    shown, failing = "", ("compare old new --partial", "verify old")
    for command in (
        "report old new --out report",
        "compare old new --partial",
        "show old",
        "verify old",
        "leaderboard old --out site",
        "export old --to inspect --out logs",
        "import logs --out imported",
        "merge old --out merged",
    ):
        result = runner.invoke(app, command.split())
        assert result.exit_code == (command in failing), (command, result.exception)
        shown += result.output
    assert [each for each in sorted(set(shown)) if not each.isprintable()] == ["\n"]
    # In the warning of a report, all of the name.
    assert r"\x1b]8;;http://e\x07" in "".join(shown.split())
