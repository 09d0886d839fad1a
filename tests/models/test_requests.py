"""The requests that each adapter sends."""

from __future__ import annotations

import pytest

from numbench.models import describe_model, open_model
from numbench.models.catalogue import (
    find_model_provider,
    list_models,
    load_catalogue,
    resolve_model,
)
from numbench.runner.estimates import published_configurations
from tests.models.adapter_calls import (
    CHAT_MODEL,
    CHAT_STREAM,
    GEMINI_MODEL,
    KEY,
    RESPONSES_STREAM,
    call_adapter,
    valid_reply,
)

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


def test_this_file_checks_every_level_of_the_papers_models() -> None:
    """The other models: `test_golden_requests`."""
    checked = [row[:2] for row in (*CHAT_CONFIGURATIONS, *GEMINI_CONFIGURATIONS)]
    models = {model for model, _ in published_configurations()}
    listed = [(entry.name, level) for entry in list_models() for level in entry.levels]
    assert sorted(checked) == sorted(each for each in listed if each[0] in models)


@pytest.mark.parametrize(("model", "level", "served", "rest"), CHAT_CONFIGURATIONS)
def test_the_papers_chat_configurations_send_exactly_this(
    model: str, level: str, served: str, rest: dict[str, object]
) -> None:
    completion, received = call_adapter(valid_reply, model, level)
    assert completion.text == '{"answer": 1}'
    assert (
        received.body
        == {
            "model": served,
            "messages": [
                {"role": "system", "content": "Answer in JSON."},
                {"role": "user", "content": "What is 1 + 1?"},
            ],
            **rest,
        }
        | CHAT_STREAM
    )
    assert received.path == "/chat/completions"
    assert received.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(("level", "effort"), GPT_5_LEVELS)
def test_gpt_5_in_the_responses_format_sends_exactly_this(level: str, effort: str) -> None:
    completion, received = call_adapter(valid_reply, "gpt-5", level, api="responses")
    assert completion.text == '{"answer": 1}'
    assert (
        received.body
        == {
            "model": "gpt-5",
            "input": [
                {"role": "system", "content": "Answer in JSON."},
                {"role": "user", "content": "What is 1 + 1?"},
            ],
            "store": False,
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": "answer",
                    "strict": True,
                    "schema": NUMBER,
                }
            },
            "reasoning": {"effort": effort, "summary": "auto"},
        }
        | RESPONSES_STREAM
    )
    assert received.path == "/responses"


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@pytest.mark.parametrize(("model", "level", "thinking"), GEMINI_CONFIGURATIONS)
def test_the_papers_gemini_configurations_send_exactly_this(
    model: str, level: str, thinking: dict[str, object]
) -> None:
    completion, received = call_adapter(valid_reply, model, level)
    assert completion.text == '{"answer": 1}'
    assert received.path == f"/v1beta/models/{model}:streamGenerateContent"
    assert received.headers["x-goog-api-key"] == KEY
    assert received.body["systemInstruction"]["parts"] == [{"text": "Answer in JSON."}]
    assert received.body["contents"] == [{"role": "user", "parts": [{"text": "What is 1 + 1?"}]}]
    generation = received.body["generationConfig"]
    # The SDK may write the fields of this object in snake case, which Google accepts too.
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
def test_the_schema_depends_on_the_kind_of_answer(kind: str, schema: dict[str, object]) -> None:
    _, received = call_adapter(valid_reply, "gpt-5", "minimal", answer_kind=kind)
    sent = received.body["response_format"]["json_schema"]["schema"]
    assert sent["properties"] == {"answer": schema}


def test_token_limit_and_seed_have_the_names_of_each_api() -> None:
    _, received = call_adapter(valid_reply, "gpt-5", "low", max_tokens=9, seed=4)
    assert (received.body["max_completion_tokens"], received.body["seed"]) == (9, 4)
    _, received = call_adapter(valid_reply, CHAT_MODEL, max_tokens=9)
    assert received.body["max_tokens"] == 9
    _, received = call_adapter(valid_reply, GEMINI_MODEL, max_tokens=9, seed=4)
    assert received.body["generationConfig"]["maxOutputTokens"] == 9


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
def test_routes_send_the_parameters_of_a_level_only_if_one_is_given(
    model: str, level: str | None, sent: dict[str, object]
) -> None:
    _, received = call_adapter(valid_reply, model, level)
    stream = {} if model.startswith("litellm/") else CHAT_STREAM
    parameters = {k: v for k, v in received.body.items() if k not in ("model", "messages")}
    assert parameters == ZERO | sent | stream


def test_models_that_reject_a_temperature_get_none() -> None:
    assert (
        open_model("openai/o3", "low", "http://127.0.0.1").description.settings.temperature is None
    )
    assert open_model("openrouter/openai/gpt-5-mini").description.settings.temperature is None
    assert (
        open_model("openai/olmo", base_url="http://127.0.0.1").description.settings.temperature
        == 0.0
    )


@pytest.mark.parametrize(
    ("name", "temperature"),
    [
        ("claude-3.5-sonnet-20241022", 0.0),
        ("claude-3.7-sonnet:thinking", 0.0),
        ("claude-opus-4", 0.0),
        ("claude-sonnet-4-20250514", 0.0),
        ("claude-haiku-4.5", 0.0),
        ("claude-opus-4.6", 0.0),
        ("claude-opus-4.6-fast", 0.0),
        ("claude-opus-4.7", None),
        ("claude-opus-4.8", None),
        ("claude-sonnet-5", None),
        ("claude-opus-5.5:beta", None),
        ("claude-opus-latest", None),
    ],
)
def test_newer_claude_models_of_openrouter_get_no_temperature(
    name: str, temperature: float | None
) -> None:
    """With a parameter that a model rejects, OpenRouter finds no provider for a request."""
    for level in (None, "high"):
        _, received = call_adapter(valid_reply, f"openrouter/anthropic/{name}", level)
        assert received.body.get("temperature") == temperature
        assert received.body["provider"] == {"require_parameters": True}


def test_claude_models_accept_the_same_at_openrouter_and_at_anthropic() -> None:
    from numbench.models.claude_models import _GENERATIONS, accepts_temperature

    for name, generation in _GENERATIONS.items():
        assert accepts_temperature(name) == (generation.temperature is not None), name


@pytest.mark.parametrize(
    "model",
    [
        "litellm/anthropic/claude-x",
        "litellm/claude-x",
        "litellm/bedrock/us.anthropic.claude-x",
        "litellm/vertex_ai/claude-x",
    ],
)
def test_claude_gets_a_temperature_only_without_reasoning(model: str) -> None:
    def temperature(level: str | None) -> float | None:
        return resolve_model(model, level).settings.temperature

    assert (temperature(None), temperature("none")) == (0.0, 0.0)
    assert (temperature("minimal"), temperature("low"), temperature("high")) == (None, None, None)
    assert resolve_model("litellm/mistral/any", "low").settings.temperature == 0.0


def test_routes_omit_what_their_provider_rejects() -> None:
    """Mistral rejects unknown fields, and its seed is not named `seed`."""
    assert not describe_model("mistral/any").takes_seed
    for level in (None, "low"):
        assert resolve_model("meta/muse-wonder-1.0", level).settings.temperature is None


def test_a_named_model_and_its_route_send_the_same_temperature() -> None:
    compared = set()
    for model in load_catalogue().model:
        for level, settings in model.levels.items():
            route = settings.route or model.route
            provider = find_model_provider(model.name)
            if level in provider.levels_for(route.partition("/")[2]):
                named, direct = resolve_model(model.name, level), resolve_model(route, level)
                assert named.settings.temperature == direct.settings.temperature, (route, level)
                compared.add((model.name, level, named.settings.temperature))
    assert ("gpt-6-luna", "none", 0.0) in compared and ("gpt-6-luna", "low", None) in compared
