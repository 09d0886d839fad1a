"""Compares the facts about models with the newest litellm and SDKs: `benchmarks/facts.md`.

    python benchmarks/facts.py FOLDER

`make facts` downloads their wheels to a folder. The wheels are read, not installed; the types that
requests are validated with are those of unpacked ones. Nothing is corrected: a difference is a
question, and its answer a row with day and source.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

from numbench.models.catalogue import describe_hosted, find_named_model, levels_of_model
from numbench.models.facts import Rule, bundled_tables, today
from numbench.models.prices import ModelFacts, find_price, load_model_map

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.model_map import MAP_FILE, decode_map  # noqa: E402

PAGE = ROOT / "benchmarks" / "facts.md"
GOLDEN_FILE = ROOT / "tests" / "models" / "golden_requests.jsonl"
NOTICE_DAYS = 120
TABLES = bundled_tables()
ROUTES = [model.route for model in TABLES.model]


class InSdk(NamedTuple):
    """A place in the source of an SDK: its package, a file, and a name in it."""

    package: str
    file: str
    name: str


LISTED_MODELS = {
    "openai": InSdk("openai", "openai/types/shared/chat_model.py", r'"(gpt-[6-9][\w.-]*)"'),
    "anthropic": InSdk("anthropic", "anthropic/types/model.py", r'"(claude-[a-z]+-[5-9][\w-]*)"'),
}
"""Where SDKs list models; the name is a pattern of the newer ones."""

_CHAT = "types/chat/completion_create_params.py"
EFFORTS = {
    "openai": InSdk("openai", "openai/types/shared/reasoning_effort.py", "ReasoningEffort: "),
    "anthropic": InSdk("anthropic", "anthropic/types/output_config_param.py", "effort: "),
    "gemini": InSdk("google_genai", "google/genai/types.py", "class ThinkingLevel"),
    "xai": InSdk("xai_sdk", "xai_sdk/types/chat.py", "ReasoningEffort: "),
    "mistral": InSdk("mistralai", "mistralai/client/models/reasoningeffort.py", "Effort = "),
    "groq": InSdk("groq", f"groq/{_CHAT}", "reasoning_effort: "),
    "together_ai": InSdk("together", f"together/{_CHAT}", "reasoning_effort: "),
}
"""Where SDKs define the reasoning levels, which follow the name."""

PARAMETERS = {
    "mistral": InSdk(
        "mistralai",
        "mistralai/client/models/chatcompletionrequest.py",
        "ChatCompletionRequestTypedDict",
    ),
    "groq": InSdk("groq", f"groq/{_CHAT}", "CompletionCreateParams"),
    "together_ai": InSdk("together", f"together/{_CHAT}", "CompletionCreateParamsBase"),
}
"""The classes of SDKs with the parameters of a request."""


class Newest:
    """The downloaded wheels, and the model map in that of litellm."""

    def __init__(self, folder: Path) -> None:
        self.wheels = {path.name.split("-")[0]: path for path in sorted(folder.glob("*.whl"))}
        with ZipFile(self.wheels["litellm"]) as archive:
            self.map: Mapping[str, ModelFacts] = decode_map(archive.read(MAP_FILE))
        # The map has a hundred more.
        self.providers = {row.name for row in TABLES.provider}

    @property
    def versions(self) -> str:
        """`litellm 1.2.3, …`."""
        return ", ".join(
            f"{name.replace('_', '-')} {path.name.split('-')[1]}"
            for name, path in self.wheels.items()
        )

    def read(self, place: InSdk) -> str:
        """Return the text of a file of an SDK."""
        with ZipFile(self.wheels[place.package]) as archive:
            return archive.read(place.file).decode()


def retiring(newest: Newest) -> Iterator[str]:
    last = (today() + timedelta(days=NOTICE_DAYS)).isoformat()
    for model in TABLES.model:
        known = describe_hosted(model.name, levels_of_model(model.name)[0]).known
        if known.retires and known.retires <= last:
            yield f"`{model.name}`: {known.retires}, then {known.successor}"
    for rule in TABLES.rule:
        if rule.retires and not any(rule.applies(route, "default") for route in ROUTES):
            yield f"{_matched(rule)}: {rule.retires}, then {rule.successor}"


def other_dates(newest: Newest) -> Iterator[str]:
    for rule in TABLES.rule:
        for route in (rule.match,) if isinstance(rule.match, str) else rule.match:
            mapped = newest.map.get(route)
            if rule.retires and mapped:
                here = (rule.retires, rule.successor)
                there = (mapped.retires or None, mapped.successor or None)
                if here != there:
                    yield f"`{route}`: {_said(here)} here, {_said(there)} in the map"
    text = newest.read(InSdk("anthropic", "anthropic/_data/deprecated_models.py", ""))
    for name in re.findall(r'"(claude-[\w-]+)": ', text):
        route = f"anthropic/{name}"
        if not describe_hosted(route).known.retires:
            yield f"`{route}`: no date here, deprecated in the SDK"


def other_prices(newest: Newest) -> Iterator[str]:
    for route in dict.fromkeys([*ROUTES, *(price.route for price in TABLES.price)]):
        mapped, price = newest.map.get(route), find_price(route)
        if mapped and mapped.input and price:
            here, there = (price.input, price.output), (mapped.input, mapped.output)
            if here != there:
                yield f"`{route}`: {_said(here)} here, {_said(there)} in the map"
    old = load_model_map().models
    for name, facts in newest.map.items():
        before = old.get(name)
        if before and name.partition("/")[0] in newest.providers:
            known, latest = (before.input, before.output), (facts.input, facts.output)
            if known != latest:
                yield f"`{name}`: {_said(known)} in the bundled map, {_said(latest)} in the newest"


def other_levels(newest: Newest) -> Iterator[str]:
    for route in ROUTES:
        mapped = newest.map.get(route)
        levels = set(levels_of_model(route))
        if mapped and levels:
            if wrong := levels.intersection(mapped.lacks):
                yield f"`{route}`: the map says that it lacks {_said(sorted(wrong))}"
            if more := set(mapped.levels) - levels:
                yield f"`{route}`: the map says that it has {_said(sorted(more))}"


def unknown(newest: Newest) -> Iterator[str]:
    for route in ROUTES:
        if route not in newest.map and not route.startswith("openrouter/"):
            yield f"`{route}`: not in the map"
    for provider, place in LISTED_MODELS.items():
        names = re.findall(r'"([\w.-]+)"', newest.read(place))
        for route in ROUTES:
            if route.startswith(f"{provider}/") and not any(
                route.endswith(f"/{name}") for name in names
            ):
                yield f"`{route}`: not in the list of the SDK"


def newer(newest: Newest) -> Iterator[str]:
    for provider, place in LISTED_MODELS.items():
        for name in re.findall(place.name, newest.read(place)):
            if f"{provider}/{name}" not in ROUTES:
                yield f"`{provider}/{name}`: listed by the SDK, without a name here"
    for name in newest.map:
        if name.partition("/")[0] in newest.providers and name not in load_model_map().models:
            yield f"`{name}`: new in the map"


def golden_requests() -> Iterator[dict[str, Any]]:
    """Yield the requests that the tests of models compare with."""
    yield from map(json.loads, GOLDEN_FILE.read_text(encoding="utf-8").splitlines())


def unknown_to_sdks(newest: Newest) -> Iterator[str]:
    """Yield levels and parameters of requests that the SDK of their provider does not know."""
    efforts = {provider: _efforts(newest, place) for provider, place in EFFORTS.items()}
    parameters = {p: _fields(newest.read(place), place.name) for p, place in PARAMETERS.items()}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for request in golden_requests():
        named = find_named_model(request["model"])
        route = named.route if named else request["model"]
        provider = route.partition("/")[0]
        for level in _levels(request["body"]):
            if provider in efforts and level not in efforts[provider]:
                found[f"{provider}: level `{level}`"].add(route)
        if provider in parameters and not request.get("options"):
            for name in set(request["body"]) - parameters[provider] - {"stream"}:
                found[f"{provider}: parameter `{name}`"].add(route)
    for what, routes in sorted(found.items()):
        yield f"{what} of {_said(sorted(f'`{route}`' for route in routes))}"


def invalid(newest: Newest) -> Iterator[str]:
    """Yield the requests that the newest types of OpenAI, Anthropic and Google reject."""
    from pydantic import ValidationError

    from tests.support.sdk_requests import validate

    for request in golden_requests():
        if not request.get("options", {}).get("params"):
            try:
                validate(request)
            except (ValidationError, AssertionError) as error:
                where = f"`{request['model']}` {request['level']} {request['api']}"
                yield f"{where}: {str(error).splitlines()[0]}"


def _efforts(newest: Newest, place: InSdk) -> set[str]:
    text = newest.read(place)
    start = text.index(place.name)
    words = re.findall(r"['\"](\w+)['\"]", text[start : start + 700])
    known = {"none", "default", "minimal", "low", "medium", "high", "xhigh", "max"}
    return {word.lower() for word in words} & known


def _fields(source: str, name: str) -> set[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return {n.target.id for n in node.body if isinstance(n, ast.AnnAssign)}  # type: ignore[union-attr]
    raise LookupError(name)


def _levels(node: Any) -> Iterator[str]:
    for name, value in node.items() if isinstance(node, dict) else ():
        if name in ("reasoning_effort", "effort", "thinkingLevel"):
            yield str(value).lower()
        yield from _levels(value)


def _said(values: Any) -> str:
    return ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values)


def _matched(rule: Rule) -> str:
    return f"`{rule.match}`" if isinstance(rule.match, str) else _said(f"`{m}`" for m in rule.match)


SECTIONS: dict[str, Callable[[Newest], Iterator[str]]] = {
    f"Retired, or retiring within {NOTICE_DAYS} days": retiring,
    "Other dates of retirement": other_dates,
    "Other prices (US dollars per million tokens, in and out)": other_prices,
    "Other levels": other_levels,
    "Unknown to the map or the SDK": unknown,
    "Newer models": newer,
    "Levels and parameters that the provider's SDK does not know": unknown_to_sdks,
    "Requests that the newest types reject": invalid,
}


def write_page(folder: Path) -> None:
    """Write the page for the wheels in a folder."""
    newest = Newest(folder)
    for name in ("openai", "anthropic", "google_genai"):
        ZipFile(newest.wheels[name]).extractall(folder / "sdks")
    sys.path.insert(0, str(folder / "sdks"))
    lines = [
        "# Facts about models: what differs",
        "",
        f"`make facts` compared the tables of numbench and its golden requests on {today()} with",
        f"{newest.versions}.",
        "A difference is not an error: each row of `bench/numbench/models/providers.toml`, and of",
        "the tables beside it, says what it is based on.",
    ]
    for title, find in SECTIONS.items():
        found = list(find(newest))
        lines += ["", f"## {title}", "", *(f"- {text}" for text in found or ["none"])]
        print(f"{title}: {len(found)}")
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    write_page(parser.parse_args().folder)
