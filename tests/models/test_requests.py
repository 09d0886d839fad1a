"""What each adapter sends."""

from __future__ import annotations

import pytest

from bench.models import open_model
from bench.models.catalogue import entries, resolve
from tests.models.asking import KEY, LOCAL_CHAT, LOCAL_GEMINI, ask, good

NUMBER = {
    "type": "object",
    "properties": {"answer": {"type": "number"}},
    "required": ["answer"],
    "additionalProperties": False,
}
CHAT_SCHEMA = {
    "type": "json_schema",
    "json_schema": {"name": "answer", "strict": True, "schema": NUMBER},
}
ROUTER: dict[str, object] = {"usage": {"include": True}, "provider": {"require_parameters": True}}
ZERO: dict[str, object] = {"temperature": 0.0}
SEED: dict[str, object] = {"seed": 1}
LONG: dict[str, object] = {"max_tokens": 65536}
SCHEMA: dict[str, object] = {"response_format": CHAT_SCHEMA}

GPT_5_LEVELS = [
    ("minimal", "minimal"),
    ("low", "low"),
    ("medium", "medium"),
    ("high", "high"),
    ("maximal", "high"),
]
CHAT_CONFIGURATIONS: list[tuple[str, str, str, dict[str, object]]] = [
    *(
        ("gpt-5", level, "gpt-5", SCHEMA | SEED | {"reasoning_effort": effort})
        for level, effort in GPT_5_LEVELS
    ),
    *(
        (
            "gpt-oss-120b",
            level,
            "openai/gpt-oss-120b",
            ROUTER
            | ZERO
            | SCHEMA
            | {"reasoning": {"effort": effort}}
            | (LONG if effort == "high" else {}),
        )
        for level, effort in GPT_5_LEVELS[1:]
    ),
    ("qwen3-235b-2507", "none", "qwen/qwen3-235b-a22b-2507", ROUTER | ZERO),
    ("qwen3-235b-2507", "maximal", "qwen/qwen3-235b-a22b-thinking-2507", ROUTER | ZERO | LONG),
    (
        "deepseek-v3.1",
        "none",
        "deepseek/deepseek-chat-v3.1",
        ROUTER | ZERO | SCHEMA | {"reasoning": {"enabled": False}},
    ),
    (
        "deepseek-v3.1",
        "maximal",
        "deepseek/deepseek-chat-v3.1",
        ROUTER | ZERO | LONG | {"reasoning": {"effort": "high"}},
    ),
    ("kimi-k2-0905", "none", "moonshotai/kimi-k2-0905", ROUTER | ZERO | SCHEMA),
    ("llama-4-maverick", "none", "meta-llama/llama-4-maverick", ROUTER | ZERO),
]

GEMINI_CONFIGURATIONS: list[tuple[str, str, dict[str, object]]] = [
    ("gemini-2.5-pro", "minimal", {"thinkingBudget": 128, "includeThoughts": True}),
    ("gemini-2.5-pro", "maximal", {"thinkingBudget": 32768, "includeThoughts": True}),
    ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
    ("gemini-2.5-flash", "maximal", {"thinkingBudget": 24576, "includeThoughts": True}),
]


def test_every_level_of_the_catalogue_is_checked_here() -> None:
    checked = [row[:2] for row in (*CHAT_CONFIGURATIONS, *GEMINI_CONFIGURATIONS)]
    listed = [(entry.name, level) for entry in entries() for level in entry.levels]
    assert sorted(checked) == sorted(listed)


@pytest.mark.parametrize(("model", "level", "served", "rest"), CHAT_CONFIGURATIONS)
def test_the_papers_chat_configurations_send_exactly_this(
    model: str, level: str, served: str, rest: dict[str, object]
) -> None:
    completion, asked = ask(good, model, level)
    assert completion.text == '{"answer": 1}'
    assert asked.body == {
        "model": served,
        "messages": [
            {"role": "system", "content": "Answer in JSON."},
            {"role": "user", "content": "What is 1 + 1?"},
        ],
        **rest,
    }
    assert asked.path == "/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(("level", "effort"), GPT_5_LEVELS)
def test_gpt_5_in_the_responses_format_sends_exactly_this(level: str, effort: str) -> None:
    completion, asked = ask(good, "gpt-5", level, api="responses")
    assert completion.text == '{"answer": 1}'
    assert asked.body == {
        "model": "gpt-5",
        "input": [
            {"role": "system", "content": "Answer in JSON."},
            {"role": "user", "content": "What is 1 + 1?"},
        ],
        "store": False,
        "text": {
            "format": {"type": "json_schema", "name": "answer", "strict": True, "schema": NUMBER}
        },
        "reasoning": {"effort": effort, "summary": "auto"},
    }
    assert asked.path == "/responses"


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@pytest.mark.parametrize(("model", "level", "thinking"), GEMINI_CONFIGURATIONS)
def test_the_papers_gemini_configurations_send_exactly_this(
    model: str, level: str, thinking: dict[str, object]
) -> None:
    completion, asked = ask(good, model, level)
    assert completion.text == '{"answer": 1}'
    assert asked.path == f"/v1beta/models/{model}:generateContent"
    assert asked.headers["x-goog-api-key"] == KEY
    assert asked.body["systemInstruction"]["parts"] == [{"text": "Answer in JSON."}]
    assert asked.body["contents"] == [{"role": "user", "parts": [{"text": "What is 1 + 1?"}]}]
    generation = asked.body["generationConfig"]
    # The SDK may write the fields of this one object in snake case, which Google reads as well.
    sent = generation.pop("thinkingConfig")
    assert {_camel_case(key): value for key, value in sent.items()} == thinking
    assert generation == {
        "temperature": 0.0,
        "seed": 1,
        "responseMimeType": "application/json",
        "responseJsonSchema": NUMBER,
    }


@pytest.mark.parametrize(
    ("kind", "schema"),
    [("letter", {"type": "string"}), ("list", {"type": "array", "items": {"type": "number"}})],
)
def test_the_schema_follows_the_kind_of_answer(kind: str, schema: dict[str, object]) -> None:
    _, asked = ask(good, "gpt-5", "minimal", answer_kind=kind)
    sent = asked.body["response_format"]["json_schema"]["schema"]
    assert sent["properties"] == {"answer": schema}


def test_limits_and_seed_are_sent_under_the_servers_names() -> None:
    _, asked = ask(good, "gpt-5", "low", max_tokens=9, seed=4)
    assert (asked.body["max_completion_tokens"], asked.body["seed"]) == (9, 4)
    _, asked = ask(good, LOCAL_CHAT, max_tokens=9)
    assert asked.body["max_tokens"] == 9
    _, asked = ask(good, LOCAL_GEMINI, max_tokens=9, seed=4)
    assert asked.body["generationConfig"]["maxOutputTokens"] == 9


@pytest.mark.parametrize(
    ("model", "level", "sent"),
    [
        ("openai/x", "none", {"reasoning_effort": "none"}),
        ("openai/x", None, {}),
        ("openrouter/a/b", "medium", {"reasoning": {"effort": "medium"}} | ROUTER),
        ("openrouter/a/b", None, ROUTER),
        ("litellm/openai/x", None, {}),
        *(
            ("litellm/openai/x", level, {"reasoning_effort": level})
            for level in ("none", "minimal", "low", "medium", "high")
        ),
    ],
)
def test_routes_outside_the_catalogue_send_the_level_or_nothing(
    model: str, level: str | None, sent: dict[str, object]
) -> None:
    _, asked = ask(good, model, level)
    assert {k: v for k, v in asked.body.items() if k not in ("model", "messages")} == ZERO | sent


def test_models_known_to_reject_a_temperature_get_none() -> None:
    assert open_model("openai/o3", "low", "http://127.0.0.1").about.settings.temperature is None
    assert open_model("openrouter/openai/gpt-5-mini").about.settings.temperature is None
    assert open_model("openai/olmo", base_url="http://127.0.0.1").about.settings.temperature == 0.0


@pytest.mark.parametrize(
    "model",
    [
        "litellm/anthropic/claude-x",
        "litellm/claude-x",
        "litellm/bedrock/us.anthropic.claude-x",
        "litellm/vertex_ai/claude-x",
    ],
)
def test_claude_gets_a_temperature_only_where_it_does_not_think(model: str) -> None:
    def temperature(level: str | None) -> float | None:
        return resolve(model, level).settings.temperature

    assert (temperature(None), temperature("none")) == (0.0, 0.0)
    assert (temperature("minimal"), temperature("low"), temperature("high")) == (None, None, None)
    assert resolve("litellm/mistral/any", "low").settings.temperature == 0.0
