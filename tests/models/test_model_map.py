"""Prices, limits and capabilities from litellm's model map."""

import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from benchmarks.model_map import MAP_FILE, extract_map, write_extract
from numbench.models import prices
from numbench.models.prices import ModelFacts, find_facts, find_vendor_facts
from tests.support.case_tables import each_row
from tests.support.command_line import imported_by

PRICED = {
    "mode": "chat",
    "litellm_provider": "acme",
    "input_cost_per_token": 2e-06,
    "output_cost_per_token": 8e-06,
    "max_input_tokens": 1000,
    "max_output_tokens": 500,
}


def facts_of(**changes: Any) -> ModelFacts:
    """Return the facts on a model whose entry in the map has these fields."""
    (facts,) = extract_map({"acme/model": {**PRICED, **changes}}).values()
    return facts


def test_prices_are_per_million_tokens_and_limits_are_those_of_input_and_output() -> None:
    facts = facts_of(max_tokens=7)
    assert facts == ModelFacts("acme/model", 2.0, 8.0, context=1000, max_output=500)


@each_row(__file__, "unknown_prices")
def test_a_price_of_zero_or_with_other_fees_is_unknown(changes: dict[str, Any]) -> None:
    facts = facts_of(**changes)
    assert (facts.input, facts.output, facts.max_output) == (None, None, 500)


def test_a_price_holds_up_to_the_first_tier() -> None:
    field = "input_cost_per_token_above_{}k_tokens"
    assert facts_of().priced_up_to is None
    assert facts_of(**{field.format(272): 1, field.format(200): 1}).priced_up_to == 200_000
    assert facts_of(**{f"{field.format(272)}_priority": 1}).priced_up_to is None
    tiers = [
        {"input_cost_per_token": 1e-06, "output_cost_per_token": 3e-06, "range": [0, 32000.0]},
        {"input_cost_per_token": 9e-06, "output_cost_per_token": 9e-06, "range": [32000.0, 1e6]},
    ]
    tiered = facts_of(tiered_pricing=tiers, input_cost_per_token=None, output_cost_per_token=None)
    assert (tiered.input, tiered.output, tiered.priced_up_to) == (1.0, 3.0, 32_000)


def test_a_higher_price_of_reasoning_counts_and_a_batch_price_of_half() -> None:
    assert facts_of(output_cost_per_reasoning_token=8e-06).price_note == ""
    facts = facts_of(output_cost_per_reasoning_token=4e-05)
    assert (facts.output, facts.price_note) == (40.0, "without reasoning")
    assert facts_of(output_cost_per_reasoning_token=1e-06).output == 8.0
    half = {"input_cost_per_token_batches": 1e-06, "output_cost_per_token_batches": 4e-06}
    assert facts_of(**half).has_batch_price
    assert not facts_of().has_batch_price
    assert not facts_of(**half | {"output_cost_per_token_batches": 8e-06}).has_batch_price


def test_levels_that_a_model_has_and_lacks() -> None:
    flags = {"supports_none_reasoning_effort": True, "supports_minimal_reasoning_effort": False}
    facts = facts_of(**flags)
    assert (facts.levels, facts.lacks) == (("none",), ("minimal",))
    facts = facts_of(supports_xhigh_reasoning_effort=False)
    assert facts.lacks == ("xhigh", "max")
    facts = facts_of(reasoning_effort_levels=["low", "max"])
    assert facts.levels == ("low", "max")
    assert facts.lacks == ("none", "minimal", "medium", "high", "xhigh")


def test_names_begin_with_the_provider_and_other_models_than_text_are_left_out() -> None:
    entry = {**PRICED, "litellm_provider": "vertex_ai-language-models"}
    entries = {
        "gemini-x": entry,
        "vertex_ai/gemini-y": entry,
        "painter": {**PRICED, "mode": "image_generation"},
        "sample_spec": PRICED,
        "empty": {"mode": "chat", "litellm_provider": "acme"},
    }
    assert list(extract_map(entries)) == ["vertex_ai/gemini-x", "vertex_ai/gemini-y"]


def test_routes_find_their_models() -> None:
    luna, opus = find_facts("openai/gpt-6-luna"), find_facts("anthropic/claude-opus-5-5")
    assert luna is not None and opus is not None
    assert (luna.input, luna.output, luna.max_output) == (0.1, 0.5, 128_000)
    assert find_facts("litellm/openai/gpt-6-luna") == find_facts("litellm/gpt-6-luna") == luna
    assert find_facts("openai/claude-opus-5-5") is find_facts("acme/x") is None
    assert find_facts("openrouter/openai/gpt-6-luna") is None
    assert find_vendor_facts("openrouter/openai/gpt-6-luna") == luna
    assert find_vendor_facts("openrouter/anthropic/claude-opus-5.5") == opus
    assert find_vendor_facts("openai/gpt-6-luna") is None
    assert find_vendor_facts("openrouter/qwen/qwen3.8-max") is None


def test_the_extract_keeps_every_fact(tmp_path: Path) -> None:
    entries = json.loads(_installed_map().read_text())
    with ZipFile(tmp_path / "litellm-9.9-py3.whl", "w") as wheel:
        wheel.writestr(MAP_FILE, json.dumps(entries))
    written = write_extract(tmp_path / "litellm-9.9-py3.whl", tmp_path / "map.csv")
    assert written.version.startswith("9.9 (20")
    assert prices.load_model_map(tmp_path / "map.csv") == written
    # An independent reading of OpenAI's prices.
    names = [
        k for k, v in entries.items() if v.get("litellm_provider") == "openai" and "/" not in k
    ]
    priced = [name for name in names if f"openai/{name}" in written.models]
    assert len(priced) > 50
    for name in priced:
        facts = written.models[f"openai/{name}"]
        assert facts.input is not None and facts.output is not None
        assert facts.input == pytest.approx(1e6 * entries[name]["input_cost_per_token"], rel=1e-5)
        assert facts.output == pytest.approx(1e6 * entries[name]["output_cost_per_token"], rel=1e-5)


def _installed_map() -> Path:
    return Path(str(distribution("litellm").locate_file(MAP_FILE)))


def test_reading_the_map_does_not_import_litellm() -> None:
    code = "from numbench.models.prices import find_price; assert find_price('openai/gpt-6-luna')"
    assert not imported_by(code, "litellm")
