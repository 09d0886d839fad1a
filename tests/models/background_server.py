"""A script of a test server that generates responses in the background, as OpenAI does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from tests import servers
from tests.servers import ReceivedRequest, Reply

USAGE = {
    "input_tokens": 10,
    "output_tokens": 50_000,
    "output_tokens_details": {"reasoning_tokens": 49_000},
}
"""Costs about $0.50 with GPT-5."""


@dataclass
class BackgroundServer:
    """Completes a response at its `polls`-th poll; those from the number `frozen_from` on never.

    `instead` may answer a poll in another way.
    """

    polls: int = 2
    frozen_from: int = 10**9
    instead: Callable[[int], Reply | None] = lambda poll: None
    prompts: dict[str, str] = field(default_factory=dict)
    started: Counter[str] = field(default_factory=Counter)
    polled: Counter[str] = field(default_factory=Counter)
    cancelled: list[str] = field(default_factory=list)
    status_after_cancel: str = "cancelled"

    async def __call__(self, received: ReceivedRequest) -> Reply:
        match received.request.method, received.path.strip("/").split("/"):
            case "POST", ["responses"] if received.body.get("background"):
                return self._start(received)
            case "POST", ["responses"]:
                return servers.responses(usage=USAGE)
            case "GET", ["responses", name] if name in self.prompts:
                self.polled[name] += 1
                other = self.instead(self.polled[name])
                is_frozen = int(name.removeprefix("resp-")) >= self.frozen_from
                is_complete = self.polled[name] >= self.polls and not is_frozen
                return other or self._response(name, "completed" if is_complete else "in_progress")
            case "POST", ["responses", name, "cancel"] if name in self.prompts:
                self.cancelled.append(name)
                return self._response(name, self.status_after_cancel)
        return servers.error(404, f"{received.request.method} {received.path}")

    def _start(self, received: ReceivedRequest) -> Reply:
        name = f"resp-{len(self.prompts) + 1}"
        self.prompts[name] = received.prompt
        self.started[received.prompt] += 1
        return self._response(name, "queued")

    def _response(self, name: str, status: str) -> Reply:
        headers = {"openai-poll-after-ms": "10"}
        if status == "completed":
            reply = servers.responses(usage=USAGE, id=name)
            reply.headers.update(headers)
            return reply
        body = {"id": name, "object": "response", "status": status, "output": [], "usage": None}
        return web.json_response(body, headers=headers)
