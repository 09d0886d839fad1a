"""The batch APIs of OpenAI, Anthropic and Google: how each starts, finds and reads its jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import msgspec

from numbench.models.base import BatchRequest, ModelTarget
from numbench.models.batch_client import JOBS_APIS, BatchService, Entries
from numbench.models.error_bodies import error_code_and_message
from numbench.models.facts import HostedProvider
from numbench.models.failures import (
    failed_completion,
    failure_from_body,
    failure_from_status,
    failure_in_answer,
    provider_error,
    transient_failure,
)
from numbench.models.formats import gemini
from numbench.models.json_fields import (
    RPC_STATUSES,
    JsonObject,
    decoded,
    object_at,
    objects_at,
    text_at,
    text_or_repr,
    tokens_at,
    value_at,
)
from numbench.records import Completion, Failure, Job

_UNPROCESSED_CODES = frozenset({"batch_expired", "batch_cancelled"})
"""Error codes of requests that were not processed before the job ended."""


class OpenAIBatchService(BatchService):
    """Batch jobs for one model in one of OpenAI's formats."""

    max_requests = 50_000
    max_bytes = 200_000_000
    api = JOBS_APIS["openai"]

    @property
    def _endpoint(self) -> str:
        return "/v1" + self._format.url("", self._target.served_name, False)

    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """Start a job and return its id."""
        file = (f"{key}.jsonl", b"".join(map(self._line, requests)), "application/jsonl")
        job = {
            "input_file_id": self._id(await self._upload("files", file, purpose="batch")),
            "endpoint": self._endpoint,
            "completion_window": "24h",
            "metadata": {"numbench": key},
        }
        return self._id(await self._object(self.api.path, job))

    async def _pages_of_results(self, job: Job) -> AsyncIterator[Entries]:
        response = await self._object(self._job_path(job.id or ""))
        for kind in self.api.results_fields:
            if file := text_at(response, kind):
                path = f"files/{quote(file, safe='')}/content"
                yield self._result_lines(await self._content(path))

    def _line(self, request: BatchRequest) -> bytes:
        line = {
            "custom_id": request.id,
            "method": "POST",
            "url": self._endpoint,
            "body": self._request_body(request),
        }
        return msgspec.json.encode(line) + b"\n"

    def _completion(self, result: JsonObject) -> Completion:
        response = object_at(result, "response")
        status, body = tokens_at(response, "status_code"), response.get("body")
        if isinstance(body, str):
            body = decoded(body.encode("utf-8", "replace"), body)
        if status is None and not isinstance(body, dict):
            return failed_completion(_failure_without_response(result.get("error")))
        completion = self._format.parse(body)
        if status is None or 200 <= status < 300:
            return completion
        failure = failure_from_body(status, {}, body)
        return failed_completion(failure, completion.usage, completion.cost)

    def _job_failure(self, job: JsonObject) -> Failure | None:
        """Return the first error of a job that failed as a whole."""
        errors = objects_at(job, "errors.data")
        if not errors:
            return None
        code, message = error_code_and_message(errors[0])
        if "token_limit_exceeded" in code:
            # Too many tokens are enqueued; the limit is free again when other jobs end.
            return Failure(kind="rate_limit", message=message or code)
        return failure_from_status(400, message or code, code=code)


def _failure_without_response(error: object) -> Failure:
    """Return the failure of a request in a job that has no response."""
    code, message = error_code_and_message(error)
    if not _UNPROCESSED_CODES.isdisjoint(code.split()) or not (code or message):
        text = message or code or "the server sent neither a response nor an error"
        return transient_failure(text)
    return failure_in_answer(error)


_CLOCK_TOLERANCE = timedelta(hours=1)
"""How much earlier than planned a job may have started, by the provider's clock."""


class AnthropicBatchService(BatchService):
    """Batch jobs for one Claude model.

    A job at Anthropic has no name: its key is part of the ids of its requests, which only the
    results show.
    """

    max_requests = 100_000
    max_bytes = 250_000_000
    api = JOBS_APIS["anthropic"]

    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """Start a job and return its id."""
        entries = [
            {"custom_id": _custom_id(key, position), "params": self._request_body(request)}
            for position, request in enumerate(requests)
        ]
        return self._id(await self._object(self.api.path, {"requests": entries}))

    async def find(self, job: Job, other_ids: Collection[str] = ()) -> str | None:
        """Return the id of the newest job with the key of `job`.

        A job that has not ended does not show its key. If it is the only one of its size since
        `job` was planned, `other_ids` aside, it counts as found; `results` yields nothing if it is
        another.
        Raises ProviderError if there are several.
        """
        unfinished: list[str] = []
        async for listed in self._jobs():
            if _is_older(listed, job):
                break
            identity = self._id(listed)
            if identity in other_ids or sum(self._counts(listed).values()) != len(job.items):
                continue
            if listed.get(self.api.state) not in self.api.final:
                unfinished.append(identity)
            elif [each async for each in self.results(msgspec.structs.replace(job, id=identity))]:
                return identity
        if len(unfinished) > 1:
            message = (
                "a job submission was interrupted, and any of these may be that job: "
                f"{', '.join(unfinished)}; run the same command again when they have ended"
            )
            raise provider_error(Failure(kind="run", message=message), self._secrets)
        return unfinished[0] if unfinished else None

    async def _pages_of_results(self, job: Job) -> AsyncIterator[Entries]:
        path = self._job_path(job.id or "")
        response = await self._object(path)
        if not any(value_at(response, field) for field in self.api.results_fields):
            return
        content = await self._content(f"{path}/results")
        ids = {_custom_id(job.key, position): each for position, each in enumerate(job.items)}
        yield ((ids.get(custom_id, ""), line) for custom_id, line in self._result_lines(content))

    def _completion(self, result: JsonObject) -> Completion:
        """Return the completion in a line; requests without an answer are not billed."""
        ending = text_or_repr(value_at(result, "result.type"))
        if ending == "succeeded":
            return self._format.parse(value_at(result, "result.message"))
        if ending == "errored":
            error = object_at(result, "result.error")
            failure = failure_in_answer(error.get("error") or error)
            return failed_completion(msgspec.structs.replace(failure, possibly_billed=False))
        return failed_completion(transient_failure(f"the request ended as {ending!r}"))


def _is_older(listed: JsonObject, job: Job) -> bool:
    """Return whether a job was created before `job` was planned, if the clock was right then."""
    try:
        created = datetime.fromisoformat(text_or_repr(listed.get("created_at")))
        planned = datetime.fromisoformat(job.at or "")
        return created < planned - _CLOCK_TOLERANCE and planned <= datetime.now(UTC)
    except (TypeError, ValueError):
        return False


def _custom_id(key: str, position: int) -> str:
    return f"{key}-{position}"


class GeminiBatchService(BatchService):
    """Batch jobs for one Gemini model."""

    # Google limits the bytes of a job to 20 MB, and not the number of its requests.
    max_requests = 50_000
    max_bytes = 19_900_000
    api = JOBS_APIS["gemini"]

    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """Start a job and return its id."""
        entries = [
            {"request": self._request_body(request), "metadata": {"key": request.id}}
            for request in requests
        ]
        job = {"displayName": key, "inputConfig": {"requests": {"requests": entries}}}
        path = gemini.method_path(self._target.served_name, "batchGenerateContent")
        return self._id(await self._object(path, {"batch": job}))

    async def _pages_of_results(self, job: Job) -> AsyncIterator[Entries]:
        """Yield the results of a job with the ids of their requests.

        If the server omits ids, results are matched by position, provided that there are as many
        as requests and no id contradicts its position.
        """
        response = await self._object(self._job_path(job.id or ""))
        outputs = (objects_at(response, path) for path in self.api.results_fields)
        results = next(filter(None, outputs), [])
        ids = [value_at(result, "metadata.key") for result in results]
        if len(ids) == len(job.items) and all(
            identity in (None, item) for identity, item in zip(ids, job.items, strict=True)
        ):
            ids = list(job.items)
        yield [(text_or_repr(each), result) for each, result in zip(ids, results, strict=True)]

    def _completion(self, result: JsonObject) -> Completion:
        if error := result.get("error"):
            return failed_completion(_failure_from_rpc_status(error))
        return self._format.parse(result.get("response"))

    def _job_failure(self, job: JsonObject) -> Failure | None:
        error = job.get("error") or value_at(job, "metadata.error")
        return _failure_from_rpc_status(error) if error else None


def _failure_from_rpc_status(error: object) -> Failure:
    """Return the failure for a google.rpc.Status."""
    code = tokens_at(error, "code")
    status = 500 if code is None else code
    if status < len(RPC_STATUSES):
        status = RPC_STATUSES[status]
    message = text_at(error, "message") or f"error {code}"
    return failure_in_answer({**object_at(error), "message": message, "code": None}, status)


BATCH_SERVICES: dict[str, Callable[[HostedProvider, ModelTarget], BatchService]] = {
    "openai": OpenAIBatchService,
    "anthropic": AnthropicBatchService,
    "gemini": GeminiBatchService,
}
