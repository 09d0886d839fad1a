"""Anthropic's Message Batches API: a list of requests as input, a file of results as output."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from numbench.models.base import BatchRequest, BatchStatus
from numbench.models.batch_client import BatchClient, Entries
from numbench.models.failures import failed_completion, provider_error, transient_failure
from numbench.models.formats import messages
from numbench.models.json_fields import object_at, text_or_repr, value_at
from numbench.records import Completion, Failure, Job

_CLOCK_TOLERANCE = timedelta(hours=1)
"""How much earlier than planned a job may have started, by the provider's clock."""

_ENDINGS = {
    "canceled": "the request was canceled",
    "expired": "the request expired before it was processed",
}


class AnthropicBatchService(BatchClient):
    """Batch jobs for one Claude model.

    A job at Anthropic has no name: its key is part of the ids of its requests, which only the
    results show.
    """

    max_requests = 100_000
    max_bytes = 250_000_000
    path = "messages/batches"
    after = "after_id"
    state = "processing_status"
    final = ("ended",)
    succeeded = "succeeded"
    failed = ("errored", "canceled", "expired")

    @property
    def _api_url(self) -> str:
        return messages.api_root(self._base_url)

    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """Start a job and return its id."""
        entries = [
            {"custom_id": _custom_id(key, position), "params": self._request_body(request)}
            for position, request in enumerate(requests)
        ]
        return self._id(await self._object("POST", self.path, {"requests": entries}))

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
            if identity in other_ids or self._total(listed) != len(job.items):
                continue
            if listed.get(self.state) not in self.final:
                unfinished.append(identity)
            elif [each async for each in self.results(msgspec.structs.replace(job, id=identity))]:
                return identity
        if len(unfinished) > 1:
            message = (
                "the submission of a job was cut off, and each of these may be it: "
                f"{', '.join(unfinished)}; run the same command again when they have ended"
            )
            raise provider_error(Failure(kind="run", message=message), self._secrets)
        return unfinished[0] if unfinished else None

    async def status(self, job: str) -> BatchStatus:
        """Return the state of the job, without counts until it has ended."""
        status = await super().status(job)
        return status if status.is_finished else status._replace(succeeded=None, failed=None)

    async def _pages_of_results(self, job: Job) -> AsyncIterator[Entries]:
        content = await self._content("GET", f"{self._job_path(job.id or '')}/results")
        ids = {_custom_id(job.key, position): each for position, each in enumerate(job.items)}
        yield ((ids.get(custom_id, ""), line) for custom_id, line in self._result_lines(content))

    def _completion(self, result: Mapping[str, object]) -> Completion:
        """Return the completion in a line; requests without an answer are not billed."""
        ending = text_or_repr(value_at(result, "result.type"))
        if ending == "succeeded":
            return self._format.parse(value_at(result, "result.message"))
        if ending == "errored":
            error = object_at(result, "result.error")
            failure = messages.failure_from_error(error.get("error") or error)
            return failed_completion(msgspec.structs.replace(failure, possibly_billed=False))
        unknown = "the server sent neither a response nor an error"
        return failed_completion(transient_failure(_ENDINGS.get(ending, unknown)))


def _is_older(listed: Mapping[str, object], job: Job) -> bool:
    """Return whether a job was created before `job` was planned."""
    try:
        created = datetime.fromisoformat(text_or_repr(listed.get("created_at")))
        planned = datetime.fromisoformat(job.at or "")
    except ValueError:
        return False
    created, planned = (t if t.tzinfo else t.replace(tzinfo=UTC) for t in (created, planned))
    return created < planned - _CLOCK_TOLERANCE


def _custom_id(key: str, position: int) -> str:
    return f"{key}-{position}"
