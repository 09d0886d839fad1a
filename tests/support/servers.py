"""A scripted server on the loopback interface that speaks OpenAI, Gemini and Anthropic."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, Literal

from aiohttp import web

Reply = web.StreamResponse
Script = Callable[["ReceivedRequest"], Awaitable[Reply] | Reply]

FOR_EVER = 3600.0
"""Seconds that a server sleeps where nobody is to wait for it; a test that does is ended."""


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as the server saw it. `number` counts the requests for the same prompt."""

    prompt: str
    number: int
    body: dict[str, Any]
    headers: dict[str, str]
    path: str
    request: web.Request


@dataclass
class Server:
    """A running server: where it is, its list of models, and all other requests it received."""

    url: str
    models: object = None
    received: list[ReceivedRequest] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    @property
    def counts(self) -> Counter[str]:
        """Requests per prompt."""
        return Counter(received.prompt for received in self.received)


@contextmanager
def serve(script: Script) -> Iterator[Server]:
    """A server in a thread of its own that answers every request by `script`."""
    loop = asyncio.new_event_loop()
    server = Server("")

    async def handle(request: web.Request) -> Reply:
        if request.method == "GET" and request.path.endswith("/models"):
            return web.json_response(server.models)
        holds_json = request.can_read_body and request.content_type == "application/json"
        body = await request.json() if holds_json else {}
        prompt = _prompt(body)
        headers = {key.lower(): value for key, value in request.headers.items()}
        number = server.counts[prompt] if len(server.received) < 2000 else 0
        received = ReceivedRequest(prompt, number, body, headers, request.path, request)
        server.received.append(received)
        server.in_flight += 1
        server.most_in_flight = max(server.most_in_flight, server.in_flight)
        try:
            reply = script(received)
            return await reply if isawaitable(reply) else reply
        finally:
            server.in_flight -= 1

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=0)
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}"
        return runner

    async def stop(runner: web.AppRunner) -> None:
        await runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    runner = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(stop(runner), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def chat(
    text: str = '{"answer": 1}',
    *,
    usage: dict[str, Any] | None = None,
    finish: str | None = "stop",
    message: dict[str, Any] | None = None,
    **more: Any,
) -> Reply:
    """A good Chat Completions response."""
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": text} | (message or {}),
    }
    body = {"id": "chat-1", "object": "chat.completion", "model": "served", "choices": [choice]}
    return web.json_response(body | ({"usage": usage} if usage else {}) | more)


def responses(
    text: str = '{"answer": 1}',
    *,
    usage: dict[str, Any] | None = None,
    status: str | None = "completed",
    thoughts: list[str] | None = None,
    **more: Any,
) -> Reply:
    """A good Responses response."""
    message = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }
    output: list[dict[str, Any]] = [message]
    if thoughts is not None:
        summary = [{"type": "summary_text", "text": thought} for thought in thoughts]
        output.insert(0, {"type": "reasoning", "id": "rs-1", "summary": summary})
    body = {"id": "resp-1", "object": "response", "model": "served", "error": None}
    body |= {"output": output, "incomplete_details": None}
    body |= {"status": status} if status else {}
    return web.json_response(body | ({"usage": usage} if usage else {}) | more)


def gemini(
    text: str = '{"answer": 1}',
    *,
    usage: dict[str, Any] | None = None,
    finish: str = "STOP",
    thought: str | None = None,
) -> Reply:
    """A good generateContent response."""
    parts: list[dict[str, Any]] = [{"text": thought, "thought": True}] if thought else []
    parts.append({"text": text})
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish}
    body: dict[str, Any] = {"candidates": [candidate], "modelVersion": "served"}
    return web.json_response(body | ({"usageMetadata": usage} if usage else {}))


def anthropic(
    text: str = '{"answer": 1}',
    *,
    usage: dict[str, Any] | None = None,
    stop: str = "end_turn",
    thought: str | None = None,
    **more: Any,
) -> Reply:
    """A good Messages response."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if thought is not None:
        blocks.insert(0, {"type": "thinking", "thinking": thought, "signature": "c2ln"})
    body = {"id": "msg-1", "type": "message", "role": "assistant", "model": "served"}
    body |= {"content": blocks, "stop_reason": stop, "stop_sequence": None}
    return web.json_response(body | ({"usage": usage} if usage else {}) | more)


def anthropic_error(
    status: int, kind: str, message: str = "scripted", headers: dict[str, str] | None = None
) -> Reply:
    """An error in Anthropic's form."""
    return web.json_response(anthropic_error_body(kind, message), status=status, headers=headers)


def anthropic_error_body(kind: str, message: str = "scripted", **fields: Any) -> dict[str, Any]:
    """The body of an error in Anthropic's form."""
    error = {"type": kind, "message": message} | fields
    return {"type": "error", "error": error, "request_id": "req-1"}


def api_of(received: ReceivedRequest) -> Literal["chat", "responses", "gemini", "anthropic"]:
    """The API that a request for an answer is in."""
    if received.path.endswith("/v1/messages"):
        return "anthropic"
    if "contents" in received.body:
        return "gemini"
    return "responses" if "input" in received.body else "chat"


def plain(received: ReceivedRequest, text: str = '{"answer": 1}') -> Reply:
    """A good response in the API of the request."""
    replies = {"chat": chat, "responses": responses, "gemini": gemini, "anthropic": anthropic}
    return replies[api_of(received)](text)


def is_streamed(received: ReceivedRequest) -> bool:
    """Whether a request asks for a stream."""
    return received.body.get("stream") is True or "streamGenerateContent" in received.path


def events(reply: Reply, cuts: Callable[[str], list[str]] = list) -> list[bytes]:
    """The server-sent events that are equivalent to a good response, its texts cut by `cuts`."""
    assert isinstance(reply, web.Response) and isinstance(reply.body, bytes)
    body = json.loads(reply.body)
    if "candidates" in body:
        return [event(chunk) for chunk in _gemini_chunks(body, cuts)]
    if "stop_reason" in body:
        return [named_event(each) for each in _message_events(body, cuts)]
    if "output" in body:
        last = body["output"][-1]
        if last["type"] == "message":
            pieces = cuts(last["content"][0]["text"])
            deltas = [{"type": "response.output_text.delta", "delta": piece} for piece in pieces]
        else:
            deltas = [{"type": "response.output_item.done", "item": i} for i in body["output"]]
        end = {"type": f"response.{body.get('status', 'completed')}", "response": body}
        return [event(each) for each in (*deltas, end)]
    return [*(event(chunk) for chunk in _chat_chunks(body, cuts)), b"data: [DONE]\n\n"]


async def send_events(received: ReceivedRequest, events: list[bytes]) -> Reply:
    """Send a stream of events."""
    reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await reply.prepare(received.request)
    for event in events:
        await reply.write(event)
    return reply


def event(body: dict[str, Any]) -> bytes:
    return b": a comment\n\ndata: " + json.dumps(body).encode() + b"\n\n"


def named_event(body: dict[str, Any]) -> bytes:
    return f"event: {body['type']}\ndata: {json.dumps(body)}\n\n".encode()


def _message_events(
    body: dict[str, Any], cuts: Callable[[str], list[str]]
) -> Iterator[dict[str, Any]]:
    usage = body.pop("usage", None)
    inputs = {key: value for key, value in (usage or {}).items() if "input" in key}
    first = {"usage": inputs | {"output_tokens": 1}} if usage else {}
    unknown = {"content": [], "stop_reason": None}
    yield {"type": "message_start", "message": body | unknown | first}
    yield {"type": "ping"}
    for index, block in enumerate(body["content"]):
        key = {"text": "text", "thinking": "thinking", "tool_use": "input"}[block["type"]]
        empty = block | {key: {} if key == "input" else ""}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for piece in cuts(json.dumps(block[key]) if key == "input" else block[key]):
            delta = {"type": f"{key}_delta", key: piece}
            if key == "input":
                delta = {"type": "input_json_delta", "partial_json": piece}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        if "signature" in block:
            delta = {"type": "signature_delta", "signature": block["signature"]}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {key: value for key, value in body.items() if key.startswith("stop_")}
    last = {"usage": usage} if usage else {}
    yield {"type": "message_delta", "delta": delta} | last
    yield {"type": "message_stop"}


def _chat_chunks(
    body: dict[str, Any], cuts: Callable[[str], list[str]]
) -> Iterator[dict[str, Any]]:
    choice, usage = body["choices"][0], body.pop("usage", None)
    head = {key: value for key, value in body.items() if key != "choices"}
    message = dict(choice["message"])
    deltas = [{"role": message.pop("role", "assistant")}]
    for index, call in enumerate(message.pop("tool_calls", ())):
        function = call.get("function", {})
        start = {"function": function | {"arguments": ""}} if function else {}
        deltas += [{"tool_calls": [call | {"index": index} | start]}]
        for piece in cuts(function.get("arguments", "")):
            deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]}]
    for key, value in message.items():
        pieces = cuts(value) if isinstance(value, str) else [value]
        deltas += [{key: piece} for piece in pieces]
    for delta in deltas:
        yield head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield head | {"choices": [last]}
    if usage is not None:
        yield head | {"choices": [], "usage": usage}


def _gemini_chunks(
    body: dict[str, Any], cuts: Callable[[str], list[str]]
) -> Iterator[dict[str, Any]]:
    candidate, usage = body["candidates"][0], body.get("usageMetadata")
    for part in candidate["content"].get("parts", []):
        pieces = [{"text": piece} for piece in cuts(part["text"])] if "text" in part else [{}]
        for piece in pieces:
            content = {"role": "model", "parts": [part | piece]}
            chunk = {"candidates": [{"content": content, "index": 0}]}
            yield chunk | ({"usageMetadata": {"promptTokenCount": 1}} if usage else {})
    yield body | {"candidates": [{"content": {}, "finishReason": candidate["finishReason"]}]}


def error(
    status: int, message: str = "scripted", *, headers: dict[str, str] | None = None, **fields: Any
) -> Reply:
    """An error in the form of OpenAI and Google, which the other adapters read too."""
    body = {"error": {"message": message, "code": status} | fields}
    return web.json_response(body, status=status, headers=headers)


def google_quota(quota_id: str, delay: str) -> Reply:
    """Google's rejection because of a quota, whatever its period, with the delay that it states."""
    details = [{"violations": [{"quotaId": quota_id}]}, {"retryDelay": delay}]
    message = "You exceeded your current quota, please check your plan and billing details."
    return error(429, message, details=details)


async def torn(received: ReceivedRequest) -> Reply:
    """Promise a body, send half of it, drop the connection."""
    reply = web.StreamResponse(headers={"Content-Length": "1000"})
    await reply.prepare(received.request)
    await reply.write(json.dumps({"choices": []}).encode()[:6])
    assert received.request.transport is not None
    received.request.transport.abort()
    return reply


async def garbage(received: ReceivedRequest) -> Reply:
    """A body that is not JSON, under a header that says so."""
    return web.Response(body=b'{"choices": [{"mess', content_type="application/json")


def _prompt(body: dict[str, Any]) -> str:
    """The question of a request: its last text of a user, empty where it holds none."""
    for key in ("messages", "input", "contents"):
        for message in reversed(body.get(key, ())):
            content = message.get("content") or message.get("parts", [{}])[0].get("text")
            if message.get("role") == "user" and isinstance(content, str):
                return content
    return ""
