"""How requests leave: proxies, passwords and headers of the environment, and no threads."""

from __future__ import annotations

import asyncio
import base64
import gzip
import resource
import socket
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from numbench.models import Server, http_client, open_model
from numbench.models.base import Message, RequestSettings
from numbench.models.facts import HostedProvider
from numbench.models.failures import ProviderError
from numbench.models.hosted_model import HostedModel
from numbench.models.http_client import MAX_RESPONSE_BYTES, HttpClient, Reply
from numbench.models.providers import ModelTarget
from tests.models.adapter_calls import ANTHROPIC_MODEL, CHAT_MODEL, GEMINI_MODEL, KEY, call_adapter
from tests.support import servers
from tests.support.servers import ReceivedRequest, serve

QUESTION = [Message("user", "1 + 1?")]


async def fine(received: ReceivedRequest) -> servers.Reply:
    return servers.plain(received)


async def post(url: str) -> Reply:
    client = HttpClient()
    try:
        return await client.request("POST", url, {"Authorization": f"Bearer {KEY}"}, b"{}")
    finally:
        await client.close()


def test_the_proxy_of_the_environment_is_used_with_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(fine) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//user:pa%40ss@"))
        monkeypatch.setenv("no_proxy", "direct.invalid")
        response = asyncio.run(post("http://model.invalid/v1/chat/completions"))
        assert response.status == 200
        (received,) = proxy.received
        assert received.headers["host"] == "model.invalid"
        assert received.headers["authorization"] == f"Bearer {KEY}"
        password = base64.b64encode(b"user:pa@ss").decode()
        assert received.headers["proxy-authorization"] == f"Basic {password}"
        with pytest.raises(ProviderError):
            asyncio.run(post("http://direct.invalid/v1/chat/completions"))
        assert len(proxy.received) == 1


def test_a_password_in_netrc_does_not_replace_the_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with serve(fine) as server:
        response = asyncio.run(post(server.url))
        assert response.status == 200
        assert server.received[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_request_takes_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under load, a change of threads takes longer than the rest of a request."""
    calls: list[Any] = []
    original = asyncio.BaseEventLoop.run_in_executor

    def count(self: Any, executor: Any, function: Any, *arguments: Any) -> Any:
        calls.append(function)
        return original(self, executor, function, *arguments)

    monkeypatch.setattr(asyncio.BaseEventLoop, "run_in_executor", count)
    with serve(fine) as server:
        model = open_model(CHAT_MODEL, None, Server(server.url)).model

        async def ask() -> None:
            for _ in range(3):
                answer = await model.answer(QUESTION, RequestSettings())
                assert answer.error is None
            await model.close()

        asyncio.run(ask())
        assert len(server.received) == 3
    assert calls == []


def test_headers_of_the_user_replace_the_providers_and_the_environments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")

    def sent(target: ModelTarget, formats: Any, **fields: Any) -> dict[str, list[str]]:
        """Return the values of each header of a request to a provider's own server."""

        async def ask(url: str) -> None:
            row = HostedProvider(name="x", url=url, formats=formats, **fields)
            model = HostedModel(row, target)
            assert (await model.answer(QUESTION, RequestSettings(max_tokens=9))).error is None
            await model.close()

        with serve(fine) as server:
            asyncio.run(ask(server.url))
            headers = server.received[0].request.headers
            return {name.lower(): headers.getall(name) for name in headers}

    variables = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
    target = ModelTarget("x/y", "y", KEY, headers={"openai-project": "mine"}, stream=False)
    headers = sent(target, ("chat",), header_variables=variables)
    assert headers["authorization"] == [f"Bearer {KEY}"]
    assert (headers["openai-organization"], headers["openai-project"]) == (["org-1"], ["mine"])
    for wire, name in (("gemini", "X-Goog-Api-Key"), ("messages", "X-API-Key")):
        target = ModelTarget("x/y", "y", KEY, headers={name: "own-key"}, stream=False)
        assert sent(target, (wire,))[name.lower()] == ["own-key"]


def test_connections_are_kept_alive_by_the_operating_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: list[tuple[int, int]] = []
    create = http_client._create_socket

    def recorded(address: Any) -> socket.socket:
        created = create(address)
        is_on = created.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        options.append((is_on, created.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)))
        return created

    monkeypatch.setattr(http_client, "_create_socket", recorded)
    call_adapter(fine)
    assert options == [(1, 60)]


@pytest.mark.parametrize("model", [CHAT_MODEL, GEMINI_MODEL, ANTHROPIC_MODEL])
def test_a_response_that_grows_without_end_takes_little_memory(model: str) -> None:
    """2 GiB of blanks in 2 MB of gzip."""
    bomb = gzip.compress(b" " * 2**28) * 8

    async def script(received: ReceivedRequest) -> servers.Reply:
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        return web.Response(body=bomb, headers=headers)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    completion, _ = call_adapter(script, model, timeout=100.0)
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert completion.error is not None
    assert "the response is larger than 64 MiB" in completion.error.message
    assert used < 5 * MAX_RESPONSE_BYTES
