"""Prices: the bundled table, the user's table, and costs computed from them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from numbench.errors import BadInput
from numbench.models.catalogue import load_catalogue
from numbench.records import Completion, Usage
from numbench.runner.prices import Price, cost, find_price, with_cost

PRICE = Price(route="openai/some", input=2.0, output=8.0, date="2025")
USAGE = Usage(input=100, generated=50)


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NUMBENCH_PRICES", raising=False)


def test_a_cost_is_tokens_times_price_per_million() -> None:
    assert cost(USAGE, PRICE) == pytest.approx((100 * 2 + 50 * 8) / 1e6)


@pytest.mark.parametrize("usage", [Usage(), Usage(input=1), Usage(generated=1, visible=1)])
def test_unknown_usage_has_no_cost(usage: Usage) -> None:
    assert cost(usage, PRICE) is None


def test_a_cost_reported_by_the_provider_is_kept() -> None:
    completion = with_cost(Completion(usage=USAGE, cost=0.25), PRICE)
    assert (completion.cost, completion.extra) == (0.25, {"cost_source": "provider"})


def test_an_unreported_cost_is_computed_from_the_price_table() -> None:
    completion = with_cost(Completion(usage=USAGE, extra={"id": "a"}), PRICE)
    assert completion.cost == pytest.approx(0.0006)
    assert completion.extra == {"id": "a", "cost_source": "price table (2025)"}


@pytest.mark.parametrize(
    ("usage", "price"),
    [
        (USAGE, None),
        (Usage(), PRICE),
        (USAGE, Price(route="openrouter/some", input=2.0, output=8.0, varies=True)),
    ],
)
def test_an_unknown_cost_stays_unknown(usage: Usage, price: Price | None) -> None:
    completion = Completion(usage=usage)
    assert with_cost(completion, price) is completion


def test_unknown_routes_have_no_price_and_every_row_names_its_date_and_source() -> None:
    assert find_price("openrouter/moonshotai/kimi-k2-0905") is None
    price = find_price("openai/gpt-5")
    assert price is not None
    assert (price.input, price.output, price.own) == (1.25, 10.0, False)
    assert price.date == "2025" and "receipts" in price.source


def test_the_routes_of_the_catalogue_that_have_a_price() -> None:
    priced = {model.name for model in load_catalogue().model if find_price(model.route)}
    assert priced == {
        "gpt-5",
        "gemini-2.5-pro",
        "gemini-2.5-flash",
        "gpt-oss-120b",
        "qwen3-235b-2507",
        "llama-4-maverick",
    }


@pytest.mark.parametrize(
    ("name", "route", "varies"),
    [
        ("openai__gpt-5_re_minimal", "openai/gpt-5", False),
        ("google__gemini-2.5-pro_re_minimal", "gemini/gemini-2.5-pro", False),
        ("google__gemini-2.5-flash_re_none", "gemini/gemini-2.5-flash", False),
        ("openai__gpt-oss-120b_re_high", "openrouter/openai/gpt-oss-120b", False),
        ("qwen__qwen3-235b-a22b-2507_re_none", "openrouter/qwen/qwen3-235b-a22b-2507", True),
        ("meta-llama__llama-4-maverick_re_none", "openrouter/meta-llama/llama-4-maverick", True),
    ],
)
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


def test_the_users_table_takes_precedence_over_the_bundled_one(tmp_path: Path) -> None:
    (tmp_path / "numbench-prices.toml").write_text(ROW)
    price = find_price("openai/gpt-5")
    assert price is not None
    assert (price.input, price.output, price.basis) == (7.0, 9.5, "price table (2030-01-02)")
    assert price.own
    assert find_price("gemini/gemini-2.5-pro") is not None


def test_the_environment_variable_takes_precedence_over_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numbench-prices.toml").write_text(ROW)
    (tmp_path / "other.toml").write_text(ROW.replace("7", "3"))
    monkeypatch.setenv("NUMBENCH_PRICES", str(tmp_path / "other.toml"))
    price = find_price("openai/gpt-5")
    assert price is not None and price.input == 3.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("price = 3", "Expected `array`"),
        ("[[price", "numbench-prices.toml"),
        (ROW.replace("7", "-7"), "openai/gpt-5: -7.0 is not a price"),
        (ROW.replace("7", "nan"), "nan is not a price"),
        (ROW.replace("7", '"cheap"'), "price"),
        (ROW.replace("output", "outputs"), "outputs"),
    ],
)
def test_a_malformed_price_table_is_reported(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "numbench-prices.toml").write_text(text)
    with pytest.raises(BadInput, match=message) as caught:
        find_price("openai/gpt-5")
    assert "numbench-prices.toml" in str(caught.value)


def test_a_missing_price_table_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBENCH_PRICES", "gone.toml")
    with pytest.raises(BadInput, match=r"gone\.toml: No such file"):
        find_price("openai/gpt-5")
