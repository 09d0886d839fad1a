"""Opening and describing models by name: errors, keys, URLs, levels, and lazy imports."""

from pathlib import Path
from typing import Any

import pytest

from numbench.errors import BadInput
from numbench.models import Server, describe_model, missing_key, open_model
from numbench.models.catalogue import describe_hosted, named_models
from numbench.models.hosted_model import HostedModel
from numbench.models.http_client import server_context
from numbench.models.providers import all_providers
from numbench.runner.planning import plan
from numbench.runner.spec import RunSpec
from tests.models.adapter_calls import KEY
from tests.support.case_tables import each_case, each_row, read_lines
from tests.support.command_line import CommandLine, imported_by
from tests.support.servers import chat, serve


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in all_providers():
        for variable in provider.key_variables:
            monkeypatch.delenv(variable, raising=False)


def test_the_catalogue_contains_the_papers_models() -> None:
    models = named_models()
    displays = [[name, model.display] for name, model in models.items()]
    paper = read_lines(__file__, "paper_models")
    assert displays[: len(paper)] == paper
    assert len({display for _, display in displays}) == len(displays)
    for name, levels in (
        ("gpt-5", ["minimal", "low", "medium", "high", "maximal"]),
        ("gemini-2.5-pro", ["minimal", "maximal"]),
        ("kimi-k2-0905", ["none"]),
    ):
        assert list(models[name].all_levels()) == levels


@each_case(__file__, "impossible_models")
def test_the_error_for_an_impossible_model_says_in_one_line_what_is_possible(case: Any) -> None:
    """Describing a model says so too, but for what `only` opening it shows, such as a key."""
    server = Server(case.get("url"), case.get("api", "chat"), stream=case.get("stream"))
    for function in [open_model] if "only" in case else [open_model, describe_model]:
        with pytest.raises(BadInput, match=case["message"]) as caught:
            function(case["model"], case.get("level"), server)
        message = str(caught.value)
        assert "\n" not in message and len(message) < 200 and "PASSWORD" not in message
        assert caught.value.__context__ is None or caught.value.__suppress_context__


@each_case(__file__, "default_settings")
def test_default_settings_are_those_that_a_model_accepts(case: Any) -> None:
    """With a parameter that a model rejects, OpenRouter finds no provider for a request."""
    settings = describe_hosted(case["model"], case["level"]).settings
    assert {name: getattr(settings, name) for name in case["settings"]} == case["settings"]


@each_row(__file__, "base_urls")
def test_a_base_url_is_normalized_and_part_of_the_identity(url: str, written: str) -> None:
    for api, more in (("chat", {}), ("responses", {"api": "responses"})):
        opened = open_model("gpt-5", "low", Server(url, api))  # type: ignore[arg-type]
        identity = {"route": "openai/gpt-5", "base_url": written} | more
        assert opened.description.identity == identity
    with pytest.raises(BadInput, match="runs in this process: omit --base-url and --api"):
        plan(RunSpec("baseline/float64", base_url="http://x", api="responses"))


@pytest.mark.parametrize(
    "key", ["sk-PLANTED\u2019 0", "sk-PLANTED\n0", "sk-PLANTED 0", "\x7fPLANTED"]
)
@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "GOOGLE_API_KEY"])
def test_the_error_for_a_malformed_key_names_its_variable_only(
    monkeypatch: pytest.MonkeyPatch, variable: str, key: str
) -> None:
    monkeypatch.setenv(variable, key)
    model = "openai/x" if variable.startswith("OPENAI") else "gemini/x"
    with pytest.raises(BadInput, match=f"^{variable} contains a character") as caught:
        open_model(model, None, Server("http://x"))
    assert "PLANTED" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"OPENAI_API_KEY=\xff\xfePLANTED", b"OPENAI_API_KEY=PLANTED\x00"]
)
def test_the_error_for_a_malformed_env_file_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(BadInput, match="cannot be read: ") as caught:
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
    assert qwen.display == "Qwen3 235B 2507"


def test_heavy_packages_are_imported_only_by_the_model_that_needs_them() -> None:
    heavy = ("openai", "google.genai", "litellm", "pandas", "httpx", "httpx2", "numpy", "torch")
    heavy += ("transformers", "safetensors")
    code = "import numbench.cli, numbench.runner, numbench.models.huggingface_model\n"
    assert not imported_by(f"{code}numbench.models.open_model('baseline/float64')", *heavy)
    hosted = "numbench.models.open_model('openai/x', None, numbench.models.Server('http://x'))"
    assert not imported_by(code + hosted, "openai", "google.genai")


def test_a_provider_without_its_package_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numbench.models.litellm_model.find_spec", lambda package: None)
    with pytest.raises(BadInput, match="needs the package litellm: pip install litellm"):
        open_model("litellm/groq/any")


KEY_OF_OTHERS = "key-of-another-server-0123"


@each_row(__file__, "hosts_of_a_key")
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


@each_row(__file__, "settings_elsewhere")
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


ONE = {"id": "some", "max_model_len": 1024}
OTHERS: dict[object, object] = {"a list alone": [ONE]}
OTHERS |= {"too long": {"data": [ONE], "more": "x" * 2**21}}


# A server with one model may answer under any name.
@each_row(__file__, "listed_models")
def test_the_context_is_what_the_server_lists(
    tmp_path: Path, listed: object, context: int | None
) -> None:
    numbench = CommandLine(tmp_path, None)
    with serve(lambda _: chat()) as server:
        server.models = OTHERS[listed] if isinstance(listed, str) else listed
        assert server_context(f"{server.url}/v1/", "some") == context
        url = f"--base-url={server.url}/v1"
        asked = ("run", "--model=openai/some", url, "--limit=1", "--dry-run")
        plan = " ".join(numbench(*asked).split())
        told = f" ({context:,} tokens with the prompt)" if context else ""
        assert f"limited by the server's context only{told}; --max-tokens N sets a limit" in plan
        assert "Facts about the model" not in plan
        assert "Length of an answer" not in numbench(*asked, "--max-tokens", "5")
        assert not server.received
    assert server_context(server.url, "some") is server_context("http://[", "some") is None
