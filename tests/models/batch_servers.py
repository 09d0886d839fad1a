"""Test servers that implement the batch APIs of OpenAI, Gemini and Anthropic, and their use."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from aiohttp import web

from numbench.models import Api, Message, Server, open_batch, open_model
from numbench.models.base import BatchRequest
from numbench.models.batch_client import BatchService
from numbench.records import Completion, Job
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply, Script, serve

T = TypeVar("T")

IDS = ("a", "b", "c")
"""The ids of the requests of every job."""


def planned(key: str, at: str | None = None) -> Job:
    """Return the record of a job that may have been submitted."""
    return Job(key=key, state="planned", items=IDS, at=at)


def submitted(identity: str, key: str = "key") -> Job:
    """Return the record of a job with an id."""
    return Job(key=key, state="submitted", id=identity, items=IDS)


def run_at(
    script: Script,
    work: Callable[[BatchService], Awaitable[T]],
    model: str,
    level: str | None,
    api: Api = "chat",
) -> T:
    """Return the result of `work` with the batch API of a server that follows `script`."""

    async def once(url: str) -> T:
        service = open_batch(model, level, Server(url, api))
        try:
            return await work(service)
        finally:
            await service.close()

    with serve(script) as server:
        return asyncio.run(once(server.url))


def batch_requests(
    model: str, level: str, question: str = "What is {}?", **settings: Any
) -> list[BatchRequest]:
    """Return a request for each id of `IDS`, with the settings of the model."""
    base = open_model(model, level, Server("http://127.0.0.1")).description.settings
    merged = type(base)(**(vars(base) | settings))
    system = Message("system", "Answer in JSON.")
    return [BatchRequest(i, (system, Message("user", question.format(i))), merged) for i in IDS]


async def collect(service: BatchService, job: str) -> list[tuple[str, Completion]]:
    """Return the results of a job."""
    return [result async for result in service.results(submitted(job))]


@dataclass
class OpenAIJobs:
    """OpenAI's files and jobs. `jobs` are listed newest first, `page` at a time."""

    files: dict[str, bytes] = field(default_factory=dict)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    uploads: list[dict[str, str]] = field(default_factory=list)
    page: int = 2

    def lines(self) -> list[dict[str, Any]]:
        """Return the requests of the newest job."""
        content = self.files[self.jobs[0]["input_file_id"]]
        return [json.loads(line) for line in content.splitlines()]

    def end(self, output: bytes | None, errors: bytes | None = None, **fields: Any) -> None:
        """End the newest job with these files."""
        self.jobs[0] |= {"status": "completed"} | fields
        for name, content in (("output_file_id", output), ("error_file_id", errors)):
            if content is not None:
                self.files[name] = content
                self.jobs[0][name] = name

    async def __call__(self, received: ReceivedRequest) -> Reply:
        method, parts = received.request.method, received.path.strip("/").split("/")
        match method, parts:
            case "POST", ["files"]:
                return await self._upload(received)
            case "GET", ["files", name, "content"]:
                if name not in self.files:
                    return servers.error(404, f"no file {name}")
                return web.Response(body=self.files[name])
            case "POST", ["batches"]:
                number = len(self.jobs)
                self.jobs.insert(
                    0, received.body | {"id": f"batch-{number}", "status": "validating"}
                )
                return web.json_response(self.jobs[0])
            case "GET", ["batches"]:
                return self._list(received)
            case "GET", ["batches", name]:
                return web.json_response(self._job(name))
        return servers.error(404, f"{method} {received.path}")

    def _job(self, name: str) -> dict[str, Any]:
        return next(job for job in self.jobs if job["id"] == name)

    def _list(self, received: ReceivedRequest) -> Reply:
        names = [job["id"] for job in self.jobs]
        after = received.request.query.get("after")
        start = names.index(after) + 1 if after else 0
        listed = self.jobs[start : start + self.page]
        more = start + self.page < len(self.jobs)
        return web.json_response({"object": "list", "data": listed, "has_more": more})

    async def _upload(self, received: ReceivedRequest) -> Reply:
        form = await received.request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        name = f"file-{len(self.uploads)}"
        self.files[name] = file.file.read()
        self.uploads.append({"purpose": str(form["purpose"]), "filename": file.filename})
        return web.json_response({"id": name, "object": "file"})


@dataclass
class GeminiJobs:
    """Gemini's jobs, listed oldest first, `page` at a time."""

    jobs: list[dict[str, Any]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    page: int = 2

    def end(
        self, results: list[dict[str, Any]] | None, state: str = "SUCCEEDED", **more: Any
    ) -> None:
        """End the newest job with these results."""
        job = self.jobs[-1]
        job["metadata"]["state"] = f"BATCH_STATE_{state}"
        job |= {"done": True} | more
        if results is not None:
            job["metadata"]["output"] = {"inlinedResponses": {"inlinedResponses": results}}

    async def __call__(self, received: ReceivedRequest) -> Reply:
        method, path = received.request.method, received.path.removeprefix("/v1beta/")
        if method == "POST" and path.endswith(":batchGenerateContent"):
            self.sizes.append(len(await received.request.read()))
            return web.json_response(self._start(received.body))
        if method == "GET" and path == "batches":
            start = int(received.request.query.get("pageToken") or 0)
            body: dict[str, Any] = {"operations": self.jobs[start : start + self.page]}
            if start + self.page < len(self.jobs):
                body["nextPageToken"] = str(start + self.page)
            return web.json_response(body)
        job = next((job for job in self.jobs if job["name"] == path), None)
        if job is None:
            return servers.error(404, f"{method} {received.path}", status="NOT_FOUND")
        return web.json_response(job)

    def _start(self, body: dict[str, Any]) -> dict[str, Any]:
        number = len(self.jobs)
        metadata = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            "displayName": body["batch"]["displayName"],
            "createTime": f"2026-01-01T00:00:{number:02}Z",
            "state": "BATCH_STATE_PENDING",
            "batchStats": {"requestCount": "3", "pendingRequestCount": "3"},
        }
        self.jobs.append({"name": f"batches/job{number}", "metadata": metadata})
        return self.jobs[-1]


@dataclass
class AnthropicJobs:
    """Anthropic's jobs, listed newest first, `page` at a time; the lists do not show requests."""

    jobs: list[dict[str, Any]] = field(default_factory=list)
    submitted: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    versions: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    page: int = 2

    def end(self, name: str, results: bytes | list[dict[str, Any]], **counts: int) -> None:
        """End a job with results, or the lines of a file of results."""
        lines = results if isinstance(results, bytes) else b"".join(map(json_line, results))
        self.files[name] = lines
        job = self._job(name)
        job |= {"processing_status": "ended", "ended_at": timestamp()}
        job["results_url"] = f"https://elsewhere.invalid/{name}"
        counts = counts or {"succeeded": job["request_counts"]["processing"]}
        job["request_counts"] |= {"processing": 0} | counts

    async def __call__(self, received: ReceivedRequest) -> Reply:
        method, parts = received.request.method, received.path.strip("/").split("/")
        self.versions.append(received.headers.get("anthropic-version", ""))
        match method, parts[2:]:
            case "POST", ["batches"]:
                self.sizes.append(len(await received.request.read()))
                return web.json_response(self._start(received.body["requests"]))
            case "GET", ["batches"]:
                return self._list(received)
            case "GET", ["batches", name] if self._job(name):
                return web.json_response(self._job(name))
            case "GET", ["batches", name, "results"] if name in self.files:
                return web.Response(body=self.files[name], content_type="application/x-jsonl")
        return servers.anthropic_error(404, "not_found_error", f"{method} {received.path}")

    def _job(self, name: str) -> dict[str, Any]:
        return next((job for job in self.jobs if job["id"] == name), {})

    def _start(self, requests: list[dict[str, Any]]) -> dict[str, Any]:
        name = f"msgbatch_{len(self.jobs)}"
        self.submitted[name] = requests
        none = dict.fromkeys(("succeeded", "errored", "canceled", "expired"), 0)
        job = {
            "id": name,
            "type": "message_batch",
            "processing_status": "in_progress",
            "request_counts": {"processing": len(requests)} | none,
            "created_at": timestamp(),
            "expires_at": timestamp(),
            "ended_at": None,
            "results_url": None,
        }
        self.jobs.insert(0, job)
        return job

    def _list(self, received: ReceivedRequest) -> Reply:
        names = [job["id"] for job in self.jobs]
        after = received.request.query.get("after_id")
        start = names.index(after) + 1 if after else 0
        listed = self.jobs[start : start + self.page]
        more = start + self.page < len(self.jobs)
        ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"]} if listed else {}
        return web.json_response({"data": listed, "has_more": more} | ends)


def json_line(result: dict[str, Any]) -> bytes:
    """Return a line of a file of results."""
    return json.dumps(result).encode() + b"\n"


def timestamp() -> str:
    """Return the current time as Anthropic writes it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
