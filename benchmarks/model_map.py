"""Extracts the model map of a wheel of litellm.

    python benchmarks/model_map.py WHEEL

The map is a file of litellm's, read without importing it; `make model-map` downloads the newest.
The first line of the extract has the version and the day of the extraction.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from zipfile import ZipFile

import msgspec

from numbench.models.prices import EXTRACT, ModelFacts, ModelMap

MAP_FILE = "litellm/model_prices_and_context_window_backup.json"
"""The map in litellm's distributions."""

LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The reasoning levels that the map knows, in ascending order."""


def decode_map(content: bytes) -> dict[str, ModelFacts]:
    """Return the text models of a map by name. Raises msgspec.MsgspecError if it is malformed."""
    return extract_map(msgspec.json.decode(content, type=dict[str, dict[str, object]]))


def extract_map(entries: Mapping[str, Mapping[str, object]]) -> dict[str, ModelFacts]:
    """Return the text models of litellm's map that have a price or a limit, by name."""
    models: dict[str, ModelFacts] = {}
    for key in sorted(entries, key=lambda key: ("/" in key, key)):
        entry = entries[key]
        if key != "sample_spec" and entry.get("mode") in ("chat", "responses"):
            facts = _facts(_name(key, str(entry.get("litellm_provider"))), entry)
            if facts.input is not None or facts.context is not None:
                models[facts.name] = facts
    return dict(sorted(models.items()))


def _name(key: str, provider: str) -> str:
    """Return `PROVIDER/NAME` for a key of the map, most of which begin with the provider."""
    prefix = provider.partition("-")[0] if provider.startswith("vertex_ai-") else provider
    prefix = {"bedrock_converse": "bedrock", "text-completion-openai": "openai"}.get(prefix, prefix)
    return key if key.startswith(f"{prefix}/") else f"{prefix}/{key}"


def _facts(name: str, entry: Mapping[str, object]) -> ModelFacts:
    tiers = entry.get("tiered_pricing")
    first = tiers[0] if isinstance(tiers, list) and tiers else {}
    limits = [
        1000 * int(match[1])
        for field in entry
        if (match := re.fullmatch(r"(?:in|out)put_cost_per_token_above_(\d+)k_tokens", field))
    ]
    if first:
        limits.append(int(first["range"][1]))
    prices = {**entry, **first}
    dollars, note = _dollars(prices), ""
    reasoning = _per_million(prices.get("output_cost_per_reasoning_token"))
    if dollars and reasoning and reasoning != dollars[1]:
        dollars, note = (dollars[0], max(dollars[1], reasoning)), "without reasoning"
    if dollars and "off_peak_pricing" in entry:
        note = "at off-peak hours"
    levels, lacks = _levels(entry)
    batch = (entry.get("input_cost_per_token_batches"), entry.get("output_cost_per_token_batches"))
    price_in, price_out = dollars or (None, None)
    return ModelFacts(
        name=name,
        input=price_in,
        output=price_out,
        cache_write=_per_million(prices.get("cache_creation_input_token_cost"))
        if dollars
        else None,
        priced_up_to=min(limits, default=None) if dollars else None,
        has_batch_price=dollars is not None
        and tuple(map(_per_million, batch)) == (dollars[0] / 2, dollars[1] / 2),
        price_note=note,
        context=_tokens(entry.get("max_input_tokens")),
        max_output=_tokens(entry.get("max_output_tokens")),
        has_schema=entry.get("supports_response_schema") is True,
        levels=levels,
        lacks=lacks,
        retires=_date(entry.get("deprecation_date")),
        successor=str(entry.get("successor_model") or "").removeprefix(
            f"{name.partition('/')[0]}/"
        ),
    )


_FEES = ("input_cost_per_request", "citation_cost_per_token")
"""Costs of a request besides those of its tokens. Perplexity's are for the search that it makes."""


def _dollars(entry: Mapping[str, object]) -> tuple[float, float] | None:
    """Return the prices of input and output, None if one is unknown: 0 stands for that too."""
    searches = entry.get("litellm_provider") == "perplexity" and (
        "search_context_cost_per_query" in entry
    )
    if searches or any(fee in entry for fee in _FEES):
        return None
    price_in = _per_million(entry.get("input_cost_per_token"))
    price_out = _per_million(entry.get("output_cost_per_token"))
    return None if price_in is None or price_out is None else (price_in, price_out)


def _per_million(dollars_per_token: object) -> float | None:
    if not isinstance(dollars_per_token, int | float) or dollars_per_token <= 0:
        return None
    return float(f"{dollars_per_token * 1e6:.6g}")


def _date(value: object) -> str:
    """Return an ISO date, empty for anything else."""
    text = str(value or "")
    return text if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else ""


def _tokens(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None


def _levels(entry: Mapping[str, object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the levels that a model has and lacks; there is no flag for low, medium and high."""
    listed = entry.get("reasoning_effort_levels")
    if isinstance(listed, list):
        return tuple(map(str, listed)), tuple(level for level in LEVELS if level not in listed)
    flags = {level: entry.get(f"supports_{level}_reasoning_effort") for level in LEVELS}
    if flags["xhigh"] is False and flags["max"] is None:
        flags["max"] = False
    return (
        tuple(level for level in LEVELS if flags[level] is True),
        tuple(level for level in LEVELS if flags[level] is False),
    )


def write_extract(wheel: Path, path: Path = EXTRACT) -> ModelMap:
    """Write the extract of the map in a wheel of litellm to `path`."""
    version = wheel.name.split("-")[1]
    with ZipFile(wheel) as archive:
        models = decode_map(archive.read(MAP_FILE))
    version = f"{version} ({date.today().isoformat()})"
    text = io.StringIO()
    text.write(f"# Facts from the model map of litellm {version}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(ModelFacts.__struct_fields__)
    for facts in models.values():
        writer.writerow(map(_cell, msgspec.structs.astuple(facts)))
    path.write_text(text.getvalue(), encoding="utf-8")
    return ModelMap(version, models)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else ""
    if isinstance(value, tuple):
        return " ".join(value)
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    print(write_extract(parser.parse_args().wheel).source)
