"""Opening and describing models by name: errors, keys, URLs, levels, and lazy imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from numbench.errors import BadInput
from numbench.models import Server, describe_model, missing_key, open_batch, open_model
from numbench.models.catalogue import named_models
from numbench.models.hosted_model import HostedModel
from numbench.models.providers import all_providers
from numbench.runner.planning import plan
from numbench.runner.spec import RunSpec
from tests.models.adapter_calls import KEY

PAPER = {
    "gpt-5": "GPT 5",
    "gemini-2.5-pro": "Gemini 2.5 Pro",
    "gemini-2.5-flash": "Gemini 2.5 Flash",
    "gpt-oss-120b": "GPT OSS 120B",
    "qwen3-235b-2507": "Qwen3 235B 2507",
    "deepseek-v3.1": "DeepSeek v3.1",
    "kimi-k2-0905": "Kimi K2 0905",
    "llama-4-maverick": "Llama 4 Maverick",
}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in all_providers():
        for variable in provider.key_variables:
            monkeypatch.delenv(variable, raising=False)


def test_the_catalogue_contains_the_papers_models() -> None:
    models = named_models()
    displays = {name: model.display for name, model in models.items()}
    assert list(displays.items())[: len(PAPER)] == list(PAPER.items())
    assert len(set(displays.values())) == len(displays)
    for name, levels in (
        ("gpt-5", ["minimal", "low", "medium", "high", "maximal"]),
        ("gemini-2.5-pro", ["minimal", "maximal"]),
        ("kimi-k2-0905", ["none"]),
    ):
        assert list(models[name].all_levels()) == levels


@pytest.mark.parametrize(
    ("model", "reasoning", "message"),
    [
        ("gpt5", None, r"unknown model 'gpt5': did you mean gpt-5\? \(`numbench models PATTERN`"),
        ("checkpoint/", None, r"unknown model.*did you mean checkpoint/small or checkpoint/PATH\?"),
        ("checkpoint/x", None, "checkpoint/x: folder x does not exist"),
        ("hf/x", None, "hf/x: folder x does not exist"),
        ("openai/", None, r"unknown model.*did you mean openai/NAME\?"),
        ("gpt-5.5", None, r"did you mean openai/gpt-5\.5\?"),
        ("gpt-5-mini", None, r"did you mean openai/gpt-5-mini\?"),
        ("OpenAI/o3", None, r"did you mean openai/o3\?"),
        ("opnai/o3", None, r"did you mean openai/o3\?"),
        ("float32", None, r"did you mean baseline/float32\?"),
        ("baseline/float16", None, "use baseline/float64, baseline/float32 or baseline/bfloat16$"),
        (
            "cohere/large",
            None,
            r"did you mean openrouter/cohere/large or litellm/cohere/large\?",
        ),
        ("anthropic/claude-x", None, "anthropic/claude-x needs a key: set ANTHROPIC_API_KEY"),
        ("anthropic/claude-opus-5-5", "none", "possible: low, medium, high, xhigh, max"),
        ("anthropic/claude-haiku-4-5", "xhigh", "possible: none, minimal, low, medium, high, max"),
        (
            "google/gemini-2.5-pro",
            None,
            "did you mean gemini-2.5-pro, openrouter/google/gemini-2.5-pro or lit",
        ),
        ("", None, "did you mean openrouter/VENDOR/NAME or litellm/PROVIDER/NAME"),
        ("gpt-5", "none", "no reasoning level 'none'; possible: minimal, low, medium, high, max"),
        ("openai/x", "maximal", "possible: none, minimal, low, medium, high, xhigh, max"),
        ("gemini/gemini-2.5-flash-lite", "low", "possible: none, maximal$"),
        ("gemini/gemini-3.8-flash", "none", "possible: low, medium, high$"),
        ("openai/gpt-5", "none", "possible: minimal, low, medium, high$"),
        ("gpt-6-luna", "minimal", "possible: none, low, medium, high, xhigh, max$"),
        (
            "gpt-6-luna",
            "4096-tokens",
            "does not accept a number of reasoning tokens: use --reasoning none,",
        ),
        (
            "openrouter/a/b",
            "4096-tokens",
            "openrouter/a/b does not accept a number of reasoning tokens: ",
        ),
        ("gemini-2.5-pro", "100-tokens", "--reasoning 100: give 128 to 32,768$"),
        ("gemini/gemini-2.5-flash-lite", "9-tokens", "9: give 0, or 512 to 24,576$"),
        ("baseline/float64", "low", "possible: none"),
        ("gpt-5", None, "several reasoning levels: give --reasoning minimal, low"),
        ("gpt-5", "minimal", "gpt-5 needs a key: set OPENAI_API_KEY"),
        ("gemini-2.5-pro", "minimal", "set GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("kimi-k2-0905", None, "set OPENROUTER_API_KEY"),
    ],
)
def test_the_error_for_an_impossible_model_says_in_one_line_what_is_possible(
    model: str, reasoning: str | None, message: str
) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        open_model(model, reasoning)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://x",
        "http://",
        "http://a:b:c",
        "http://[",
        "http://[zz::]",
        "http://me:PASSWORD@host:99999/v1",
        "http://me:PASSWORD@host:PASSWORD/v1",
        "http://me:PASSWORD@host\u2100.com/v1",
        "http://a..b/v1",
        "http://ho st/v1",
        "http://host/v1\n",
    ],
)
def test_the_error_for_a_malformed_base_url_does_not_contain_it(url: str) -> None:
    for function in (open_model, describe_model):
        with pytest.raises(BadInput) as caught:
            function("openai/x", None, Server(url))
        assert str(caught.value) == "--base-url: not a URL such as http://127.0.0.1:8000/v1"
        assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("model", "url", "message"),
    [
        ("openai/x", "http://me:PASSWORD@host/v1", "set the server's key in OPENAI_API_KEY"),
        ("gemini/x", "http://PASSWORD@host", "key in GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("litellm/openai/x", "http://PASSWORD@host", "in the environment variable of the provider"),
        ("openai/x", "http://host/v1?token=PASSWORD", "query strings and fragments"),
        ("openai/x", "http://host/v1#PASSWORD", "query strings and fragments"),
    ],
)
def test_a_base_url_with_a_password_is_rejected(model: str, url: str, message: str) -> None:
    for function in (open_model, describe_model):
        with pytest.raises(BadInput, match=f"--base-url.*{message}") as caught:
            function(model, None, Server(url))
        assert "PASSWORD" not in str(caught.value)
    if not model.startswith("litellm"):
        with pytest.raises(BadInput, match="--base-url"):
            open_batch(model, None, Server(url))


@pytest.mark.parametrize(
    "path", ["/chat/completions", "/completions/", "/responses", "/messages", "/models"]
)
def test_the_path_of_a_request_is_refused_before_any_is_sent(path: str) -> None:
    with pytest.raises(BadInput, match=f"omit '{path.rstrip('/')}' at its end"):
        describe_model("openai/x", None, Server(f"http://127.0.0.1:1/v1{path}"))


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("https://HOST:8000/v1", "https://host:8000/v1"),
        ("https://host/v1/", "https://host/v1"),
        ("http://[::1]:80", "http://[::1]:80"),
    ],
)
def test_a_base_url_is_normalized_and_part_of_the_identity(url: str, written: str) -> None:
    opened = open_model("gpt-5", "low", Server(url))
    assert opened.description.identity == {"route": "openai/gpt-5", "base_url": written}
    with pytest.raises(BadInput, match="runs in this process: omit --base-url and --api"):
        plan(RunSpec("baseline/float64", base_url="http://x", api="responses"))


@pytest.mark.parametrize(
    "key", ["sk-PLANTED\u2019 0123", "sk-PLANTED\n0123", "sk-PLANTED 0123", "sk-\x7fPLANTED"]
)
@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/x", "OPENAI_API_KEY"),
        ("gemini/x", "GOOGLE_API_KEY"),
    ],
)
def test_the_error_for_a_malformed_key_names_its_variable_only(
    monkeypatch: pytest.MonkeyPatch, model: str, variable: str, key: str
) -> None:
    monkeypatch.setenv(variable, key)
    with pytest.raises(BadInput, match=f"^{variable} contains a character") as caught:
        open_model(model, None, Server("http://x"))
    assert "PLANTED" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"OPENAI_API_KEY=\xff\xfePLANTED", "cannot be read: 'utf-8' codec"),
        (b"OPENAI_API_KEY=PLANTED\x00", "cannot be read: embedded null"),
    ],
)
def test_the_error_for_a_malformed_env_file_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(BadInput, match=message) as caught:
        open_model("openai/x", None, Server("http://x"))
    assert str(tmp_path / ".env") in str(caught.value)
    assert "PLANTED" not in str(caught.value)


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_a_blank_key_counts_as_not_set(monkeypatch: pytest.MonkeyPatch, blank: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", blank)
    assert missing_key(describe_model("gpt-5", "low")) == "OPENAI_API_KEY"
    with pytest.raises(BadInput, match="needs a key"):
        open_model("gpt-5", "low")


def test_levels_and_display_names_of_routes_and_named_models() -> None:
    opened = open_model("openai/some", None, Server("http://x"))
    assert (opened.description.level, opened.description.display) == ("default", "some")
    assert describe_model("kimi-k2-0905").level == "none"
    qwen = open_model("qwen3-235b-2507", "maximal", Server("http://x")).description
    assert qwen.display == PAPER["qwen3-235b-2507"]


def test_heavy_packages_are_imported_only_by_the_model_that_needs_them() -> None:
    code = (
        "import sys, numbench.cli, numbench.runner, numbench.models.local_inference\n"
        "heavy = {'openai', 'google.genai', 'litellm', 'pandas', 'httpx', 'httpx2'}\n"
        "heavy |= {'numpy', 'torch', 'transformers', 'safetensors'}\n"
        "loaded = heavy & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "numbench.models.open_model('baseline/float64')\n"
        "assert not heavy & set(sys.modules)\n"
        "numbench.models.open_model('openai/x', None, numbench.models.Server('http://x'))\n"
        "assert not {'openai', 'google.genai'} & set(sys.modules)\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


def test_a_provider_without_its_package_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numbench.models.litellm_model.find_spec", lambda package: None)
    with pytest.raises(BadInput, match="needs the package litellm: pip install litellm"):
        open_model("litellm/groq/any")


KEY_OF_OTHERS = "key-of-another-server-0123"


@pytest.mark.parametrize(
    ("url", "variable", "key"),
    [
        ("https://api.openai.com/v1", None, KEY),
        ("https://eu.api.openai.com/v1", None, KEY),
        ("http://127.0.0.1:8000/v1", None, KEY),
        ("http://[::1]:8000/v1", None, KEY),
        ("http://localhost:8000/v1", None, KEY),
        ("https://llm.example.com/v1", None, None),
        ("https://evil-api.openai.com.example.com/v1", None, None),
        ("https://notapi.openai.com/v1", None, None),
        ("http://10.0.0.7/v1", None, None),
        ("http://gpu-box:8000/v1", None, None),
        ("https://llm.example.com/v1", "OTHER_KEY", KEY_OF_OTHERS),
        ("http://10.0.0.7/v1", "OTHER_KEY", KEY_OF_OTHERS),
    ],
)
def test_a_providers_key_goes_to_its_own_hosts_only(
    monkeypatch: pytest.MonkeyPatch, url: str, variable: str | None, key: str | None
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OTHER_KEY", KEY_OF_OTHERS)
    opened = open_model("openai/x", None, Server(url, "chat", variable)).model
    assert isinstance(opened, HostedModel)
    assert opened._target.key == key


@pytest.mark.parametrize(
    "url",
    ["http://llm.example.com/v1", "http://8.8.8.8/v1", "http://134744072/", "http://0x08080808/"],
)
def test_secrets_do_not_go_to_the_internet_in_plain_text(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("OTHER_KEY", KEY_OF_OTHERS)
    for server in (Server(url, api_key_env="OTHER_KEY"), Server(url, headers={"a": "b"})):
        with pytest.raises(BadInput, match="use https://, or omit"):
            open_model("openai/x", None, server)
    assert open_model("openai/x", None, Server(url))


def test_a_named_key_must_be_set() -> None:
    elsewhere = Server("https://llm.example.com/v1", api_key_env="MISSING_KEY")
    with pytest.raises(BadInput, match=r"set MISSING_KEY in the environment or in \.env$"):
        open_model("openai/x", None, elsewhere)


@pytest.mark.parametrize(
    ("model", "level", "at_provider", "elsewhere"),
    [
        ("gpt-5", None, "several reasoning levels", {}),
        ("gpt-5", "low", {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ("openai/gpt-5", "none", "no reasoning level", {"reasoning_effort": "none"}),
        ("kimi-k2-0905", None, {}, {}),
    ],
)
def test_another_server_gets_only_what_options_say(
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    level: str | None,
    at_provider: dict[str, object] | str,
    elsewhere: dict[str, object],
) -> None:
    for url in ("http://127.0.0.1:1/v1", "https://llm.example.com/v1"):
        description = describe_model(model, level, Server(url))
        settings = description.settings
        assert description.level_request == elsewhere
        assert description.level == (level or "default")
        assert (settings.structured, settings.seed, settings.max_tokens) == (False, None, None)
    for host in (None, "https://eu.api.openai.com/v1", "https://openrouter.ai/api/v1"):
        if host and (host[8:10] == "op") != model.startswith("kimi"):
            continue
        if isinstance(at_provider, str):
            with pytest.raises(BadInput, match=at_provider):
                describe_model(model, level, Server(host))
        else:
            assert describe_model(model, level, Server(host)).settings.structured
