"""The rows of the bundled files: when and where they were checked, and what they leave open."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from numbench.errors import BadInput
from numbench.models.catalogue import (
    describe_hosted,
    levels_of_model,
    named_models,
    unconfirmed_levels,
)
from numbench.models.facts import bundled_tables
from numbench.models.prices import cost, find_price
from numbench.models.providers import find_provider
from numbench.records import Usage
from numbench.runner.estimates import cost_limit_note, highest_costs
from numbench.runner.prepare import describe, resolve
from numbench.runner.spec import RunSpec
from tests.support.case_tables import each_case, each_row
from tests.support.clock import set_date

TABLES = bundled_tables()


@pytest.mark.parametrize(
    "row",
    [*TABLES.provider, *TABLES.rule, *TABLES.model, *TABLES.price],
    ids=lambda row: str(getattr(row, "name", None) or getattr(row, "route", None) or row.match),
)
def test_every_row_names_when_and_where_it_was_checked(row: object) -> None:
    assert getattr(row, "source", "")
    checked = str(getattr(row, "date", ""))
    # The receipts of the paper name a year.
    assert checked == "2025" or date.fromisoformat(checked) <= date(2026, 12, 31)


def test_the_successor_of_a_model_is_one_that_is_known() -> None:
    for rule in TABLES.rule:
        if rule.retires:
            pattern = rule.match if isinstance(rule.match, str) else rule.match[0]
            route = f"{pattern.partition('/')[0]}/{rule.successor}"
            assert rule.successor and find_price(route) and not describe_hosted(route).known.retires


@each_case(__file__, "levels")
def test_levels_of_a_model_are_known_or_marked_as_unknown(case: Any) -> None:
    name = case["model"]
    known = describe_hosted(name).known
    unconfirmed = unconfirmed_levels(name, known)
    shown = [f"{level}?" if level in unconfirmed else level for level in levels_of_model(name)]
    assert " ".join(shown) == case["levels"]


def test_a_level_that_is_not_known_is_a_warning() -> None:
    assert describe_hosted("openai/gpt-7", "low").notices == [
        "it is not known whether gpt-7 has the level low; the provider may refuse it"
    ]
    assert describe_hosted("openai/gpt-7").notices == []
    elsewhere = describe_hosted("openai/gpt-7", "low", "http://127.0.0.1:8000/v1")
    assert elsewhere.notices == []


@pytest.mark.parametrize("name", ["gpt-5", "gemini-2.5-pro", "openai/o3"])
def test_every_model_of_the_catalogue_that_retires_says_so(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    set_date(monkeypatch, "2026-11-27")
    levels = levels_of_model(name)
    assert "retires on 2026-12-" in describe_hosted(name, levels[0]).notices[0]
    retiring = {"gpt-5", "gemini-2.5-pro", "gemini-2.5-flash"}
    for each in named_models():
        level = levels_of_model(each)[0]
        assert bool(describe_hosted(each, level).known.retirement) == (each in retiring)


def test_a_date_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "catalogue.toml"
    monkeypatch.setenv("NUMBENCH_CATALOGUE", str(path))
    path.write_text('[[rule]]\nmatch = "openai/x"\nretires = "soon"\n')
    with pytest.raises(BadInput, match=r"catalogue.toml: .*'soon'.*rule\[0\]"):
        describe_hosted("openai/x")
    path.write_text('[[rule]]\nmatch = "openai/x"\nretires = "2020-01-01"\nsuccessor = "y"\n')
    assert describe_hosted("openai/x").known.retirement == "retired on 2020-01-01; successor: y"


@each_row(__file__, "certain_limits")
def test_a_cost_limit_is_certain_only_if_the_token_limit_bounds_all_that_is_billed(
    model: str, level: str | None, is_bounded: bool
) -> None:
    spec = RunSpec(model, reasoning=level, dataset="short", max_tokens=1000, max_cost=5)
    resolved = resolve(spec, describe(spec))
    assert bool(highest_costs(resolved)) == is_bounded
    assert ("best effort" in cost_limit_note(resolved)) != is_bounded
    assert is_bounded or "includes the reasoning" in cost_limit_note(resolved)


def test_a_cost_limit_reserves_the_price_of_a_cache_write() -> None:
    spec = RunSpec("gpt-6-luna", reasoning="low", dataset="short", max_tokens=1000, max_cost=5)
    resolved = resolve(spec, describe(spec))
    price = resolved.price
    assert price is not None and price.cache_write == 1.25 * price.input
    for task, bound in highest_costs(resolved).items():
        requests = resolved.requests_by_task[task]
        longest = max(len(each.item.prompt) for each in requests)
        least = (longest * price.cache_write + 1000 * price.output) / 1e6
        assert bound >= least
    usage, dollars = Usage(input=10, generated=1), 6 * price.input + 4 * price.cache_write
    assert cost(usage, price, 4) == pytest.approx((dollars + price.output) / 1e6)
    assert cost(usage, replace(price, cache_write=None), 4) is None


def test_providers_bound_what_they_bill_or_say_that_they_do_not() -> None:
    unbounded = {row.name for row in TABLES.provider if row.limit_excludes_reasoning}
    assert unbounded == {"xai", "dashscope"}
    assert find_provider("groq") and find_provider("zai") and find_provider("fireworks_ai")
