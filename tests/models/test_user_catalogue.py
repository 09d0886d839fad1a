"""The user's catalogue: models and prices of their own, and what is said about mistakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from numbench.errors import BadInput
from numbench.models import describe_model
from numbench.models.catalogue import list_models
from numbench.runner.estimates import published_tokens
from numbench.runner.planning import plan
from numbench.runner.prices import find_price
from numbench.runner.spec import RunSpec
from numbench.runner.suite import plan_suite

MODEL = """\
[[model]]
name = "mine"
display = "Mine"
route = "openai/my-model"
temperature = false
[model.levels]
low = { request = { reasoning_effort = "low" } }
fast-2 = { request = { reasoning_effort = "minimal" } }
"""
PRICE = """
[[price]]
route = "openai/my-model"
input = 0.5
output = 2
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("NUMBENCH_CATALOGUE", "NUMBENCH_PRICES"):
        monkeypatch.delenv(variable, raising=False)


def write(text: str, name: str = "numbench-catalogue.toml") -> None:
    Path(name).write_text(text)


def test_the_file_adds_models_and_prices() -> None:
    write(MODEL + PRICE)
    description = describe_model("mine", "fast-2")
    assert description.identity["route"] == "openai/my-model"
    assert description.settings.request == {"reasoning_effort": "minimal"}
    assert description.settings.temperature is None
    assert "mine" in [entry.name for entry in list_models()]
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
        plan_suite(RunSpec("", dataset="short"))


def test_the_variable_takes_precedence_and_older_names_still_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(PRICE.replace("0.5", "1.5"), "numbench-prices.toml")
    assert plan(RunSpec("openai/my-model", dataset="short", limit=1)).price is not None
    write(PRICE.replace("0.5", "2.5"), "old.toml")
    monkeypatch.setenv("NUMBENCH_PRICES", "old.toml")
    price = find_price("openai/my-model")
    assert price is not None and price.input == 2.5
    write(PRICE.replace("0.5", "3.5"), "new.toml")
    monkeypatch.setenv("NUMBENCH_CATALOGUE", "new.toml")
    price = find_price("openai/my-model")
    assert price is not None and price.input == 3.5


def test_two_files_in_the_working_directory_are_an_error() -> None:
    write(PRICE)
    write(PRICE, "numbench-prices.toml")
    with pytest.raises(BadInput, match=r"move its prices to numbench-catalogue\.toml"):
        find_price("openai/my-model")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MODEL + "price = 3\n", r", line 6, model\[0\].levels.*: Expected `object`, got `int`"),
        ("price = 3", r", price: Expected `array`, got `int`"),
        ("[[price]]\nroute = ", r"Invalid value \(at end of document"),
        (MODEL + PRICE.replace("2", '"two"'), r", line 13, price\[0\].output: Expected `float`"),
        (PRICE + PRICE.replace("0.5", "-1"), r", line 9, price\[1\].input: .*-1.0 is not a price"),
        (PRICE.replace("0.5", "nan"), "line 4.*nan is not a price"),
        (PRICE.replace("output", "outputs"), r", line 2, price\[0\]: .*outputs"),
        (MODEL.replace("display", "shown"), r", line 1, model\[0\]: .*(display|shown)"),
        (MODEL.replace("false", '"no"'), r", line 5, model\[0\].temperature: Expected `bool`"),
        (
            MODEL.replace("openai/", "nobody/"),
            r", line 1, model\[0\]: mine: route 'nobody/my-model'",
        ),
        (MODEL.replace('"mine"', '"a/b"'), "name 'a/b': give a name without slashes"),
        (MODEL.replace('"mine"', '"a\\nb"'), "without slashes and control characters"),
        (MODEL.replace("openai/my-model", "openai/"), "route 'openai/': use PROVIDER/NAME"),
        (MODEL.replace("fast-2", "4096-tokens"), "name is that of --reasoning-tokens"),
        (MODEL.replace("low = {", "low = { max_tokens = 0,"), "max_tokens 0: give 1 or more"),
        (MODEL + 'odd = { request = { model = "b" } }\n', "request.model: use the field route"),
        (MODEL + "odd = { request = { messages = [] } }\n", "request.messages: numbench sets it"),
        (
            MODEL.replace("false", "true") + 'odd = { request = { temperature = "1" } }\n',
            r"request.temperature: '1': give a number, 0 or more",
        ),
        (MODEL + "odd = { request = { temperature = 1 } }\n", "temperature = false says that the"),
        (PRICE + PRICE, r", line 3, price\[0\].route: .*two prices for this route"),
        (PRICE.replace("openai/", ""), "route 'my-model': use PROVIDER/NAME"),
        (MODEL + MODEL, "there are two models of this name"),
        (MODEL.replace("fast-2", '"fast 2"'), "level 'fast 2': use a-z"),
        (MODEL.replace("low = {", 'low = { route = "gemini/x",'), "need the same provider"),
        ('path = "x"', "the field 'path' is unknown"),
    ],
)
def test_a_mistake_is_reported_with_file_line_and_field(text: str, message: str) -> None:
    write(text)
    with pytest.raises(BadInput, match=message) as caught:
        find_price("openai/my-model")
    assert str(caught.value).startswith("numbench-catalogue.toml")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBENCH_CATALOGUE", "gone.toml")
    with pytest.raises(BadInput, match=r"gone\.toml: No such file.*correct --catalogue or NUMB"):
        find_price("openai/my-model")


def test_the_temperature_of_a_level_is_the_default_of_the_option(tmp_path: Path) -> None:
    write(MODEL.replace("false", "true") + "warm = { request = { temperature = 0.5 } }\n")
    spec = RunSpec("mine", "warm", "short", limit=1, samples=2, base_url="http://127.0.0.1:1/v1")
    for given, sent in ((None, 0.5), (0.7, 0.7)):
        planned = plan(replace(spec, temperature=given))
        assert planned.settings.temperature == sent
        assert planned.request is not None and planned.request["temperature"] == sent
