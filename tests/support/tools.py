"""Replies of a scripted server that call the calculator, in every API, whole or as a stream."""

import json
from typing import Any

from aiohttp import web

from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply, api_of, is_streamed

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
    return await _sent(received, make.get(api, servers.anthropic)(text, usage=USAGE[api]))


async def calling(
    received: ReceivedRequest, *arguments: str, name: str = "calculator", text: str = ""
) -> Reply:
    """Call the calculator once for each of the arguments."""
    api, usage = api_of(received), USAGE[api_of(received)]
    calls = [(f"id-{number}", each) for number, each in enumerate(arguments)]
    body: dict[str, Any] = {"id": "1", "model": "served"}
    if api == "chat":
        tool_calls = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": each}}
            for id_, each in calls
        ]
        message = {"content": text or None, "tool_calls": tool_calls, "reasoning_content": "hm"}
        reply = servers.chat(finish="tool_calls", usage=usage, message=message)
        return await _sent(received, reply)
    if api == "responses":
        output: list[dict[str, Any]] = [
            {"type": "reasoning", "id": "rs-1", "summary": [], "encrypted_content": SIGNATURE}
        ]
        output += [
            {"type": "function_call", "id": f"fc-{id_}", "call_id": id_, "name": name}
            | {"arguments": each, "status": "completed"}
            for id_, each in calls
        ]
        body |= {"status": "completed", "output": output, "usage": usage}
    elif api == "gemini":
        parts = [{"text": text}] if text else []
        parts += [
            {
                "functionCall": {"id": id_, "name": name, "args": json.loads(each)},
                "thoughtSignature": SIGNATURE,
            }
            for id_, each in calls
        ]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        body = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "served"}
    else:
        blocks = [{"type": "thinking", "thinking": "hm", "signature": SIGNATURE}]
        blocks += [{"type": "text", "text": text}] if text else []
        blocks += [
            {"type": "tool_use", "id": id_, "name": name, "input": json.loads(each)}
            for id_, each in calls
        ]
        body |= {"type": "message", "role": "assistant", "content": blocks}
        body |= {"stop_reason": "tool_use", "usage": usage}
    return await _sent(received, web.json_response(body))


async def _sent(received: ReceivedRequest, reply: Reply) -> Reply:
    if not is_streamed(received):
        return reply
    return await servers.send_events(received, servers.events(reply))
