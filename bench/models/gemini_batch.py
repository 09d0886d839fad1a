"""Gemini's batch API: requests and responses stand inside the job itself.

Jobs are started through google-genai and read without it: the SDK drops the counts of requests,
and refuses a whole job where one result has a form that it does not know.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from urllib.parse import quote

import httpx
from google.genai import types

from bench.models import gemini
from bench.models.base import NO_KEY, TIMEOUT, BatchRequest, BatchStatus
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
from bench.models.secrets import secrets
from bench.models.transport import AiohttpTransport
from bench.records import Completion, Failure

_GOOGLE = "https://generativelanguage.googleapis.com"
_ENDED = ("SUCCEEDED", "PARTIALLY_SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
_ID = "key"
_PAGE = 100
_ENVELOPE = 400
"""Bytes of a request beyond its contents and configuration: nesting and the model's name."""

_HTTP_STATUS = {
    1: 499,
    2: 500,
    3: 400,
    4: 504,
    5: 404,
    6: 409,
    7: 403,
    8: 429,
    9: 400,
    10: 409,
    11: 400,
    12: 501,
    13: 500,
    14: 503,
    15: 500,
    16: 401,
}
"""HTTP's word for each code of google.rpc.Code."""


class GeminiBatches:
    """Jobs for one Gemini model."""

    # Google names no limit on their number, only on the 20 MB of the whole request.
    most_requests = 50_000
    most_bytes = 19_900_000

    def __init__(self, served_name: str, *, key: str | None, base_url: str | None) -> None:
        """`base_url` is another server with Gemini's protocol, None for Google's own."""
        self._served_name = served_name
        self._secrets = secrets(key)
        base_url = (base_url or _GOOGLE).rstrip("/")
        self._connection = gemini.Connection(key, base_url)
        self._plain = httpx.AsyncClient(
            transport=AiohttpTransport(),
            base_url=f"{base_url}/{gemini.API_VERSION}/",
            headers={"x-goog-api-key": key or NO_KEY},
            timeout=None,
        )

    def size(self, request: BatchRequest) -> int:
        """Bytes of the request, a few too many rather than too few."""
        dumped = _inlined(request).model_dump(mode="json", by_alias=True, exclude_none=True)
        return len(json.dumps(dumped)) + _ENVELOPE + len(self._served_name)

    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """The id of a new job. ProviderFault where it was not started, or nobody knows."""
        sending = self._connection.sdk.batches.create(
            model=self._served_name,
            src=[_inlined(request) for request in requests],
            config=types.CreateBatchJobConfig(display_name=key),
        )
        job = await self._said(gemini.arrival(sending))
        name = string(job.get("name"))
        if name and name.isprintable():
            return name
        raise fault(transient("the server sent no name of the job"), self._secrets)

    async def find(self, key: str) -> str | None:
        """The id of the newest job whose display name is `key`."""
        found: list[tuple[str, str]] = []
        token, passed = "", set[str]()
        while token not in passed:
            passed.add(token)
            page = await self._get(f"batches?pageSize={_PAGE}" + (token and f"&pageToken={token}"))
            listed = page.get("operations")
            for job in map(mapping, listed if isinstance(listed, list) else []):
                about = mapping(job.get("metadata"))
                if about.get("displayName") == key and (name := string(job.get("name"))):
                    found.append((worded(about.get("createTime")), name))
            token = quote(string(page.get("nextPageToken")) or "", safe="")
            if not token:
                return max(found)[1] if found else None
        raise fault(transient("the server lists the same jobs again"), self._secrets)

    async def status(self, job: str) -> BatchStatus:
        """Where the job stands."""
        said = await self._get(_path(job))
        about = mapping(said.get("metadata"))
        said_state = harmless_line(worded(about.get("state")), self._secrets)
        state = said_state.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        counts = mapping(about.get("batchStats"))
        error = said.get("error") or about.get("error")
        return BatchStatus(
            ended=state in _ENDED or said.get("done") is True,
            done=_int64(counts.get("successfulRequestCount")),
            failed=_int64(counts.get("failedRequestCount")),
            total=_int64(counts.get("requestCount")),
            state=state,
            error=harmless_failure(_reported(error), self._secrets) if error else None,
        )

    async def results(self, job: str, ids: Sequence[str]) -> AsyncIterator[tuple[str, Completion]]:
        """What came back, also of a job that failed, expired or was cancelled.

        Each result names its request. Results that do not are told by their position, if there
        are as many as requests and none contradicts its position.
        """
        said = await self._get(_path(job))
        found: dict[str, Completion] = {}
        for identity, result in _matched(_inlined_results(said), ids):
            if identity not in found or found[identity].error:
                found[identity] = harmless(_completion(result), self._secrets)
        for identity, completion in found.items():
            yield identity, completion

    async def cancel(self, job: str) -> None:
        """Ask for the job's end."""
        await self._said(gemini.arrival(self._connection.sdk.batches.cancel(name=job)))

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()
        await self._plain.aclose()

    async def _get(self, path: str) -> Mapping[str, object]:
        """What the server says at `path`. ProviderFault where it says nothing."""
        return await self._said(self._plain.get(path))

    async def _said(self, answering: Awaitable[httpx.Response]) -> Mapping[str, object]:
        """The JSON object in a response. ProviderFault where none comes."""
        try:
            async with asyncio.timeout(TIMEOUT):
                response = await answering
            if response.is_success:
                return mapping(decoded(response.content))
            reason = gemini.failure(response)
        except TimeoutError:
            reason = transient(f"no answer within {TIMEOUT:g} s")
        except httpx.HTTPError as error:
            reason = transient(f"connection failed: {error or type(error).__name__}")
        except (NoJson, RecursionError) as error:
            reason = transient(str(error))
        raise fault(reason, self._secrets)


def _inlined(request: BatchRequest) -> types.InlinedRequest:
    return types.InlinedRequest(
        contents=list(gemini.contents(request.messages)),
        config=gemini.config(request.messages, request.settings),
        metadata={_ID: request.id},
    )


def _inlined_results(job: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The results that the job holds, under one of the two names that Google gives them."""
    for output in (mapping(job.get("metadata")).get("output"), job.get("response")):
        inner = mapping(mapping(output).get("inlinedResponses")).get("inlinedResponses")
        if isinstance(inner, list):
            return [mapping(result) for result in inner]
    return []


def _matched(
    results: Sequence[Mapping[str, object]], ids: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The results with the ids of their requests; those that cannot be told are left out."""
    named = [mapping(result.get("metadata")).get(_ID) for result in results]
    in_order = len(results) == len(ids) and all(
        name in (None, identity) for name, identity in zip(named, ids, strict=True)
    )
    known = set(ids)
    for position, (name, result) in enumerate(zip(named, results, strict=True)):
        if in_order:
            yield ids[position], result
        elif isinstance(name, str) and name in known:
            yield name, result


def _completion(result: Mapping[str, object]) -> Completion:
    if error := result.get("error"):
        return failed(_reported(error))
    return gemini.completion(result.get("response"))


def _reported(error: object) -> Failure:
    """The failure behind a google.rpc.Status."""
    said = mapping(error)
    code = count(said.get("code"))
    status = 500 if code is None else _HTTP_STATUS.get(code, code)
    return from_status(status, string(said.get("message")) or f"error {code}")


def _int64(value: object) -> int | None:
    """A count, which Google's JSON writes as a string."""
    text = str(count(value)) if isinstance(value, int) else worded(value)
    return count(int(text)) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _path(job: str) -> str:
    return quote(job, safe="/")
