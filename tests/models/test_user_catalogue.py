"""The user's catalogue: models and prices of their own, and what is said about mistakes."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from numbench.errors import BadInput
from numbench.models import Server, describe_model, open_model
from numbench.models.catalogue import named_models
from numbench.models.prices import find_price
from numbench.models.providers import all_providers
from numbench.records import Completion
from numbench.runner.estimates import published_tokens
from numbench.runner.planning import plan
from numbench.runner.spec import RunSpec
from numbench.runner.suite import paper_suite
from tests.models.adapter_calls import MESSAGES
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.servers import serve

MODEL = Path(__file__).with_name("own_model.toml").read_text()
PRICE = Path(__file__).with_name("own_price.toml").read_text()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NUMBENCH_CATALOGUE", raising=False)


def write(text: str, name: str = "numbench-catalogue.toml") -> None:
    Path(name).write_text(text)


def test_the_file_adds_models_and_prices() -> None:
    write(MODEL + PRICE)
    for url in (None, "https://llm.example.com/v1"):
        description = describe_model("mine", "fast-2", Server(url))
        assert description.identity["route"] == "openai/my-model"
        assert description.settings.request == {"reasoning_effort": "minimal"}
        assert description.settings.temperature is None
    assert "mine" in named_models()
    price = find_price("openai/my-model")
    assert price is not None and price.own and (price.input, price.output) == (0.5, 2.0)
    assert price.record == {"source": "the user's catalogue"}
    with pytest.raises(BadInput, match="mine has no reasoning level 'high'; possible: low, fast-2"):
        describe_model("mine", "high")


def test_the_file_replaces_models_but_not_those_of_the_paper_in_its_suite() -> None:
    write(MODEL.replace('"mine"', '"gpt-5"'))
    assert describe_model("gpt-5", "low").identity["route"] == "openai/my-model"
    assert published_tokens("gpt-5", "minimal") == {}
    with pytest.raises(BadInput, match=r"numbench-catalogue.toml\) replaces gpt-5"):
        list(paper_suite({}, {"dataset": "short"}))


def test_the_variable_takes_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    write(PRICE)
    write(PRICE.replace("0.5", "3.5"), "other.toml")
    monkeypatch.setenv("NUMBENCH_CATALOGUE", "other.toml")
    price = find_price("openai/my-model")
    assert price is not None and price.input == 3.5
    assert plan(RunSpec("openai/my-model", dataset="short", limit=1)).prepared.price == price


PROVIDER = Path(__file__).with_name("own_provider.toml").read_text()


def test_a_table_is_a_provider_of_chat_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "sk-acme-0123456789")

    async def ask(name: str, level: str | None) -> Completion:
        opened = open_model(name, level, Server(stream=False))
        completion = await opened.model.answer(MESSAGES, opened.description.settings)
        await opened.model.close()
        return completion

    with serve(servers.plain) as server:
        write(PROVIDER.replace("URL", server.url))
        for name, level in (("acme/new", "high"), ("acme/old-1", None)):
            assert asyncio.run(ask(name, level)).text == '{"answer": 1}'
        new, old = (each.body for each in server.received)
        assert server.received[0].path == "/v1/chat/completions"
        assert server.received[0].headers["authorization"] == "Bearer sk-acme-0123456789"
    assert (new["reasoning"], new["max_tokens"], new["temperature"]) == ({"effort": "high"}, 99, 0)
    assert old.keys() == {"model", "messages"}
    with pytest.raises(BadInput, match="no reasoning level 'max'; possible: low, high"):
        describe_model("acme/new", "max")
    (acme,) = [each for each in all_providers() if "acme/NAME" in each.routes]
    assert acme.batch_discount == 0.0
    for text, message in (
        (PROVIDER.replace("URL", "ftp://x"), "url 'ftp://x/v1': use https://HOST/PATH"),
        (PROVIDER.replace("URL", "http://llm.example.com"), "use https://HOST/PATH"),
        (PROVIDER.replace('"acme"', '"openai"'), "a provider 'openai' exists already; rename it"),
        (PROVIDER.replace('"acme"', '"Acme"'), "Expected `str` matching regex"),
        (PROVIDER.replace("99", "0"), r"Expected `int` >= 1, in `rule\[1\].max_tokens`"),
    ):
        write(text.replace("URL", "https://llm.example.com"))
        with pytest.raises(BadInput, match=f"^numbench-catalogue.toml: .*{message}") as caught:
            describe_model("acme/new")
        assert "\n" not in str(caught.value)


@each_row(__file__, "wrong_catalogues")
def test_a_mistake_is_reported_with_file_and_field(text: str, message: str) -> None:
    write(text)
    with pytest.raises(BadInput, match=message) as caught:
        describe_model("mine", "low")
    assert str(caught.value).startswith("numbench-catalogue.toml")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBENCH_CATALOGUE", "gone.toml")
    with pytest.raises(BadInput, match=r"gone\.toml: No such file.*correct NUMB"):
        find_price("openai/my-model")


def test_the_temperature_of_a_level_is_the_default_of_the_option(tmp_path: Path) -> None:
    write(MODEL.replace("false", "true") + "warm = { request = { temperature = 0.5 } }\n")
    spec = RunSpec(
        "mine",
        reasoning="warm",
        dataset="short",
        limit=1,
        samples=2,
        base_url="http://127.0.0.1:1/v1",
    )
    for given, sent in ((None, 0.5), (0.7, 0.7)):
        planned = plan(replace(spec, temperature=given))
        assert planned.prepared.settings.temperature == sent
        assert planned.request is not None and planned.request["temperature"] == sent
