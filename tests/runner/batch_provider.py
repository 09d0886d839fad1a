"""A scripted provider of batch jobs, and runs that poll it fast."""

import json
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from numbench.journal.run_folder import read_jobs
from numbench.runner.active_run import RunInterrupted
from numbench.runner.progress import RunProgress
from tests.models.batch_servers import AnthropicJobs, OpenAIJobs
from tests.support import servers
from tests.support.runs import MODEL, go
from tests.support.servers import ReceivedRequest, Reply

Answer = Callable[[dict[str, Any], int], dict[str, Any] | None]
"""Returns the result of a request, from the request and how often it was submitted."""


def good(request: dict[str, Any], number: int) -> dict[str, Any]:
    usage = {"prompt_tokens": 10, "completion_tokens": 4}
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": '{"answer": 1}'}}
    return {"status_code": 200, "body": {"choices": [choice], "usage": usage}}


@dataclass
class Provider(OpenAIJobs):
    """A provider that finishes a job at the `polls`-th poll."""

    answer: Answer = good
    polls: int = 1
    received: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    before: Callable[[str, list[str]], None] = lambda method, parts: None
    refuse: list[Callable[[], Reply]] = field(default_factory=list)

    async def __call__(self, received: ReceivedRequest) -> Reply:
        method, parts = received.request.method, received.path.strip("/").split("/")
        self.before(method, parts)
        if self.refuse and (method, parts) == ("POST", ["batches"]):
            return self.refuse.pop(0)()
        if method == "GET" and parts[0] == "batches" and len(parts) == 2:
            self.seen[parts[1]] += 1
            if self.seen[parts[1]] == self.polls:
                self.finish(parts[1])
        return await super().__call__(received)

    def requests(self, name: str) -> list[dict[str, Any]]:
        """The requests of a job."""
        content = self.files[self._job(name)["input_file_id"]]
        return [json.loads(line) for line in content.splitlines()]

    def finish(self, name: str) -> None:
        """Let a job end with the results of its requests."""
        job = self._job(name)
        if job["status"] in ("failed", "completed"):
            return
        results, counts = [], Counter[str]()
        for request in reversed(self.requests(name)):
            self.received[request["custom_id"]] += 1
            response = self.answer(request, self.received[request["custom_id"]])
            if response is not None:
                line = {"custom_id": request["custom_id"], "response": response, "error": None}
                results.append(json.dumps(line))
                counts["completed" if response["status_code"] == 200 else "failed"] += 1
        self.files[f"{name}-out"] = "\n".join(results).encode()
        job |= {"status": "completed", "output_file_id": f"{name}-out", "request_counts": counts}


def good_message(params: dict[str, Any], number: int) -> dict[str, Any] | None:
    """Return Anthropic's result with an answer."""
    reply = servers.anthropic(usage={"input_tokens": 10, "output_tokens": 4})
    assert isinstance(reply, web.Response) and isinstance(reply.body, bytes)
    return {"type": "succeeded", "message": json.loads(reply.body)}


@dataclass
class AnthropicProvider(AnthropicJobs):
    """Anthropic, where a job ends at the `polls`-th poll. `received` counts prompts."""

    answer: Answer = good_message
    polls: int = 1
    received: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)

    async def __call__(self, received: ReceivedRequest) -> Reply:
        parts = received.path.strip("/").split("/")
        if received.request.method == "GET" and len(parts) == 4:
            self.seen[parts[3]] += 1
            if self.seen[parts[3]] == self.polls:
                self._finish(parts[3])
        return await super().__call__(received)

    def _finish(self, name: str) -> None:
        results = []
        for entry in reversed(self.submitted[name]):
            prompt = entry["params"]["messages"][-1]["content"]
            self.received[prompt] += 1
            if result := self.answer(entry["params"], self.received[prompt]):
                results.append({"custom_id": entry["custom_id"], "result": result})
        self.end(name, results)


CLAUDE = "anthropic/claude-haiku-4-5"
Providers = type[Provider] | type[AnthropicProvider]
EVERY = pytest.mark.parametrize(
    ("model", "provider_of"), [(MODEL, Provider), (CLAUDE, AnthropicProvider)]
)
"""A batch API of each kind, with a model."""


def submit_only(server: servers.Server, dataset: Path, out: Path, **options: Any) -> None:
    """Run a batch, and interrupt it once a job is at the provider."""

    def watch(progress: RunProgress) -> None:
        if "at the provider" in progress.note:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(RunInterrupted, match=r"^interrupted; batch jobs continue at the provider"):
        go(server, dataset, out, batch=True, on_progress=watch, **options)
    assert states(out)[-1] == "submitted"


def states(out: Path) -> list[str]:
    return [job.state for job in read_jobs(out).values()]
