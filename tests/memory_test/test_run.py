"""Certificates against a scripted server: registration, resuming, revealing, and verdicts."""

import csv
import hashlib
import io
import json
import os
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape
from rich.console import Console

from numbench.core import jsonl
from numbench.dataset.store import open_dataset
from numbench.errors import BadInput, NumbenchError
from numbench.memory_test.outcome import read_outcome as outcome
from numbench.memory_test.registration import Registration, read_registration
from numbench.memory_test.runs import plan_memory_test, run_both
from numbench.records import ProtocolName
from numbench.reporting.build import ReportResult, build_tables
from numbench.reporting.data import ReportData
from numbench.reporting.page import render_page
from numbench.reporting.tables import render
from numbench.reporting.tables.memory import memory_sentence
from numbench.reporting.terminal import terminal_report
from numbench.reporting.warnings import AFFECTS_SCORES, report_warnings
from numbench.runner.active_run import CostLimitReached
from numbench.runner.spec import MemoryTestSpec
from numbench.scoring import score_run
from numbench.tasks import TASKS
from numbench.tasks.prompts import load_prompt_set
from tests.support import servers
from tests.support.runs import KEY, QUICK, ROOT
from tests.support.servers import ReceivedRequest, Reply, Server, serve

pytestmark = pytest.mark.slow

LIMIT = 40
TASKS_ASKED = ("addition", "multiplication")


@pytest.fixture(autouse=True, scope="module")
def _key_and_fixed_seed() -> Iterator[None]:
    """With other fresh items, now and then one of these verdicts is another one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            secrets, "token_hex", lambda size: hashlib.sha256(b"0").hexdigest()[: 2 * size]
        )
        patch.setenv("OPENAI_API_KEY", KEY)
        yield


def frozen_prompts(limit: int = LIMIT) -> set[str]:
    v1 = open_dataset("v1")
    return {item.prompt for task in TASKS_ASKED for item in v1.by_task[task][:limit]}


def truth(prompt: str) -> str:
    task, operator, operands = load_prompt_set().parse_question(prompt)
    return f'{{"answer": {TASKS[task].exact_answer(operator, operands)}}}'


def is_able(prompt: str) -> bool:
    """Whether a model that computes is right: on about half of all questions."""
    return hashlib.sha256(prompt.encode()).digest()[0] % 2 == 0


def responder(is_right: Callable[[str], bool]) -> Callable[[ReceivedRequest], Any]:
    async def script(received: ReceivedRequest) -> Reply:
        right = is_right(received.prompt)
        usage = {"prompt_tokens": 10, "completion_tokens": 4, "cost": 0.5}
        return servers.chat(truth(received.prompt) if right else '{"answer": 1}', usage=usage)

    return script


def certify(server: Server, out: Path, **changes: Any) -> Registration:
    given: dict[str, Any] = {"model": "openai/some", "tasks": TASKS_ASKED, "limit": LIMIT}
    given |= {"base_url": server.url, "out": out}
    run_both(plan_memory_test(MemoryTestSpec(**(given | changes))), policy=QUICK)
    registration = read_registration(out)
    assert registration is not None
    return registration


def test_the_rule_and_the_hash_are_on_disk_before_the_first_question(tmp_path: Path) -> None:
    out, seen = tmp_path / "certificate", []

    async def script(received: ReceivedRequest) -> Reply:
        seen.append((out / "certificate.json").read_text())
        return servers.chat()

    with serve(script) as server:
        registration = certify(server, out)
        sent = [json.dumps(each.body) + str(each.headers) for each in server.received]
    assert len(server.received) == 4 * LIMIT and set(server.counts.values()) == {1}
    before = json.loads(seen[0])
    assert seen == [seen[0]] * len(seen)
    assert before["seed"] is None and before["rule"]["margin"] == 3.0
    assert (before["pairs"], before["rule"]["pairs"]) == (LIMIT, LIMIT)
    assert 0.1 < before["rule"]["detectable"] < 0.9
    assert registration.seed is not None and len(registration.seed) == 64
    assert hashlib.sha256(registration.seed.encode()).hexdigest() == before["seed_sha256"]
    assert registration.seed not in seen[0]
    # Neither the seed nor its hash is sent.
    for text in (registration.seed, registration.seed_sha256, registration.fresh_name):
        assert not any(text in body for body in sent)
    assert not (out / "secret-seed").exists()
    assert json.loads((out / "certificate.json").read_text())["seed"] == registration.seed


CALL = (
    "import sys, numbench; url, out = sys.argv[1:]\n"
    "numbench.run_memory_test('openai/some', tasks='addition,multiplication', limit=40,\n"
    "                         base_url=url, out=out, concurrency=2)\n"
)


def test_a_killed_memory_test_resumes_with_the_same_seed(tmp_path: Path) -> None:
    out, enough, slow = tmp_path / "c", threading.Event(), threading.Event()

    async def script(received: ReceivedRequest) -> Reply:
        # Half of the fresh items, after all frozen ones.
        if len(server.received) > 3 * LIMIT:
            enough.set()
            if not slow.is_set():
                await servers.asyncio.sleep(servers.FOR_EVER)
        return servers.chat()

    with serve(script) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", CALL, server.url, str(out)],
            cwd=ROOT,
            env=os.environ | {"OPENAI_API_KEY": KEY},
            stderr=subprocess.PIPE,
        )
        assert enough.wait(200)
        process.kill()
        process.communicate()
        stored = read_registration(out)
        assert stored is not None and stored.seed is None
        secret = out / "secret-seed"
        assert secret.stat().st_mode & 0o777 == 0o600
        seed = secret.read_text()
        assert hashlib.sha256(seed.encode()).hexdigest() == stored.seed_sha256
        assert outcome(out).verdict is None
        assert "not all questions are answered" in outcome(out).reason
        slow.set()
        registration = certify(server, out)
    assert registration.seed == seed
    assert registration.fresh_sha256 == stored.fresh_sha256
    assert registration.created == stored.created
    # Only what was in flight at the kill is asked twice.
    assert sum(server.counts.values()) <= 4 * LIMIT + 2
    assert len(server.counts) == 4 * LIMIT
    assert outcome(out).verdict is not None


def test_a_cost_limit_is_for_both_runs_and_leaves_the_seed_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, model, known = tmp_path / "c", "openrouter/some", frozen_prompts()
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)

    def knows_additions(prompt: str) -> bool:
        """Only these are known; only fresh multiplications are correct, so the mean is equal."""
        return (prompt in known) == (load_prompt_set().parse_question(prompt)[0] == "addition")

    with serve(responder(knows_additions)) as server:
        # Enough for all frozen items and for half of the fresh ones.
        with pytest.raises(CostLimitReached, match="exceeding --max-cost 60"):
            certify(server, out, model=model, max_cost=60.0)
        assert sum(server.counts.values()) == 3 * LIMIT
        stored, seed = read_registration(out), (out / "secret-seed").read_text()
        assert stored is not None and stored.seed is None
        assert outcome(out).verdict is None
        assert certify(server, out, model=model, max_cost=80.0).seed == seed
        assert set(server.counts.values()) == {1} and len(server.counts) == 4 * LIMIT
    # The verdict is also about each task.
    assert (outcome(out).verdict, outcome(out).overall.frozen) == ("memory", 50.0)


def test_nothing_that_is_registered_may_change_and_a_revealed_seed_ends_it(tmp_path: Path) -> None:
    out = tmp_path / "c"
    with serve(lambda _: servers.chat("")) as server:
        certify(server, out)
        asked = len(server.received)
        for changes, field in (
            ({"limit": LIMIT + 1}, "--limit"),
            ({"tasks": ("addition",)}, "--tasks"),
            ({"samples": 2, "temperature": 0.5}, "--samples"),
            ({"margin": 4.0}, "--margin"),
        ):
            with pytest.raises(BadInput, match=f"registered with {field}"):
                certify(server, out, **changes)
        with pytest.raises(BadInput, match="seed of the fresh questions is revealed"):
            certify(server, out, retry=frozenset({"empty"}))
        certify(server, out)
        assert len(server.received) == asked


@pytest.mark.parametrize(
    ("changes", "message"), [({"margin": 0.0}, "--margin 0"), ({"limit": 0}, "--limit 0")]
)
def test_wrong_arguments_write_nothing(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with serve(responder(is_able)) as server, pytest.raises(BadInput, match=message):
        certify(server, tmp_path / "c", **changes)
    assert not server.received and list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out, known = tmp_path_factory.mktemp("done") / "c", frozen_prompts()
    with serve(responder(lambda prompt: prompt in known or is_able(prompt))) as server:
        certify(server, out)
    return out


@pytest.fixture
def done(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "c"))


def change(folder: Path, **fields: object) -> None:
    path = folder / "certificate.json"
    content = json.loads(path.read_text()) | fields
    jsonl.write_json(path, content)


def test_a_seed_that_was_not_registered_gives_no_verdict(done: Path) -> None:
    change(done, seed="0" * 64)
    assert outcome(done)[4:6] == (None, "the revealed seed is not the registered one")
    change(done, seed_sha256=hashlib.sha256(b"0" * 64).hexdigest())
    assert (
        outcome(done).reason == "the revealed seed gives other questions than the registered ones"
    )


def test_runs_that_differ_in_a_setting_give_no_verdict(done: Path) -> None:
    path = done / "fresh" / "run.json"
    info = json.loads(path.read_text())
    info["settings"]["temperature"] = 0.9
    jsonl.write_json(path, info)
    found = outcome(done)
    assert found.verdict is None and "settings.temperature" in found.reason


def test_the_seed_stays_secret_until_all_is_answered(tmp_path: Path) -> None:
    out, broken = tmp_path / "c", frozen_prompts(1)
    secret = out / "secret-seed"
    with serve(
        lambda received: servers.error(503) if received.prompt in broken else servers.chat()
    ) as server:
        first = certify(server, out)
        assert first.seed is None
        broken.clear()
        seed = secret.read_text()
        secret.write_text("ab" * 32)
        with pytest.raises(NumbenchError, match="is missing or not the registered seed"):
            certify(server, out)
        secret.write_text(seed)
        again = certify(server, out)
    assert (again.seed, again.fresh_sha256) == (seed, first.fresh_sha256)
    assert outcome(out).verdict is not None


def report_data(*folders: Path, protocol: ProtocolName = "exact") -> ReportData:
    return ReportData([score_run(folder, protocol) for folder in folders])


def on_screen(data: ReportData, width: int) -> str:
    terminal = Console(width=width, file=io.StringIO(), record=True)
    terminal.print(terminal_report(ReportResult(Path("out"), data, build_tables(data))))
    return terminal.export_text()


def test_the_report_states_difference_and_verdict(done: Path) -> None:
    # The rule is about exact truth, of both runs.
    assert report_data(done / "frozen").memory_tests == ()
    assert report_data(done / "frozen", done / "fresh", protocol="lenient").memory_tests == ()
    data = report_data(done / "fresh", done / "frozen")
    (found,) = data.memory_tests
    *tasks, overall = found.rows
    assert [row.task for row in tasks] == list(TASKS_ASKED)
    assert overall.frozen == 100.0 and overall.fresh is not None and 30 < overall.fresh < 70
    assert overall.result is not None and overall.result.n == 2 * LIMIT
    assert overall.result.difference == pytest.approx(100 - overall.fresh)
    tables = build_tables(data)
    table = tables["memory_tests"]
    rows = list(csv.DictReader(io.StringIO(render.csv(table).decode())))
    assert [row["task"] for row in rows] == ["Add", "Mult", "All"]
    assert [row["verdict"] for row in rows] == ["", "", "memory"]
    assert float(rows[-1]["difference"]) == pytest.approx(overall.result.difference)
    assert float(rows[-1]["difference_low"]) == pytest.approx(overall.result.low)
    sentence = memory_sentence(found)
    assert f"{overall.result.difference:+.1f} points" in sentence and "Verdict: memory" in sentence
    assert sentence in report_warnings(data)[AFFECTS_SCORES]
    assert render.escape_markdown(sentence) in render.markdown(table)
    assert str(escape(sentence)) in render_page(data, tables, [], {})
    lines = on_screen(data, 80).splitlines()
    assert max(map(len, lines)) <= 80
