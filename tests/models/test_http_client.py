"""How requests leave: proxies, passwords and headers of the environment, and no threads."""

import asyncio
import base64
import gzip
import re
import resource
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from numbench.core.secrets import known_secrets, mask_secrets
from numbench.models import Server, http_client, open_model
from numbench.models.base import Message, RequestSettings
from numbench.models.facts import HostedProvider
from numbench.models.failures import ProviderError
from numbench.models.hosted_model import HostedModel
from numbench.models.http_client import MAX_RESPONSE_BYTES, HttpClient, Reply
from numbench.models.providers import ModelTarget
from numbench.records import Completion
from tests.models.adapter_calls import ANTHROPIC, CHAT, GEMINI, KEY, call_adapter
from tests.support import servers
from tests.support.servers import ReceivedRequest, serve

QUESTION = [Message("user", "1 + 1?")]


async def post(url: str, **options: float) -> Reply:
    client, headers = HttpClient(), {"Authorization": f"Bearer {KEY}"}
    try:
        return await client.request("POST", url, headers, b"{}", **options)
    finally:
        await client.close()


def test_the_proxy_of_the_environment_is_used_with_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(servers.plain) as proxy:
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
    with serve(servers.plain) as server:
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
    with serve(servers.plain) as server:
        model = open_model(CHAT, None, Server(server.url)).model

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

        with serve(servers.plain) as server:
            asyncio.run(ask(server.url))
            headers = server.received[0].request.headers
            return {name.lower(): headers.getall(name) for name in headers}

    variables = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
    target = ModelTarget("x/y", "y", KEY, headers={"openai-project": "mine"}, stream=False)
    headers = sent(target, ("chat",), header_variables=variables)
    assert headers["authorization"] == [f"Bearer {KEY}"]
    assert (headers["openai-organization"], headers["openai-project"]) == (["org-1"], ["mine"])
    for wire, name in (
        *(("chat", "authorization"), ("responses", "Authorization")),
        *(("gemini", "X-Goog-Api-Key"), ("messages", "X-API-Key")),
    ):
        target = ModelTarget("x/y", "y", KEY, headers={name: "own-key"}, stream=False)
        assert sent(target, (wire,))[name.lower()] == ["own-key"]


def test_connections_are_kept_alive_by_the_operating_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: list[int] = []
    keep_alive = http_client._keep_alive

    def recorded(connected: socket.socket) -> None:
        keep_alive(connected)
        options.append(connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
        for name in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT):
            options.append(connected.getsockopt(socket.IPPROTO_TCP, name))

    monkeypatch.setattr(http_client, "_keep_alive", recorded)
    call_adapter(servers.plain)
    assert options == [1, 60, 15, 4]


@contextmanager
def raw_server(
    *replies: bytes, closed: threading.Event | None = None
) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the address of a server that sends each reply to one request, and what it received.

    It closes a connection after an empty reply, and then sets `closed`.
    """
    received: list[bytes] = []
    remaining = list(replies)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while remaining and (line := self.rfile.readline()):
                head = line + b"".join(iter(self.rfile.readline, b"\r\n"))
                received.append(head)
                if length := re.search(rb"(?i)content-length: (\d+)", head):
                    self.rfile.read(int(length[1]))
                reply = remaining.pop(0)
                self.wfile.write(reply)
                if not reply or b"Connection: close" in reply:
                    return

    class Server(socketserver.ThreadingTCPServer):
        def shutdown_request(self, request: Any) -> None:
            super().shutdown_request(request)
            if closed is not None:
                closed.set()

    with Server(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        # Its interval is the time that a shutdown takes.
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", received
        server.shutdown()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKS = b"2\r\nok\r\n0\r\n\r\n"
LENIENT = {
    "a header of 9,000 bytes": OK.replace(b"\r\n\r\n", b"\r\nX: " + b"x" * 9_000 + b"\r\n\r\n"),
    "both kinds of length": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2"
    b"\r\n\r\n" + CHUNKS,
    "no reason": OK.replace(b" OK", b""),
    "no length": b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok",
    "an interim response": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK,
}


@pytest.mark.parametrize("reply", LENIENT.values(), ids=LENIENT)
def test_replies_that_other_clients_read_are_read(reply: bytes) -> None:
    with raw_server(reply) as (address, received):
        assert asyncio.run(post(f"http://{address}")).content == b"ok"
        assert len(received) == 1


PROXIES = {
    "with a scheme": "http://{proxy}",
    "without a scheme": "{proxy}",
    "with a user": "http://user:pass-word-1@{proxy}",
}


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
@pytest.mark.parametrize("form", PROXIES.values(), ids=PROXIES)
def test_forms_of_a_proxy_are_used(
    variable: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raw_server(OK) as (proxy, received):
        monkeypatch.setenv(variable, form.format(proxy=proxy))
        asyncio.run(post("http://model.invalid/v1"))
        assert received[0].startswith(b"POST http://model.invalid/v1 HTTP/1.1")


@pytest.mark.parametrize(
    "exception", ["127.0.0.1", "localhost,127.0.0.0/8", "{server}", "*", " 127.0.0.1 "]
)
def test_servers_in_no_proxy_are_reached_directly(
    exception: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with raw_server(OK) as (address, _):
        monkeypatch.setenv("no_proxy", exception.format(server=address))
        assert asyncio.run(post(f"http://{address}")).content == b"ok"


UNREACHABLE = {
    "http://user:Pa#ss-word@127.0.0.1:3128": "http_proxy is not the URL of a proxy",
    "http://user:Pa/ss-word@127.0.0.1:3128": "http_proxy is not the URL of a proxy",
    "http://127.0.0.1:99999": "http_proxy is not the URL of a proxy",
    "socks4://127.0.0.1:9": "http_proxy is not the URL of a proxy",
    "http://user:Pa%23ss-word@127.0.0.1:9": "cannot connect to the proxy 127.0.0.1:9: Connection",
    "socks5://127.0.0.1:9": "cannot connect to the proxy 127.0.0.1:9: Connection",
    "127.0.0.1:9": "cannot connect to the proxy 127.0.0.1:9: Connection",
}


@pytest.mark.parametrize(("proxy", "message"), UNREACHABLE.items())
def test_a_wrong_proxy_is_named_and_nothing_counts_as_sent(
    proxy: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setenv("CLOUD_SQL_PROXY", "no URL")
    with pytest.raises(ProviderError) as error:
        asyncio.run(post("http://model.invalid/v1"))
    failure = error.value.failure
    assert message in failure.message and "ss-word" not in failure.message
    assert (failure.kind, failure.possibly_billed) == ("run", False)


@pytest.mark.parametrize("status", [b"407 Proxy Authentication Required", b"502 Bad Gateway"])
def test_a_proxy_that_refuses_is_named_without_its_password(
    status: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raw_server(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n") as (proxy, _):
        monkeypatch.setenv("https_proxy", f"http://user:pass-word-1@{proxy}")
        with pytest.raises(ProviderError) as error:
            asyncio.run(post("https://model.invalid/v1"))
    failure = error.value.failure
    assert f"the proxy {proxy} refused: {status.decode()}" in failure.message
    assert (failure.kind, failure.possibly_billed) == ("run", False)
    assert "pass-word-1" not in failure.message


def test_credentials_of_proxies_and_headers_are_known_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", "http://user:pa%40ss-1@proxy.invalid:3128")
    secrets = known_secrets(
        headers=["Basic " + base64.b64encode(b"me:hidden-word-2").decode(), "Basic \xfc"]
    )
    assert mask_secrets("pa@ss-1 pa%40ss-1 hidden-word-2", secrets) == "[key] [key] [key]"


def test_a_stale_path_of_certificates_is_named_where_they_are_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent/ca.pem")
    with raw_server(OK) as (address, _):
        assert asyncio.run(post(f"http://{address}")).content == b"ok"
    with pytest.raises(ProviderError, match=r"SSL_CERT_FILE=/nonexistent/ca.pem: No such file"):
        asyncio.run(post("https://127.0.0.1:9"))


def test_an_idle_connection_that_the_server_closed_is_not_used() -> None:
    first = OK.replace(b"\r\n\r\n", b"\r\nX: Connection: close\r\n\r\n")
    closed = threading.Event()
    with raw_server(first, OK, closed=closed) as (address, received):

        async def ask() -> None:
            client = HttpClient()
            for _ in range(2):
                reply = await client.request("POST", f"http://{address}", {}, b"{}")
                assert reply.content == b"ok"
                await asyncio.to_thread(closed.wait)
            await client.close()

        asyncio.run(ask())
        assert len(received) == 2


def test_only_a_request_that_was_sent_may_be_billed(monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome(url: str, **options: float) -> tuple[str, bool]:
        with pytest.raises(ProviderError) as error:
            asyncio.run(post(url, **options))
        return error.value.failure.kind, error.value.failure.possibly_billed

    with raw_server(b"") as (address, _):
        assert outcome(f"http://{address}") == ("transient", True)
        assert outcome("http://127.0.0.1:9") == ("transient", False)
        assert outcome("http://model.invalid") == ("run", False)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        # There is a connection, but no handshake.
        assert outcome(f"https://{address}", seconds=0.2) == ("transient", False)
        assert outcome(f"http://{address}", seconds=2) == ("transient", True)
    for reply in (b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"):
        with raw_server(reply) as (proxy, _):
            monkeypatch.setenv("https_proxy", proxy)
            assert outcome("https://model.invalid") == ("run", False)


ANSWER = '{"choices": [{"%s": {"content": "42"}, "finish_reason": "stop"}]}'
CUT = {
    "a whole body": ((ANSWER % "message"), "42"),
    "a whole stream": (f"data: {ANSWER % 'delta'}\n\ndata: [DONE]\n\n", "42"),
    "a stream after its answer": (f'data: {ANSWER % "delta"}\n\ndata: {{"usage": {{"prom', "42"),
    "a stream before its end": ('data: {"choices": [{"delta": {"content": "4"}}]}\n\n', ""),
    "a body": ((ANSWER % "message")[:-9], ""),
}


@pytest.mark.parametrize(("sent", "text"), CUT.values(), ids=CUT)
def test_a_whole_answer_in_a_response_that_is_cut_off_is_kept(sent: str, text: str) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"

    async def ask(address: str, timeout: float) -> Completion:
        model = open_model(CHAT, None, Server(f"http://{address}")).model
        completion = await model.answer(QUESTION, RequestSettings(timeout=timeout))
        await model.close()
        return completion

    with raw_server(head + sent.encode()) as (address, _):
        completion = asyncio.run(ask(address, timeout=100))
    assert (completion.text, completion.error is None) == (text, bool(text))
    assert completion.error is None or completion.error.possibly_billed
    if "[DONE]" in sent:
        # A server that has another reply keeps the connection open.
        with raw_server(head + sent.encode(), OK) as (address, _):
            assert asyncio.run(ask(address, timeout=3)).text == text


@cache
def bomb() -> bytes:
    """Return 256 MiB of blanks in 1 MB of gzip."""
    return gzip.compress(b" " * 2**28, 1)


@pytest.mark.parametrize("model", [CHAT, GEMINI, ANTHROPIC])
def test_a_response_that_grows_without_end_takes_little_memory(model: str) -> None:
    async def script(received: ReceivedRequest) -> servers.Reply:
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        return web.Response(body=bomb(), headers=headers)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    completion, _ = call_adapter(script, model, timeout=100.0)
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert completion.error is not None
    assert "the response is larger than 64 MiB" in completion.error.message
    assert used < 5 * MAX_RESPONSE_BYTES
