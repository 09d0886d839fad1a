"""OpenAI's batch API: a file of requests in, a file of responses and a file of errors out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from urllib.parse import quote

import httpx
import msgspec
import openai

from bench.models import chat
from bench.models.base import TIMEOUT, BatchRequest, BatchStatus
from bench.models.bodies import NoJson, decoded, worded
from bench.models.chat import count, mapping, string
from bench.models.failures import (
    failed,
    fault,
    from_status,
    harmless,
    harmless_failure,
    harmless_line,
    transient,
)
from bench.models.openai_api import Format, client, failure
from bench.models.secrets import secrets
from bench.records import Completion, Failure

_ENDED = ("completed", "failed", "expired", "cancelled")
_UNTOUCHED = ("batch_expired", "batch_cancelled")
"""Errors of requests that the provider did not come to."""

_METADATA = "numbench"
_PAGE = 100


class OpenAIBatches:
    """Jobs for one model in one of the formats."""

    most_requests = 50_000
    most_bytes = 200_000_000

    def __init__(self, served_name: str, spoken: Format, *, key: str | None, base_url: str) -> None:
        self._served_name = served_name
        self._format = spoken
        self._secrets = secrets(key)
        self._client = client(key, base_url)

    def size(self, request: BatchRequest) -> int:
        """Bytes of the request's line."""
        return len(self._line(request))

    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """The id of a new job. ProviderFault where it was not started, or nobody knows."""
        lines = b"".join(map(self._line, requests))
        file = await self._post(
            "/files",
            {"purpose": "batch"},
            files=[("file", (f"{key}.jsonl", lines, "application/jsonl"))],
            headers={"Content-Type": "multipart/form-data"},
        )
        job = await self._post(
            "/batches",
            {
                "input_file_id": self._id(file),
                "endpoint": f"/v1{self._format.path}",
                "completion_window": "24h",
                "metadata": {_METADATA: key},
            },
        )
        return self._id(job)

    async def find(self, key: str) -> str | None:
        """The id of the newest job whose metadata hold `key`."""
        after, passed = "", set[str]()
        while after not in passed:
            passed.add(after)
            page = await self._object(f"/batches?limit={_PAGE}" + (after and f"&after={after}"))
            listed = page.get("data")
            jobs = [mapping(job) for job in listed] if isinstance(listed, list) else []
            for job in jobs:
                if mapping(job.get("metadata")).get(_METADATA) == key:
                    return self._id(job)
            if not jobs or page.get("has_more") is not True:
                return None
            after = _quoted(self._id(jobs[-1]))
        raise fault(transient("the server lists the same jobs again"), self._secrets)

    async def status(self, job: str) -> BatchStatus:
        """Where the job stands."""
        said = await self._object(f"/batches/{_quoted(job)}")
        state = harmless_line(worded(said.get("status")), self._secrets)
        counts, error = mapping(said.get("request_counts")), _why(said)
        return BatchStatus(
            ended=state in _ENDED,
            done=count(counts.get("completed")),
            failed=count(counts.get("failed")),
            total=count(counts.get("total")),
            state=state,
            error=error and harmless_failure(error, self._secrets),
        )

    async def results(self, job: str, ids: Sequence[str]) -> AsyncIterator[tuple[str, Completion]]:
        """What came back, also of a job that failed, expired or was cancelled."""
        said = await self._object(f"/batches/{_quoted(job)}")
        open_ids = set(ids)
        for kind in ("output_file_id", "error_file_id"):
            if file := string(said.get(kind)):
                content = await self._get(f"/files/{_quoted(file)}/content")
                found = self._read(content, open_ids)
                open_ids -= found.keys()
                for result in found.items():
                    yield result

    async def cancel(self, job: str) -> None:
        """Ask for the job's end."""
        await self._post(f"/batches/{_quoted(job)}/cancel", {})

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _line(self, request: BatchRequest) -> bytes:
        line = {
            "custom_id": request.id,
            "method": "POST",
            "url": f"/v1{self._format.path}",
            "body": self._format.body(self._served_name, request.messages, request.settings),
        }
        return msgspec.json.encode(line) + b"\n"

    def _read(self, content: bytes, ids: Collection[str]) -> dict[str, Completion]:
        """The results in a file. What cannot be read, or was not asked, is left out; of two
        results for one request an answer counts more than an error.
        """
        found: dict[str, Completion] = {}
        for line in content.split(b"\n"):
            try:
                result = mapping(decoded(line))
            except NoJson:
                continue
            identity = worded(result.get("custom_id"))
            if identity in ids and (identity not in found or found[identity].error):
                found[identity] = harmless(self._completion(result), self._secrets)
        return found

    def _completion(self, result: Mapping[str, object]) -> Completion:
        response = mapping(result.get("response"))
        status = response.get("status_code")
        if not response or type(status) is not int:
            return failed(_unanswered(result.get("error")))
        said = self._format.completion(response.get("body"))
        if status == 200:
            return said
        code, message = chat.error_text(response.get("body"))
        return failed(from_status(status, message, code=code), said.usage, said.cost)

    async def _object(self, path: str) -> Mapping[str, object]:
        return self._decoded(await self._get(path))

    async def _get(self, path: str) -> bytes:
        return await self._call("get", path)

    async def _post(
        self,
        path: str,
        body: Mapping[str, object],
        files: Sequence[tuple[str, tuple[str, bytes, str]]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Mapping[str, object]:
        options = {"headers": headers} if headers else {}
        return self._decoded(
            await self._call("post", path, body=body, files=files, options=options)
        )

    async def _call(self, method: str, path: str, **arguments: object) -> bytes:
        """The content of a response. ProviderFault where none came."""
        call = getattr(self._client, method)
        try:
            async with asyncio.timeout(TIMEOUT):
                response: httpx.Response = await call(path, cast_to=httpx.Response, **arguments)
        except (TimeoutError, openai.APITimeoutError) as error:
            reason = transient(f"no answer within {TIMEOUT:g} s")
            raise fault(reason, self._secrets) from error
        except openai.APIError as error:
            raise fault(failure(error), self._secrets) from None
        return response.content

    def _decoded(self, content: bytes) -> Mapping[str, object]:
        try:
            return mapping(decoded(content))
        except NoJson as error:
            raise fault(transient(str(error)), self._secrets) from None

    def _id(self, thing: Mapping[str, object]) -> str:
        identity = string(thing.get("id"))
        if identity and identity.isprintable():
            return identity
        raise fault(transient("the server sent no id"), self._secrets)


def _unanswered(error: object) -> Failure:
    """Why a request of a job has no response."""
    code, message = chat.error_text(error)
    if code in _UNTOUCHED or not (code or message):
        return transient(message or code or "the server sent neither a response nor an error")
    return chat.reported(error)


def _why(job: Mapping[str, object]) -> Failure | None:
    """The first error of a job that failed as a whole."""
    listed = mapping(job.get("errors")).get("data")
    if not isinstance(listed, list) or not listed:
        return None
    code, message = chat.error_text(listed[0])
    if "token_limit_exceeded" in code:
        # Too much is enqueued for now; it passes when other jobs end.
        return Failure(kind="rate_limit", message=message or code)
    return from_status(400, message or code, code=code)


def _quoted(identity: str) -> str:
    return quote(identity, safe="")
