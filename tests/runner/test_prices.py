"""Prices: the bundled table, the user's table, and costs computed from them."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec import structs
from rich.console import Console

import numbench as nb
from numbench.errors import BadInput
from numbench.models.catalogue import bundled_models
from numbench.models.prices import Price, cost, find_price, load_model_map, with_cost
from numbench.records import Completion, Usage
from numbench.runner.active_run import CostLimitReached
from numbench.runner.estimates import highest_costs
from numbench.runner.plan_table import plan_table
from numbench.runner.planning import plan
from numbench.runner.prepare import describe, resolve
from numbench.runner.spec import RunSpec
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.clock import set_date
from tests.support.runs import run_with, set_prices, small_dataset

PRICE = Price(route="openai/some", input=2.0, output=8.0, date="2025")
USAGE = Usage(input=100, generated=50)


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NUMBENCH_CATALOGUE", raising=False)


@pytest.mark.parametrize(
    ("completion", "price", "expected", "source"),
    [
        (Completion(usage=USAGE, cost=0.25), PRICE, 0.25, "provider"),
        (Completion(usage=USAGE), PRICE, (100 * 2 + 50 * 8) / 1e6, "price table (2025)"),
        (Completion(usage=USAGE), None, None, None),
        (Completion(usage=Usage()), PRICE, None, None),
        (Completion(usage=Usage(input=1)), PRICE, None, None),
        (Completion(usage=Usage(generated=1, visible=1)), PRICE, None, None),
        (Completion(usage=USAGE), structs.replace(PRICE, varies=True), None, None),
    ],
)
def test_a_cost_is_the_providers_or_tokens_times_price_or_unknown(
    completion: Completion, price: Price | None, expected: float | None, source: str | None
) -> None:
    priced = with_cost(completion, price)
    assert priced.cost == (None if expected is None else pytest.approx(expected))
    assert priced.cost_source == source


def test_unknown_routes_have_no_price_and_every_row_names_its_date_and_source() -> None:
    assert find_price("openrouter/moonshotai/kimi-k2-0905") is None
    price = find_price("openai/gpt-5")
    assert price is not None
    assert (price.input, price.output, price.own) == (1.25, 10.0, False)
    assert price.date == "2025" and "receipts" in price.source
    # OpenRouter reports its costs; the model map has no prices of it.
    unpriced = {model.name for model in bundled_models() if not find_price(model.route)}
    assert unpriced == {"deepseek-v3.1", "kimi-k2-0905"}


@each_row(__file__, "receipts")
def test_prices_are_what_the_receipts_say(
    paper_results: Path, name: str, route: str, varies: bool
) -> None:
    price = find_price(route)
    assert price is not None and price.varies == varies
    of = {"input": ("prompt", "prompt"), "output": ("completion", "completions")}
    for side, (tokens, costs) in of.items():
        counted, dollars, rates = 0.0, 0.0, set()
        for path in paper_results.glob(f"*_shuffle_{name}.csv"):
            with path.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    paid = row.get(f"usage.cost_details.upstream_inference_{costs}_cost")
                    if paid:
                        counted += float(row[f"usage.{tokens}_tokens"])
                        dollars += float(paid)
                        rates.add(
                            round(1e6 * float(paid) / float(row[f"usage.{tokens}_tokens"]), 3)
                        )
        assert getattr(price, side) == pytest.approx(1e6 * dollars / counted, abs=5e-4)
        assert (len(rates) > 1) == varies


ROW = '[[price]]\nroute = "openai/gpt-5"\ninput = 7\noutput = 9.5\ndate = "2030-01-02"\n'


def test_the_users_table_takes_precedence_over_the_bundled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the environment variable before that of the working directory."""
    (tmp_path / "numbench-catalogue.toml").write_text(ROW)
    price = find_price("openai/gpt-5")
    assert price is not None
    assert (price.input, price.output, price.basis) == (7.0, 9.5, "price table (2030-01-02)")
    assert price.own
    assert find_price("gemini/gemini-2.5-pro") is not None
    (tmp_path / "other.toml").write_text(ROW.replace("7", "3"))
    monkeypatch.setenv("NUMBENCH_CATALOGUE", str(tmp_path / "other.toml"))
    price = find_price("openai/gpt-5")
    assert price is not None and price.input == 3.0


def test_the_map_has_prices_for_all_others_and_its_source_is_part_of_the_cost() -> None:
    price = find_price("openai/gpt-6-luna")
    assert price is not None
    assert (price.input, price.output, price.varies) == (0.1, 0.5, False)
    completion = with_cost(Completion(usage=USAGE), price)
    assert completion.cost_source == load_model_map().source
    record = {"input": 0.1, "output": 0.5, "source": load_model_map().source}
    assert price.record == {"route": "openai/gpt-6-luna"} | record
    assert find_price("openai/gpt-6-luna", "http://127.0.0.1/v1") is None


def test_the_price_of_a_vendor_is_an_estimate_for_openrouter() -> None:
    price = find_price("openrouter/openai/gpt-6-luna")
    assert price is not None and price.varies and price.note == "the price of the vendor itself"
    assert with_cost(Completion(usage=USAGE), price).cost is None
    assert find_price("openrouter/openai/gpt-6-luna:free") is None


def test_a_request_beyond_the_first_tier_has_no_known_cost() -> None:
    price = find_price("gemini/gemini-3.1-pro-preview")
    assert price is not None and price.priced_up_to == 200_000
    assert cost(Usage(input=200_000, generated=1), price) == pytest.approx(0.4 + 12e-6)
    assert cost(Usage(input=200_001, generated=1), price) is None


def price_of(model: str, **options: Any) -> Price | None:
    spec = RunSpec(model, **options)
    return resolve(spec, describe(spec)).price


def test_a_batch_without_a_known_price_has_no_price() -> None:
    assert price_of("gpt-6-luna", reasoning="low", batch=True) is not None
    assert price_of("openai/gpt-5-chat-latest") is not None
    assert price_of("openai/gpt-5-chat-latest", batch=True) is None


def test_a_service_tier_has_no_price_but_the_users_own(tmp_path: Path) -> None:
    """A priority tier costs more than the list price, which would exceed a cost limit unseen."""
    flex, standard = {"service_tier": "flex"}, {"service_tier": "default"}
    assert price_of("openai/gpt-5", params=standard) == price_of("openai/gpt-5") is not None
    assert price_of("openai/gpt-5", params=flex) is None
    spec = RunSpec("openai/gpt-5", params=flex, out=tmp_path / "run", limit=1)
    assert (plan(spec).prepared.price, plan(spec).cost) == (None, None)
    assert resolve(spec, describe(spec)).info.price is None
    (tmp_path / "numbench-catalogue.toml").write_text(ROW)
    price = price_of("openai/gpt-5", params=flex)
    assert price is not None and price.own


@each_row(__file__, "fees_of_tools")
def test_tools_have_fees_so_that_no_price_of_tokens_applies(
    tmp_path: Path, params: dict[str, object]
) -> None:
    """Not even the user's own: what a tool costs is not a price of tokens."""
    (tmp_path / "numbench-catalogue.toml").write_text(ROW)
    assert price_of("openai/gpt-5", params=params) is None
    assert price_of("openai/gpt-5", params={"tools": []}) == price_of("openai/gpt-5") is not None
    spec = RunSpec("openai/gpt-5", params=params, out=tmp_path / "run", limit=1)
    assert plan(spec).prepared.price is None
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(plan_table([plan(spec)]))
    assert "may have fees besides those for tokens" in " ".join(console.export_text().split())
    with pytest.raises(BadInput, match=r".*: tools have fees that are not known"):
        plan(replace(spec, max_cost=5.0))
    # OpenRouter reports what it charges.
    assert plan(replace(spec, model="openrouter/openai/gpt-5", max_cost=5.0)).requests > 0


WRITES = structs.replace(PRICE, cache_write=2.5)


@each_row(__file__, "tiers_and_regions")
def test_a_tier_or_region_that_the_answer_names_changes_the_cost_or_makes_it_unknown(
    extra: dict[str, Any], price: int, is_batch: bool, expected: float | None
) -> None:
    full = (100 * 2 + 50 * 8) / 1e6
    answer = Completion(usage=USAGE, extra=extra)
    priced = with_cost(answer, PRICE, 0.5 if is_batch else 0.0, {"us": 1.1})
    assert priced.cost == (None if expected is None else pytest.approx(full * expected))
    own = with_cost(answer, structs.replace(PRICE, own=True))
    assert own.cost == pytest.approx(full)


def test_input_that_is_written_to_a_cache_costs_what_the_table_says() -> None:
    assert cost(USAGE, WRITES, 80) == pytest.approx((20 * 2 + 80 * 2.5 + 50 * 8) / 1e6)
    answer = Completion(usage=USAGE, extra={"cache_write_tokens": 80})
    assert with_cost(answer, WRITES).cost == cost(USAGE, WRITES, 80)
    assert with_cost(answer, PRICE).cost is None
    assert cost(USAGE, structs.replace(PRICE, cache_write=0.0), 80) == pytest.approx(440e-6)
    too_many = Completion(usage=USAGE, extra={"cache_write_tokens": 10**9})
    assert with_cost(too_many, WRITES).cost == cost(USAGE, WRITES, 100)


def test_a_price_ends_on_its_last_day(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for day, dollars in (("2026-12-31", 0.75), ("2027-01-01", 1.5)):
        set_date(monkeypatch, day)
        price = find_price("gemini/gemini-3.8-flash")
        assert price is not None and price.input == dollars
    (tmp_path / "numbench-catalogue.toml").write_text(f'{ROW}until = "2026-12-31"\n')
    price = find_price("openai/gpt-5")
    assert price is not None and price.input == 1.25
    set_date(monkeypatch, "2026-12-31")
    price = find_price("openai/gpt-5")
    assert price is not None and price.input == 7


@pytest.mark.usefixtures("without_figures")
def test_a_price_found_after_the_run_counts_in_reports_and_is_marked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The cost of a failed attempt before an answer is known all the time."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    data, out = small_dataset(tmp_path / "data", 4), tmp_path / "run"

    async def script(received: servers.ReceivedRequest) -> servers.Reply:
        if received.number == 0:
            error = {"message": "overloaded", "code": 503}
            return web.json_response({"error": error, "usage": {"cost": 0.5}})
        return servers.chat(usage={"prompt_tokens": 10, "completion_tokens": 4})

    with servers.serve(script) as server:
        of_run = {"model": "openai/some", "base_url": server.url, "dataset": data, "out": out}
        assert run_with(**of_run, limit=2).cost == 2.0
        assert nb.load_scores([out])["cost"].isna().all()
        stored = (out / "responses.jsonl").read_bytes()
        set_prices(monkeypatch, tmp_path, {"openai/some": (2, 8)})
        with pytest.raises(CostLimitReached, match=r"\$2\.0002 spent, 0 answered now"):
            run_with(**of_run, max_cost=2.2)
    assert nb.load_scores([out])["cost"].dropna().tolist() == [pytest.approx(0.500052)] * 4
    report = nb.report([out], out=tmp_path / "report")
    assert any("costs of 4 answers follow from a price found after" in w for w in report.warnings)
    assert (out / "responses.jsonl").read_bytes() == stored


def test_a_plan_tells_the_most_that_its_requests_can_cost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def longest(received: servers.ReceivedRequest) -> servers.Reply:
        # No tokenizer makes more tokens of a text than it has bytes.
        read = sum(len(message["content"].encode()) for message in received.body["messages"])
        return servers.chat(usage={"prompt_tokens": read, "completion_tokens": 50})

    monkeypatch.setenv("OPENAI_API_KEY", "key")
    set_prices(monkeypatch, tmp_path, {"openai/some": (2, 8)})
    data, out = small_dataset(tmp_path / "data", 4), tmp_path / "run"
    with servers.serve(longest) as server:
        options = {"model": "openai/some", "base_url": server.url, "dataset": data, "out": out}
        highest = plan(RunSpec(**options, max_tokens=50)).highest_cost
        paid = run_with(**options, max_tokens=50).cost
    assert highest is not None and paid is not None
    assert 8 * 50 * 8e-6 < paid <= highest < 3 * paid
    for change in ({}, {"max_tokens": 50, "tools": "calculator"}):
        assert plan(RunSpec(**(options | {"out": tmp_path / "new"} | change))).highest_cost is None


def test_what_the_catalogue_adds_to_requests_counts_as_what_the_user_adds(tmp_path: Path) -> None:
    model = '[[model]]\nname = "mine"\ndisplay = "M"\nroute = "openai/gpt-5"\nlevels = ["low"]\n'
    request = 'request = {service_tier = "priority"}\n'
    for more, is_known in (("", True), (request, False)):
        (tmp_path / "numbench-catalogue.toml").write_text(model + more)
        assert (plan(RunSpec("mine")).prepared.price is not None) == is_known


def test_the_highest_cost_allows_for_surcharges() -> None:
    run = plan(RunSpec("anthropic/claude-opus-5-5", reasoning="low", max_tokens=10**5)).prepared
    assert run.description.known.surcharges == {"us": 1.1} and run.price is not None
    assert highest_costs(run)["addition"] > 1.1 * 1e5 * run.price.output / 1e6
