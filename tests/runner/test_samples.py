"""Runs with several samples per item: what is sent, stored, resumed and measured."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from numbench.errors import BadInput
from numbench.journal import read_run
from numbench.runner import CostLimitReached
from numbench.runner.planning import plan
from numbench.runner.spec import RunSpec
from tests import servers
from tests.runner.batch_provider import Provider
from tests.runner.test_run import (
    MODEL,
    _quick,
    dataset,
    go,
    good,
    questions,
    run_with,
)
from tests.servers import serve
from tests.test_cli import numbench

__all__ = ["_quick", "dataset"]

SEED = 7
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
        with pytest.raises(BadInput, match=r"settings.temperature 0.7, this one has 0.2"):
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


def test_a_cost_limit_counts_each_sample(dataset: Path, tmp_path: Path) -> None:
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
        ({"samples": 2}, r"temperature 0 the answers hardly differ; add --temperature T"),
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
