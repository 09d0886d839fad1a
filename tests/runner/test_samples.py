"""Runs with several samples per item: what is sent, stored, resumed and measured."""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import numbench as nb
from numbench.errors import BadInput
from numbench.journal import iter_responses, read_run
from numbench.reporting.data import ReportData
from numbench.reporting.samples import run_variance
from numbench.runner import CostLimitReached
from numbench.runner.planning import plan
from numbench.runner.run_context import RetryPolicy
from numbench.runner.spec import RunSpec
from numbench.scoring import score_run
from tests import servers
from tests.runner.batch_provider import Provider
from tests.runner.test_run import (
    KEY,
    MODEL,
    QUICK,
    ROOT,
    RUN_MODULE,
    dataset,
    go,
    good,
    questions,
    run_with,
    small_dataset,
)
from tests.servers import ReceivedRequest, Reply, serve
from tests.stats.test_samples import vote_of
from tests.test_cli import numbench

__all__ = ["dataset"]

SEED = 7
SAMPLED: dict[str, Any] = {"samples": 3, "temperature": 0.7, "seed": SEED}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    quick = QUICK | {"poll_interval": 0.01, "max_poll_interval": 0.02}
    monkeypatch.setattr(
        RUN_MODULE, "RetryPolicy", lambda **changes: RetryPolicy(**(quick | changes))
    )
    yield


def requested(server: servers.Server) -> Counter[tuple[str, int]]:
    """Requests per prompt and sample; the seed tells the sample."""
    return Counter((received.prompt, received.body["seed"] - SEED) for received in server.received)


def test_more_samples_than_can_be_counted_are_refused() -> None:
    with pytest.raises(BadInput, match="--samples 1001: give at most 1,000"):
        nb.plan("openai/x", samples=1001, temperature=1.0)


def test_every_item_is_requested_once_per_sample(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        report = go(server, dataset, out, **SAMPLED)
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


def test_the_first_sample_of_every_item_is_sent_before_any_second(
    dataset: Path, tmp_path: Path
) -> None:
    with serve(good) as server:
        go(server, dataset, tmp_path / "run", concurrency=1, **SAMPLED)
        samples = [received.body["seed"] - SEED for received in server.received]
    assert samples == [0] * 10 + [1] * 10 + [2] * 10


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
        with pytest.raises(BadInput, match=r"settings.temperature 0.7, this one has 0.2"):
            go(server, dataset, out, **(SAMPLED | {"temperature": 0.2}))


def test_a_failed_sample_is_retried_alone(dataset: Path, tmp_path: Path) -> None:
    failing = True

    async def script(received: ReceivedRequest) -> Reply:
        is_last = received.body["seed"] == SEED + 2 and received.prompt == "What is 3 + 1?"
        if failing and is_last:
            return servers.error(400, "content_filter")
        return await good(received)

    out = tmp_path / "run"
    with serve(script) as server:
        assert go(server, dataset, out, **SAMPLED).permanent_errors == 1
        failing = False
        assert go(server, dataset, out, **SAMPLED).completed == 0
        assert go(server, dataset, out, retry=("error",), **SAMPLED).answered == 1
        counts = requested(server)
    assert counts.pop(("What is 3 + 1?", 2)) == 2
    assert set(counts.values()) == {1}


CALL = (
    "import sys; from pathlib import Path; from numbench.runner import *\n"
    "url, data, out = sys.argv[1:]\n"
    "run(RunSpec('openai/some', dataset=data, out=Path(out), base_url=url, samples=5, seed=7,\n"
    "            temperature=1.0, concurrency=4))\n"
)


def test_after_kill_9_a_resumed_run_repeats_no_answered_sample(tmp_path: Path) -> None:
    data, out = small_dataset(tmp_path / "data", 20), tmp_path / "run"
    prompts = {item.id: item.prompt for items in questions(20).values() for item in items}
    enough = threading.Event()
    served = 0

    async def script(received: ReceivedRequest) -> Reply:
        nonlocal served
        await asyncio.sleep(0.01)
        served += 1
        if served % 60 == 0:
            enough.set()
        return servers.chat()

    with serve(script) as server:
        command = [sys.executable, "-c", CALL, server.url, str(data), str(out)]
        environment = os.environ | {"OPENAI_API_KEY": KEY}

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)

        answered: Counter[tuple[str, int]] = Counter()
        for _ in range(2):
            process = start()
            assert enough.wait(100)
            process.kill()
            process.wait()
            enough.clear()
            responses = read_run(out).responses.values()
            stored = [(prompts[r.item_id], r.sample) for r in responses if r.error is None]
            counts = requested(server)
            answered |= Counter({key: counts[key] for key in stored})
        assert 50 < len(answered) < 200
        assert start().wait(100) == 0
        counts = requested(server)
        assert {key: counts[key] for key in answered} == dict(answered)
        # Each kill wastes at most the four requests in flight.
        assert len(counts) == 200 and counts.total() <= 200 + 2 * 4
    lines = [response for response in iter_responses(out) if response.error is None]
    assert len({(line.item_id, line.sample) for line in lines}) == len(lines) == 200


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
        assert getattr(planned.totals[0], name) == pytest.approx(5 * getattr(once.totals[0], name))
    with serve(good) as server:
        spec = {"base_url": server.url, "dataset": dataset, "out": out}
        run_with(model=MODEL, limit=2, **spec, **SAMPLED)
        rest = plan(RunSpec(MODEL, **spec, **SAMPLED))
    assert rest.requests == 30 - 12
    shown = numbench(
        "run", "--model", "gpt-5", "--reasoning", "minimal", "--dataset", str(dataset),
        "--samples", "5", "--dry-run",
    )  # fmt: skip
    assert "Samples per question: 5." in shown.stdout
    (total,) = (line for line in shown.stdout.splitlines() if line.startswith("All"))
    assert total.split()[1] == "50"


def test_a_cost_limit_counts_each_sample(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    routed = SAMPLED | {"model": "openrouter/some"}
    with serve(good) as server:
        with pytest.raises(CostLimitReached, match=r"18 answered now, 12 still open"):
            go(server, dataset, tmp_path / "run", max_cost=9.0, **routed)
        assert len(server.received) == 18
        with pytest.raises(CostLimitReached, match=r"\$10.0000 spent, 2 answered now, 10 still"):
            go(server, dataset, tmp_path / "run", max_cost=10.0, **routed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"samples": 0}, "--samples 0: give 1 or more"),
        ({"samples": 2}, r"temperature 0 the answers hardly differ; add --temperature T"),
        ({"temperature": -1.0}, "--temperature -1: give 0 or more"),
        ({"temperature": math.nan}, "--temperature nan: give 0 or more"),
        (
            {"model": "baseline/float64", "samples": 2, "temperature": 1.0},
            "gives the same answer every time: omit --samples and --temperature",
        ),
        (
            {"model": "baseline/float64", "samples": 2},
            "gives the same answer every time: omit --samples$",
        ),
        (
            {"model": "gpt-5", "reasoning": "minimal", "temperature": 1.0},
            "gpt-5 accepts no temperature: omit --temperature",
        ),
    ],
)
def test_samples_that_make_no_sense_are_refused(
    dataset: Path, tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        run_with(**({"model": MODEL, "dataset": dataset, "out": tmp_path / "run"} | arguments))
    assert not (tmp_path / "run").exists()


def test_temperature_0_is_possible_if_it_is_given(dataset: Path, tmp_path: Path) -> None:
    with serve(good) as server:
        assert go(server, dataset, tmp_path / "run", samples=2, temperature=0.0).answered == 20


def test_the_command_and_the_api_take_samples_and_a_temperature(
    dataset: Path, tmp_path: Path
) -> None:
    model = ("--model", "gpt-5", "--reasoning", "minimal", "--dataset", str(dataset))
    refused = numbench("run", *model, "--temperature", "1", "--dry-run")
    assert (refused.returncode, "accepts no temperature" in refused.stderr) == (2, True)
    with serve(good) as server:
        arguments = {"dataset": dataset, "base_url": server.url, "samples": 2, "temperature": 0.5}
        assert nb.plan(MODEL, out=tmp_path / "run", **arguments).requests == 20
        report = nb.run(MODEL, out=tmp_path / "run", on_progress=lambda now: None, **arguments)
        assert report.answered == 20
        assert {received.body["temperature"] for received in server.received} == {0.5}
    assert len(nb.score(report.path).rows["addition"]) == 10


PROBABILITIES = (0.0, 0.2, 0.5, 0.8, 1.0)
ITEMS = 100


async def by_chance(received: ReceivedRequest) -> Reply:
    """Answer 'What is n + 1?' correctly with probability PROBABILITIES[n % 5]."""
    number = int(received.prompt.split()[2])
    draw = random.Random(f"{number} {received.body['seed']}")
    error = 0
    if draw.random() >= PROBABILITIES[number % 5]:
        error = draw.choice((1, 2))
    return servers.chat(json.dumps({"answer": number + 1 + error}))


def expected_vote(probability: float, k: int) -> float:
    """Return the expected accuracy of a vote, by all sequences of k answers."""
    chances = {"c": probability, "a": (1 - probability) / 2, "b": (1 - probability) / 2}
    return sum(
        math.prod(chances[answer] for answer in sequence) * vote_of(sequence)
        for sequence in product("abc", repeat=k)
    )


def test_known_probabilities_are_recovered(tmp_path: Path) -> None:
    data = small_dataset(tmp_path / "data", ITEMS)
    with serve(by_chance) as server:
        settings = SAMPLED | {"samples": 5, "tasks": ["addition"]}
        go(server, data, tmp_path / "run", **settings)
    data = ReportData([score_run(tmp_path / "run")])
    (run,), (result,) = data.runs, data.repeated_samples
    assert run.scored
    variance = run_variance(run.scored, "addition")
    assert (result.questions, result.samples) == (ITEMS, 5)
    p = PROBABILITIES
    for k in range(1, 6):
        known = sum(1 - (1 - q) ** k for q in p) / 5
        assert result.pass_at_k[k - 1] == pytest.approx(100 * known, abs=4)
        vote = sum(expected_vote(q, k) for q in p) / 5
        assert result.majority[k - 1] == pytest.approx(100 * vote, abs=4)
    matches = data.exact_match(run, "addition")
    assert matches
    assert matches.value == pytest.approx(result.pass_at_k[0])
    sometimes = sum(1 - q**5 - (1 - q) ** 5 for q in p) / 5
    assert result.sometimes_correct == pytest.approx(100 * sometimes, abs=6)
    # Scores are log-sMAPE, in which a wrong answer is not 0.
    scored = [row.score for row in run.scored.rows["addition"]]
    wrong = [100 * (score.log_smape or 0.0) for score in scored if not score.exact_match]
    gap = 100 - sum(wrong) / len(wrong)
    assert result.standard_error is not None
    within = sum(q * (1 - q) for q in p) / 5 * gap**2
    between = sum((q - 0.5) ** 2 for q in p) / 5 * gap**2
    assert variance.within == pytest.approx(within, rel=0.1)
    assert variance.between == pytest.approx(between, rel=0.1)
    error = math.sqrt((between + within / 5) / ITEMS)
    assert result.standard_error == pytest.approx(error, rel=0.05)
