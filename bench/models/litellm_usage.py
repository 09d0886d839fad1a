"""Which of litellm's figures a provider reported, and which litellm made up.

litellm writes 0, or a count of its own, where a provider reports nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from bench.models.bodies import NoJson, decoded
from bench.models.chat import count, mapping

_CONTAINERS = ("usage", "usageMetadata", "usage_metadata", "meta")
"""Where a response keeps its counts. Ollama keeps them beside the answer."""

_BESIDE = ("prompt_eval_count", "eval_count")
_INPUT = (
    "prompt_tokens",
    "input_tokens",
    "promptTokenCount",
    "inputTokens",
    "prompt_eval_count",
)
_CACHED = (
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cacheWriteInputTokens",
    "cacheReadInputTokens",
)
_GENERATED = (
    "completion_tokens",
    "output_tokens",
    "candidatesTokenCount",
    "outputTokens",
    "eval_count",
)
_REASONING = ("reasoning_tokens", "thinking_tokens", "thoughtsTokenCount")
_CHARGES = ("cost", "is_byok", "cost_details")

_Figures = Mapping[str, set[int]]


def reported(usage: object, original: object) -> dict[str, object]:
    """The `usage` that litellm gives, as far as the provider's `original` response bears it out.

    A figure stays where the response holds it under a name of the same meaning. Two sums count as
    held: what was read from and written to a cache, which some leave out of the input, and the
    reasoning, which some leave out of the output.
    """
    numbers = mapping(usage)
    details = mapping(numbers.get("completion_tokens_details"))
    response = _response(original)
    found = _figures(response)
    reasoning = _under(_REASONING, found)
    generated = _under(_GENERATED, found)
    asked = {
        base + sum(cached)
        for base in _under(_INPUT, found)
        for some in range(len(_CACHED) + 1)
        for cached in combinations(list(_each(_CACHED, found)), some)
    }
    charged = mapping(response.get("usage"))
    return {name: charged[name] for name in _CHARGES if name in charged} | {
        "prompt_tokens": _kept(numbers.get("prompt_tokens"), asked),
        "completion_tokens": _kept(
            numbers.get("completion_tokens"),
            generated | {said + thought for said in generated for thought in reasoning},
        ),
        "completion_tokens_details": {
            "reasoning_tokens": _kept(details.get("reasoning_tokens"), reasoning)
        },
    }


def _response(original: object) -> Mapping[str, object]:
    try:
        return mapping(decoded(str(original).encode("utf-8", "replace")))
    except NoJson:
        return {}


def _figures(response: Mapping[str, object]) -> _Figures:
    found: defaultdict[str, set[int]] = defaultdict(set)
    beside = [(name, response.get(name)) for name in _BESIDE]
    for name, value in (*beside, *_numbers([response.get(key) for key in _CONTAINERS])):
        if (number := count(value)) is not None:
            found[name].add(number)
    return found


def _numbers(containers: list[object]) -> Iterator[tuple[str, object]]:
    """The names and values in these objects and in those that they hold."""
    while containers:
        for name, value in mapping(containers.pop()).items():
            if isinstance(value, dict):
                containers.append(value)
            else:
                yield name, value


def _under(names: Iterable[str], found: _Figures) -> set[int]:
    return set(_each(names, found))


def _each(names: Iterable[str], found: _Figures) -> Iterator[int]:
    for name in names:
        yield from found.get(name, ())


def _kept(value: object, held: set[int]) -> int | None:
    number = count(value)
    return number if number in held else None
