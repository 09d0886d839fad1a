"""Replies of a scripted server that call the calculator, in every API, whole or as a stream."""

import json
from typing import Any

from aiohttp import web

from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply, api_of, is_streamed, named_event

USAGE: dict[str, dict[str, Any]] = {
    "chat": {"prompt_tokens": 10, "completion_tokens": 4, "cost": 0.5},
    "responses": {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14},
    "gemini": {"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 14},
    "anthropic": {"input_tokens": 10, "output_tokens": 4},
}
SIGNATURE = "c2lnbmF0dXJl"
"""What a provider adds to the reasoning before a call, and wants to see again."""


def expression(text: str) -> str:
    """Return the arguments of a call."""
    return json.dumps({"expression": text})


def turn_of(received: ReceivedRequest) -> int:
    """Return how many replies the conversation of a request has so far."""
    body = received.body
    messages = body.get("messages") or body.get("contents") or body.get("input")
    own = [each for each in messages if each.get("role") in ("assistant", "model")]
    # A reply in the Responses format has no message of its own if it only calls.
    items = [each for each in messages if each.get("type") == "function_call_output"]
    return len(items) if "input" in body else len(own)


def results_of(received: ReceivedRequest) -> list[str]:
    """Return the results that a request tells the model."""
    body = received.body
    if "input" in body:
        return [each["output"] for each in body["input"] if "output" in each]
    if "contents" in body:
        parts = [part for each in body["contents"] for part in each["parts"]]
        found = [each["functionResponse"] for each in parts if "functionResponse" in each]
        return [each["response"]["result"] for each in found]
    tools = [each["content"] for each in body["messages"] if each["role"] == "tool"]
    blocks = [
        b for m in body["messages"] if isinstance(m.get("content"), list) for b in m["content"]
    ]
    return tools + [block["content"] for block in blocks if block["type"] == "tool_result"]


async def answering(received: ReceivedRequest, text: str = '{"answer": 1}') -> Reply:
    """Answer in the API of the request, with usage."""
    api = api_of(received)
    make = {"chat": servers.chat, "responses": servers.responses, "gemini": servers.gemini}
    reply = make.get(api, servers.anthropic)(text, usage=USAGE[api])
    if not is_streamed(received):
        return reply
    return await servers.send_events(received, servers.events(reply))


async def calling(
    received: ReceivedRequest, *arguments: str, name: str = "calculator", text: str = ""
) -> Reply:
    """Call the calculator once for each of the arguments."""
    api, usage = api_of(received), USAGE[api_of(received)]
    calls = [(f"id-{number}", each) for number, each in enumerate(arguments)]
    body: dict[str, Any]
    events: list[dict[str, Any]]
    if api == "chat":
        tool_calls = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": each}}
            for id_, each in calls
        ]
        message = {"content": text or None, "tool_calls": tool_calls, "reasoning_content": "hm"}
        if not is_streamed(received):
            return servers.chat(finish="tool_calls", usage=usage, message=message)
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text or None}]
        deltas += [{"reasoning_content": "h"}, {"reasoning_content": "m"}]
        for index, call in enumerate(tool_calls):
            function = call["function"] | {"arguments": ""}
            deltas += [{"tool_calls": [call | {"index": index, "function": function}]}]
            pieces = [{"arguments": piece} for piece in call["function"]["arguments"]]
            deltas += [{"tool_calls": [{"index": index, "function": each}]} for each in pieces]
        head = {"id": "chat-1", "model": "served"}
        events = [head | {"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        events += [head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]
        events += [head | {"choices": [], "usage": usage}]
        plain = [f"data: {json.dumps(each)}\n\n".encode() for each in events]
        return await servers.send_events(received, [*plain, b"data: [DONE]\n\n"])
    if api == "responses":
        output: list[dict[str, Any]] = [
            {"type": "reasoning", "id": "rs-1", "summary": [], "encrypted_content": SIGNATURE}
        ]
        output += [
            {"type": "function_call", "id": f"fc-{id_}", "call_id": id_, "name": name}
            | {"arguments": each, "status": "completed"}
            for id_, each in calls
        ]
        body = {"id": "resp-1", "model": "served", "status": "completed", "output": output}
        body |= {"usage": usage}
        if not is_streamed(received):
            return web.json_response(body)
        events = [{"type": "response.output_item.done", "item": item} for item in output]
        events += [{"type": "response.completed", "response": body}]
        plain = [f"data: {json.dumps(each)}\n\n".encode() for each in events]
        return await servers.send_events(received, plain)
    if api == "gemini":
        parts = [{"text": text}] if text else []
        parts += [
            {
                "functionCall": {"name": name, "args": json.loads(each)},
                "thoughtSignature": SIGNATURE,
            }
            for _, each in calls
        ]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        body = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "served"}
        if not is_streamed(received):
            return web.json_response(body)
        return await servers.send_events(received, [f"data: {json.dumps(body)}\n\n".encode()])
    blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": "hm", "signature": SIGNATURE}]
    blocks += [{"type": "text", "text": text}] if text else []
    blocks += [
        {"type": "tool_use", "id": id_, "name": name, "input": json.loads(each)}
        for id_, each in calls
    ]
    body = {"id": "msg-1", "type": "message", "role": "assistant", "model": "served"}
    body |= {"content": blocks, "stop_reason": "tool_use", "usage": usage}
    if not is_streamed(received):
        return web.json_response(body)
    events = [{"type": "message_start", "message": body | {"content": [], "stop_reason": None}}]
    for index, block in enumerate(blocks):
        deltas = [("text", "text_delta", block.get("text", ""))]
        start = block | {"text": ""}
        if block["type"] == "thinking":
            start = block | {"thinking": "", "signature": ""}
            deltas = [("thinking", "thinking_delta", "hm")]
            deltas += [("signature", "signature_delta", SIGNATURE)]
        elif block["type"] == "tool_use":
            start = block | {"input": {}}
            deltas = [("partial_json", "input_json_delta", json.dumps(block["input"]))]
        place = {"index": index}
        events += [{"type": "content_block_start", "content_block": start} | place]
        for field, kind, value in deltas:
            for piece in (value[:3], value[3:]):
                delta = {"type": kind, field: piece}
                events += [{"type": "content_block_delta", "delta": delta} | place]
    events += [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage}]
    return await servers.send_events(received, [named_event(each) for each in events])
