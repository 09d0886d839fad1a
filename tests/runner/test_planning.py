"""Plans and suites: requests, tokens and cost before anything is sent."""

import asyncio
import io
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from numbench.errors import BadInput, NumbenchError
from numbench.models.prices import load_model_map
from numbench.runner.estimates import published_tokens
from numbench.runner.execution import run
from numbench.runner.plan_table import plan_table
from numbench.runner.planning import Plan, missing_keys, plan
from numbench.runner.progress import RunReport
from numbench.runner.spec import RunSpec
from numbench.runner.suite import paper_suite, plan_suite, run_suite
from tests.support import servers
from tests.support.command_line import Call
from tests.support.runs import QUICK, good, small_dataset
from tests.support.servers import ReceivedRequest, Reply, serve

pytestmark = pytest.mark.slow

KEYS = ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")


def paper(dataset: Path, count: int = 13, **options: Any) -> tuple[Plan, ...]:
    """Return the first of the paper's runs."""
    return plan_suite(list(paper_suite({}, {"dataset": dataset, **options}))[:count])


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for key in (*KEYS, "NUMBENCH_CATALOGUE"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.chdir(tmp_path)
    return small_dataset(tmp_path / "data", 5)


def test_a_plan_has_requests_tokens_and_cost(dataset: Path, tmp_path: Path) -> None:
    planned = plan(RunSpec("gpt-5", reasoning="minimal", dataset=dataset))
    minmax, addition = planned.tasks
    assert (minmax.task, minmax.requests, minmax.generated_tokens) == ("minmax", 5, 100)
    assert (addition.task, addition.generated_tokens) == ("addition", 105)
    assert planned.requests == 10
    expected = (planned.total.input_tokens * 1.25 + 205 * 10) / 1e6
    assert planned.cost == pytest.approx(expected)
    batch = plan(RunSpec("gpt-5", reasoning="minimal", dataset=dataset, batch=True))
    assert batch.cost == pytest.approx(expected / 2)
    # Input is a third of the characters.
    one = RunSpec("gpt-5", reasoning="minimal", dataset=dataset, tasks=["addition"], limit=1)
    system = Path(__file__).parents[2] / "prompts/paper/system/arithmetic.txt"
    characters = len(system.read_text().rstrip("\n")) + len("What is 1 + 1?")
    assert plan(one).tasks[0].input_tokens == pytest.approx(characters / 3)
    # An unknown average or price makes an unknown cost.
    low = plan(RunSpec("gpt-5", reasoning="low", dataset=dataset))
    assert low.prepared.price is not None
    assert (low.total.generated_tokens, low.cost) == (None, None)
    kimi = plan(RunSpec("kimi-k2-0905", dataset=dataset))
    assert (kimi.total.generated_tokens, kimi.cost) == (5 * 12 + 5 * 13, None)
    # The bundled price is the provider's, not that of another server with its API.
    url = "http://127.0.0.1:1/v1"
    elsewhere = plan(RunSpec("gpt-5", reasoning="minimal", dataset=dataset, base_url=url))
    assert elsewhere.cost is None
    # Only open questions are planned.
    run(RunSpec("baseline/float64", dataset=dataset, limit=3, out=tmp_path / "run"))
    planned = plan(RunSpec("baseline/float64", dataset=dataset, out=tmp_path / "run"))
    assert [task.requests for task in planned.tasks] == [2, 2]
    other = RunSpec("gpt-5", reasoning="minimal", dataset=dataset, out=tmp_path / "run")
    with pytest.raises(BadInput, match="holds a run with model 'baseline/float64'"):
        plan(other)
    noted = plan(other, is_dry=True)
    assert noted.requests == 10 and "holds a run with model" in noted.notes[0]


def test_levels_with_the_same_request_share_their_averages() -> None:
    assert published_tokens("gpt-5", "high") == published_tokens("gpt-5", "maximal")
    assert published_tokens("gpt-5", "maximal")["exponentiation"] == 28086
    assert published_tokens("qwen3-235b-2507", "none")["std"] == 23
    for model, level in (("gpt-5", "low"), ("openai/gpt-5", "default"), ("gpt-5", "none")):
        assert published_tokens(model, level) == {}


def test_a_dry_run_needs_no_key_and_writes_nothing(
    dataset: Path, tmp_path: Path, call: Call
) -> None:
    before = sorted(tmp_path.rglob("*"))
    model = ("--model", "gemini-2.5-flash", "--reasoning", "maximal")
    done = call("run", *model, "--dataset", "data", "--dry-run")
    assert done.code == 0, done.err
    assert sorted(tmp_path.rglob("*")) == before
    lines = [line.split() for line in done.out.splitlines()]
    assert all(len(line) <= 80 for line in done.out.splitlines())
    (add,) = [words for words in lines if words[:1] == ["Add"]]
    assert (add[1], add[3]) == ("5", "15,420")
    (total,) = [words for words in lines if words[:1] == ["All"]]
    assert total[1] == "10"
    assert "published means" in done.out and "estimated" in done.out
    assert "price table (2025)" in done.out
    source = f"1,048,576 tokens in, 65,536 out;\n{load_model_map().source}."
    assert f"Limits: {source}" in done.out
    unpriced = call("run", "--model", "kimi-k2-0905", "--dataset", "data", "--dry-run").out
    note = "Cost: unknown; add the price to numbench-catalogue.toml to get an estimate. Server: "
    assert note in " ".join(unpriced.split())


def test_a_reached_cost_limit_is_one_line_and_exit_code_3(
    dataset: Path, tmp_path: Path, call: Call
) -> None:
    with serve(good) as server:
        model = ("--model", "openrouter/some", "--base-url", server.url)
        done = call("run", *model, "--dataset", "data", "--max-cost", "1")
    assert done.code == 3
    (line,) = [message for message in done.err.splitlines() if message.startswith("numbench: ")]
    assert "stopped before exceeding --max-cost 1: " in line and "--max-cost continues" in line


def test_the_suite_has_the_papers_configurations(dataset: Path, tmp_path: Path) -> None:
    members = paper(dataset)
    named = [(member.spec.model, member.prepared.description.level) for member in members]
    assert len(set(named)) == 13
    assert named[0] == ("gpt-oss-120b", "maximal") and named[-1] == ("gemini-2.5-flash", "none")
    unknown = [member.spec.model for member in members if member.cost is None]
    assert set(unknown) == {"qwen3-235b-2507", "deepseek-v3.1", "kimi-k2-0905"}
    assert len(missing_keys(members)) == 3
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(plan_table(members))
    shown = console.export_text()
    assert all(len(line.split()) == 6 for line in shown.splitlines()[1:14])
    notes = ("Total: 130 requests", "4 runs of unknown cost", "Prices: price table (")
    for note in (*notes, "API keys not set: GEMINI_API_KEY or"):
        assert note in shown
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BadInput, match="set OPENROUTER_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or"):
        run_suite(members, policy=QUICK)
    assert sorted(tmp_path.rglob("*")) == before


async def _either(received: ReceivedRequest) -> Reply:
    return servers.gemini() if "contents" in received.body else await good(received)


def test_a_plan_shows_whether_a_cost_limit_suffices(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def note_for(limit: float, spent: float = 0.0, max_tokens: int | None = None) -> str:
        options: dict[str, Any] = {"max_tokens": max_tokens, "max_cost": limit}
        spec = RunSpec("gpt-5", reasoning="minimal", dataset=dataset, **options)
        planned = plan(spec)
        planned.costs.spent = spent
        console = Console(width=80, record=True, file=io.StringIO())
        console.print(plan_table([planned]))
        return " ".join(console.export_text().split())

    assert "--max-cost 5 is enough if the estimate is right." in note_for(5)
    assert (
        "--max-cost 1e-05 is not enough if the estimate is right; the run will stop early."
        in note_for(1e-5)
    )
    assert "--max-cost 5 is not enough after the $5.00 already spent" in note_for(5, 5.0)
    assert "--max-cost 5 is best effort: the most that one answer can cost is" in note_for(5)
    assert "best effort" not in note_for(5, max_tokens=100)


def test_the_cost_limit_of_a_suite_is_for_all_runs(dataset: Path, tmp_path: Path) -> None:
    with serve(_either) as server:

        def router(limit: float) -> tuple[Plan, ...]:
            url, out = server.url, tmp_path / "runs"
            return paper(dataset, limit=1, out=out, base_url=url, max_cost=limit, count=3)

        with pytest.raises(NumbenchError, match=r"^qwen3-235b-2507 none: stopped"):
            run_suite(router(2.5), policy=QUICK)
        assert len(server.received) == 5
        with pytest.raises(NumbenchError, match=r"before exceeding --max-cost 2\.5"):
            run_suite(router(2.5), policy=QUICK)
        assert len(server.received) == 5
        run_suite(router(3), policy=QUICK)
        assert len(server.received) == 6


def test_lost_answers_of_a_later_run_count_against_the_limit_of_a_suite(
    dataset: Path, tmp_path: Path
) -> None:
    is_losing = True

    async def script(received: ReceivedRequest) -> Reply:
        if is_losing and "minimum" not in received.prompt:
            return await servers.torn(received)
        return await _either(received)

    with serve(script) as server:
        common: dict[str, Any] = {"limit": 1, "out": tmp_path, "base_url": server.url, "count": 3}
        run_suite(paper(dataset, **common)[:1], policy=QUICK)
        assert len(server.received) == 4
        is_losing = False
        with pytest.raises(NumbenchError, match=r"before exceeding --max-cost 2\.5"):
            first, *others = paper(dataset, **common, max_cost=2.5)
            run_suite([*others, first], policy=QUICK)
        assert len(server.received) == 5


def test_a_provider_that_fails_ends_no_run_of_another(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenRouter's account is empty; its first refusal comes before any other answer."""
    refused = threading.Event()

    async def script(received: ReceivedRequest) -> Reply:
        if "/" in received.body.get("model", ""):
            refused.set()
            return servers.error(402, "no credits")
        while not refused.is_set():
            await asyncio.sleep(0.01)
        return await _either(received)

    failures: list[str] = []
    done: list[RunReport] = []
    with serve(script) as server:
        members = paper(dataset, limit=1, out=tmp_path / "runs", base_url=server.url)
        with pytest.raises(NumbenchError, match=r"^7 of 13 runs failed \(gpt-oss") as caught:
            run_suite(members, on_done=done.append, on_failed=failures.append, policy=QUICK)
    assert caught.value.exit_code == 1
    assert [report.answered for report in done] == [2] * 6
    assert len(failures) == 7 and all("HTTP 402: no credits" in failure for failure in failures)


def test_a_suite_asks_its_providers_at_the_same_time_and_resumes(
    dataset: Path, tmp_path: Path
) -> None:
    out, providers = tmp_path / "runs", set[str]()

    async def script(received: ReceivedRequest) -> Reply:
        providers.add(received.path.partition(":")[2] or received.body["model"].partition("/")[0])
        while len(providers) < 3:
            await asyncio.sleep(0.01)
        return await _either(received)

    with serve(script) as server:
        members = paper(dataset, limit=1, out=out, base_url=server.url)
        reports = run_suite(members, policy=QUICK)
        assert [report.answered for report in reports] == [2] * 13
        assert [report.path for report in reports] == [member.path for member in members]
        assert len(server.received) == 26
        members = paper(dataset, limit=1, out=out, base_url=server.url)
        assert run_suite(members, policy=QUICK) == ()
    assert (out / "gemini-2.5-flash_none_small/run.json").is_file()
