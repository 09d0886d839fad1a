"""The provider registry: built-in providers and plugins."""

import asyncio
import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from numbench.errors import BadInput
from numbench.journal.run_folder import REQUESTS
from numbench.models import (
    Message,
    Model,
    ModelProperties,
    ModelTarget,
    NamedModel,
    Price,
    ProviderPlugin,
    ReasoningLevel,
    RequestSettings,
    Server,
    describe_model,
    missing_key,
    open_batch,
    open_model,
)
from numbench.models import providers as registry
from numbench.models.batch_client import BatchService
from numbench.models.catalogue import named_models
from numbench.models.facts import Rule
from numbench.models.prices import find_price
from numbench.models.providers import all_providers, find_provider
from numbench.records import Completion
from numbench.runner.execution import run
from numbench.runner.planning import plan
from numbench.runner.spec import RunSpec
from tests.models.batch_servers import GeminiJobs, planned
from tests.support.extended_spec import ExtendedSpec
from tests.support.servers import serve

QUESTION = (Message("system", "Answer in JSON."), Message("user", "What is 1 + 1?"))
LEVELS = {"low": ReasoningLevel(request={"depth": 1}), "high": ReasoningLevel(request={"depth": 9})}


class EchoModel:
    """Repeats the question."""

    def __init__(self, target: ModelTarget) -> None:
        self.name = target.name
        self.target = target

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        return Completion(text=messages[-1].content, finish_reason="stop")

    async def close(self) -> None:
        pass


class HashedEchoModel(EchoModel):
    """An echo with properties that are known once it is open."""

    properties = ModelProperties(
        display="Echo",
        levels=LEVELS,
        settings=RequestSettings(temperature=0.0, max_tokens=7, request={"base": True}),
        identity={"model_sha256": "abc"},
    )


def hosted(**fields: Any) -> ProviderPlugin:
    """Return a provider with a server, a key, levels, a named model and a price."""
    named = NamedModel(
        name="acme-large", display="Acme Large", route="acme/large", levels=LEVELS, seed=3
    )
    price = Price(route="acme/large", input=1.5, output=6.0, date="2030-01-01", source="list")
    defaults: dict[str, Any] = {
        "name": "acme",
        "open_model": EchoModel,
        "key_variables": ("ACME_API_KEY", "ACME_TOKEN"),
        "levels": LEVELS,
        "rules": (
            Rule(match="acme/*", request={"tier": "flex"}),
            Rule(match="acme/cold-*", temperature=False),
            Rule(match="acme/warm-*", at=("reasoning",), temperature=False),
        ),
        "models": (named,),
        "prices": (price,),
    }
    return ProviderPlugin(**(defaults | fields))


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A function that makes provider objects appear as plugins."""

    def install_plugins(*plugins: ProviderPlugin) -> None:
        entries = [(plugin.name, plugin) for plugin in plugins]
        monkeypatch.setattr(registry, "load_plugins", lambda group, type_: entries)
        registry.plugin_providers.cache_clear()

    yield install_plugins
    monkeypatch.undo()
    registry.plugin_providers.cache_clear()


def ask(model: Model, settings: RequestSettings) -> Completion:
    return asyncio.run(model.answer(QUESTION, settings))


def test_a_minimal_plugin_in_this_process_answers(install: Callable[..., None]) -> None:
    install(ProviderPlugin(name="echo", open_model=EchoModel, in_process=True))
    opened = open_model("echo/any/name")
    assert ask(opened.model, opened.description.settings).text == "What is 1 + 1?"
    description = describe_model("echo/any/name")
    assert description == opened.description
    assert (description.display, description.level) == ("any/name", "default")
    assert (description.route, description.identity) == (None, {})
    assert missing_key(description) == ""
    assert description.provider.takes_prompts
    with pytest.raises(BadInput, match="omit --batch"):
        open_batch("echo/x")
    with pytest.raises(BadInput, match="no reasoning level 'high'; possible: default"):
        open_model("echo/x", "high")


def test_properties_of_an_open_model_become_its_description(install: Callable[..., None]) -> None:
    install(ProviderPlugin(name="echo", open_model=HashedEchoModel, in_process=True))
    description = open_model("echo/x", "high").description
    assert (description.display, description.level) == ("Echo", "high")
    assert description.settings.request == {"base": True, "depth": 9}
    assert (description.settings.temperature, description.settings.max_tokens) == (0.0, 7)
    assert description.identity == {"model_sha256": "abc"}
    with pytest.raises(BadInput, match="several reasoning levels: give --reasoning low, high"):
        open_model("echo/x")


def test_a_model_in_this_process_is_loaded_once(install: Callable[..., None]) -> None:
    loaded: list[str] = []

    class Slow(HashedEchoModel):
        def __init__(self, target: ModelTarget) -> None:
            super().__init__(target)
            loaded.append(target.served_name)

    install(ProviderPlugin(name="echo", open_model=Slow, in_process=True, levels=LEVELS))
    with pytest.raises(BadInput, match="no reasoning level 'odd'"):
        describe_model("echo/x", "odd")
    assert loaded == []
    description = describe_model("echo/x", "low")
    opened = open_model("echo/x", "high")
    assert (loaded, opened.description.identity) == (["x"], description.identity)
    del opened, description
    gc.collect()
    describe_model("echo/x", "low")
    assert loaded == ["x", "x"]


def test_a_hosted_plugin_gets_key_server_and_name(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(hosted())
    with pytest.raises(BadInput, match="acme/large needs a key: set ACME_API_KEY or ACME_TOKEN"):
        open_model("acme/large")
    assert missing_key(describe_model("acme/large")) == "ACME_API_KEY or ACME_TOKEN"
    monkeypatch.setenv("ACME_TOKEN", " secret ")
    model: Any = open_model("acme/large", "high", Server("http://127.0.0.1:1/v1")).model
    assert model.target == ModelTarget(
        "acme/large", "large", key="secret", base_url="http://127.0.0.1:1/v1"
    )
    description = describe_model("acme/large", "high")
    assert missing_key(description) == ""
    assert description.route == "acme/large"
    assert description.settings.request == {"tier": "flex", "depth": 9}
    with pytest.raises(BadInput, match="--api responses: acme has chat only"):
        describe_model("acme/large", None, Server(None, "responses"))


def test_a_plugin_whose_requests_cannot_be_stopped_gets_no_preview(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sent: list[str] = []

    class Paid(EchoModel):
        async def answer(
            self, messages: Sequence[Message], settings: RequestSettings
        ) -> Completion:
            sent.append(messages[-1].content)
            return await super().answer(messages, settings)

    monkeypatch.setenv("ACME_TOKEN", "secret")
    install(hosted(open_model=Paid))
    spec = RunSpec("acme/any", dataset="v1", limit=1, out=tmp_path / "run")
    assert (plan(spec).request, sent) == (None, [])
    assert run(replace(spec, on_progress=lambda now: None)).answered == len(sent) == 9
    assert not (tmp_path / "run" / REQUESTS).exists()
    for changes in ({"params": {"a": 1}}, {"headers": {"a": "b"}}):
        with pytest.raises(BadInput, match="without `inspects_requests`: omit --"):
            plan(replace(spec, **changes))
    with pytest.raises(BadInput, match="without `inspects_requests`: omit --top-p"):
        plan(ExtendedSpec("acme/any", limit=1, out=tmp_path / "other", top_p=0.5))


def test_a_plugin_without_levels_rejects_reasoning(install: Callable[..., None]) -> None:
    install(hosted(levels={}))
    assert describe_model("acme/large").level == "default"
    with pytest.raises(BadInput, match="acme/large has no reasoning levels: omit --reasoning"):
        describe_model("acme/large", "low")


def test_named_models_and_prices_of_a_plugin_are_used_after_the_users_own(
    install: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    install(hosted())
    description = describe_model("acme-large", "low")
    assert (description.display, description.route) == ("Acme Large", "acme/large")
    assert (description.settings.seed, description.settings.structured) == (3, True)
    assert list(named_models())[-1] == "acme-large"
    with pytest.raises(BadInput, match=r"unknown model 'acme-larg': did you mean acme-large\?"):
        describe_model("acme-larg")
    with pytest.raises(BadInput, match=r"did you mean acme/x\?"):
        describe_model("acmee/x")
    price = find_price("acme/large")
    assert price is not None
    assert (price.input, price.output, price.date, price.own) == (1.5, 6.0, "2030-01-01", False)
    assert find_price("nobody/large") is None
    row = '[[price]]\nroute = "acme/large"\ninput = 2\noutput = 3\n'
    (tmp_path / "numbench-catalogue.toml").write_text(row)
    own = find_price("acme/large")
    assert own is not None
    assert (own.input, own.own) == (2.0, True)


def test_a_plugin_may_have_a_batch_api(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_jobs(target: ModelTarget) -> BatchService:
        gemini = find_provider("gemini")
        assert gemini is not None and gemini.open_batch is not None
        return gemini.open_batch(target)

    async def find(url: str) -> str | None:
        service = open_batch("acme/large", "low", Server(url))
        try:
            return await service.find(planned("key"))
        finally:
            await service.close()

    install(hosted(open_batch=open_jobs, batch_discount=0.25))
    assert describe_model("acme/large").provider.batch_discount == 0.25
    with serve(GeminiJobs()) as server:
        assert asyncio.run(find(server.url)) is None
        assert len(server.received) == 1
    install(hosted())
    with pytest.raises(BadInput, match=r"acme has no batch API \(openai, gemini and anthropic"):
        open_batch("acme/large", "low", Server("http://127.0.0.1:1"))


def test_a_name_that_exists_already_is_rejected(install: Callable[..., None]) -> None:
    install(hosted(name="openai", models=()))
    with pytest.raises(BadInput, match=r"plugin provider 'openai' .*exists already; rename it"):
        all_providers()
    same = NamedModel(name="gpt-5", display="x", route="acme/x", levels=LEVELS)
    install(hosted(models=(same,)))
    with pytest.raises(BadInput, match="'acme' names a model 'gpt-5', which exists already"):
        named_models()
    assert describe_model("gpt-5", "low").route == "openai/gpt-5"
    for name in ("Acme", ""):
        with pytest.raises(ValueError, match=f"provider name '{name}'"):
            hosted(name=name)
