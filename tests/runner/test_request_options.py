"""Options that shape requests: schema, parameters, headers, providers of OpenRouter."""

from pathlib import Path
from typing import Any

import pytest

import numbench as nb
from numbench.errors import BadInput
from numbench.journal.run_folder import read_run
from numbench.runner.request_options import parse_headers, parse_params
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.runs import MODEL, go, good
from tests.support.servers import ReceivedRequest, Reply, serve

SECRET = "planted-header-0123456789"


@each_row(__file__, "parameters")
def test_parameters_are_nested_json(texts: list[str], params: dict[str, Any] | None) -> None:
    if params is None:
        with pytest.raises(BadInput, match=r"^--param"):
            parse_params(texts)
    else:
        assert parse_params(texts) == params


@each_row(__file__, "merged_parameters")
def test_parameters_are_merged_into_the_body(
    dataset: Path, tmp_path: Path, model: str, api: str, params: dict[str, Any], sent: Any
) -> None:
    out = tmp_path / "run"
    with serve(servers.plain) as server:
        go(server, dataset, out, model=model, api=api, params=params)
        bodies = [each.body for each in server.received]
        with pytest.raises(BadInput, match=r"settings\.params"):
            go(server, dataset, out, model=model, api=api)
    if model == "gemini/x":
        assert {body["generationConfig"]["topK"] for body in bodies} == {3}
        assert {body["generationConfig"]["temperature"] for body in bodies} == {0}
    else:
        assert all(body[name] == value for body in bodies for name, value in sent.items())
    assert read_run(out).info.settings["params"] == params


@each_row(__file__, "wrong_options")
def test_a_plan_and_a_run_refuse_wrong_options_in_the_same_words(
    dataset: Path, tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    common = {"model": MODEL, "dataset": dataset, "out": tmp_path / "run"}
    with serve(good) as server:
        options: dict[str, Any] = common | {"base_url": server.url} | arguments
        with pytest.raises(BadInput, match=message) as refused:
            nb.plan(**options)
        with pytest.raises(BadInput) as also_refused:
            nb.run(**options)
    assert str(refused.value) == str(also_refused.value)
    assert SECRET not in str(refused.value)
    assert not server.received and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        *((name, SECRET) for name in ("gemini/x", "litellm/openai/x", "openrouter/a/b")),
        ("anthropic/claude-opus-5", f"Bearer {SECRET}"),
        (MODEL, f"Bearer {SECRET}"),
        (MODEL, f'Token token="{SECRET}", id=7'),
    ],
)
def test_headers_are_sent_and_their_values_are_nowhere(
    dataset: Path, tmp_path: Path, model: str, sent: str
) -> None:
    """A server may repeat a token without the scheme before it."""

    async def echo(received: ReceivedRequest) -> Reply:
        if received.number == 0 and "minimum" in received.prompt:
            return servers.error(400, f"content_filter {SECRET}")
        return servers.plain(received)

    out = tmp_path / "run"
    with serve(echo) as server:
        go(server, dataset, out, model=model, headers={"X-Tenant": sent})
        assert {each.headers["x-tenant"] for each in server.received} == {sent}
        other = {"X-Tenant": "another-value-0123456789"}
        assert go(server, dataset, out, model=model, headers=other).completed == 0
        with pytest.raises(BadInput, match=r"settings\.headers"):
            go(server, dataset, out, model=model)
    assert read_run(out).info.settings["headers"] == ["X-Tenant"]
    for file in out.iterdir():
        assert SECRET.encode() not in file.read_bytes()


def test_a_header_that_selects_a_version_is_compared_by_its_value(
    dataset: Path, tmp_path: Path
) -> None:
    """Its value is public; two shards that differ in it are not parts of one run."""
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out, headers={"Anthropic-Beta": "a", "X-Tenant": SECRET})
        with pytest.raises(BadInput, match=r"settings\.headers .*Anthropic-Beta=a.*Beta=b"):
            go(server, dataset, out, headers={"Anthropic-Beta": "b", "X-Tenant": SECRET})
    recorded = read_run(out).info.settings["headers"]
    assert recorded == ["Anthropic-Beta=a", "X-Tenant"]


def test_a_parameter_named_like_a_secret_is_in_no_file(dataset: Path, tmp_path: Path) -> None:
    async def echo(received: ReceivedRequest) -> Reply:
        if received.number == 0:
            return servers.error(400, f"content_filter {SECRET}")
        return servers.plain(received)

    out, params = tmp_path / "run", {"search": {"api_key": SECRET}}
    with serve(echo) as server:
        go(server, dataset, out, params=params)
        assert all(each.body["search"] == params["search"] for each in server.received)
        assert go(server, dataset, out, params=params).completed == 0
    assert read_run(out).info.settings["params"] == {"search": {"api_key": "[key]"}}
    for file in out.iterdir():
        assert SECRET.encode() not in file.read_bytes()


def test_a_parameter_without_a_json_form_is_refused() -> None:
    with pytest.raises(BadInput, match="not a JSON value"):
        nb.plan(MODEL, params={"a": object()})


def test_a_malformed_header_is_reported_without_its_value() -> None:
    for texts in ([SECRET], ["A=1", f"a={SECRET}"]):
        with pytest.raises(BadInput) as caught:
            parse_headers(texts)
        assert SECRET not in str(caught.value)
    assert parse_headers(["A=b=c", "D= e "]) == {"A": "b=c", "D": "e"}


@pytest.mark.parametrize(("structured", "is_sent"), [(None, False), (True, True), (False, False)])
def test_the_schema_is_sent_on_request(
    dataset: Path, tmp_path: Path, structured: bool | None, is_sent: bool
) -> None:
    with serve(good) as server:
        go(server, dataset, tmp_path / "run", structured=structured)
        assert {"response_format" in each.body for each in server.received} == {is_sent}
        go(server, dataset, tmp_path / "gpt", model="gpt-5", reasoning="low", structured=structured)
        has_schema = {"response_format" in each.body for each in server.received[10:]}
    assert has_schema == {is_sent}
