"""How requests leave: proxies, passwords and headers of the environment, and no threads."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from numbench.models.aiohttp_transport import AiohttpTransport
from numbench.models.base import Message, RequestSettings
from numbench.models.openai_api import OpenAIModel, chat_format, create_client
from tests import servers
from tests.servers import ReceivedRequest, Reply, serve

KEY = "sk-planted-0123456789"


async def fine(received: ReceivedRequest) -> Reply:
    return servers.chat()


async def post(url: str, count: int = 1) -> list[httpx.Response]:
    transport = AiohttpTransport()
    try:
        request = httpx.Request("POST", url, headers={"Authorization": f"Bearer {KEY}"}, json={})
        return [await transport.handle_async_request(request) for _ in range(count)]
    finally:
        await transport.aclose()


def test_the_proxy_of_the_environment_is_used_with_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(fine) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//user:pa%40ss@"))
        monkeypatch.setenv("no_proxy", "direct.invalid")
        (response,) = asyncio.run(post("http://model.invalid/v1/chat/completions"))
        assert response.status_code == 200
        (received,) = proxy.received
        assert received.headers["host"] == "model.invalid"
        assert received.headers["authorization"] == f"Bearer {KEY}"
        password = base64.b64encode(b"user:pa@ss").decode()
        assert received.headers["proxy-authorization"] == f"Basic {password}"
        with pytest.raises(httpx.ConnectError):
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
        (response,) = asyncio.run(post(server.url))
        assert response.status_code == 200
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
        model = OpenAIModel(
            "x", "x", chat_format("max_tokens"), key=KEY, base_url=server.url, streams=False
        )

        async def ask() -> None:
            for _ in range(3):
                answer = await model.answer([Message("user", "1 + 1?")], RequestSettings())
                assert answer.error is None
            await model.close()

        asyncio.run(ask())
        assert len(server.received) == 3
    assert calls == []


def test_requests_have_the_headers_of_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among them are the user's organization and project."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")

    async def ask(url: str) -> None:
        model = OpenAIModel("x", "x", chat_format("m"), key=KEY, base_url=url, streams=False)
        await model.answer([Message("user", "1 + 1?")], RequestSettings())
        await model.close()
        client = create_client(KEY, url)
        await client.chat.completions.create(
            model="x", messages=[{"role": "user", "content": "1 + 1?"}]
        )
        await client.close()

    with serve(fine) as server:
        asyncio.run(ask(server.url))
        ours, sdk = (received.headers for received in server.received)
        assert server.received[0].body == server.received[1].body
    of_one_request = {"content-length", "x-stainless-retry-count", "x-stainless-read-timeout"}
    assert {k: v for k, v in sdk.items() if k not in of_one_request} == {
        k: v for k, v in ours.items() if k not in of_one_request
    }
    assert (ours["openai-organization"], ours["openai-project"]) == ("org-1", "proj-1")


@pytest.mark.parametrize(
    "body",
    [b'{"error": {"message": "no", "code": "c"}}', b'{"detail": "no"}', b"plain", b"", b"[1]"],
)
def test_errors_are_those_of_the_sdk(body: bytes) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return servers.web.Response(status=422, body=body, content_type="application/json")

    async def errors(url: str) -> list[openai.APIStatusError]:
        client = create_client(KEY, url)
        model = OpenAIModel("x", "x", chat_format("m"), key=KEY, base_url=url, streams=False)
        raised = []
        for call in (
            model._post_once({}),
            client.post("/chat/completions", body={}, cast_to=httpx.Response),
        ):
            with pytest.raises(openai.APIStatusError) as caught:
                await call
            raised.append(caught.value)
        await model.close()
        await client.close()
        return raised

    with serve(script) as server:
        ours, sdk = asyncio.run(errors(server.url))
    assert (ours.status_code, ours.body, ours.message) == (422, sdk.body, sdk.message)
