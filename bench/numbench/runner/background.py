"""The answers of a run that its provider generates in the background, recorded in `jobs.jsonl`."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from msgspec.structs import replace

from numbench.journal import Journal, background_jobs, iter_responses
from numbench.models.background_responses import ResponseTracker
from numbench.records import ItemSample, Job


class BackgroundLog:
    """The requests whose answers are in progress at the provider, by their ids there.

    An id is on disk before the answer is waited for, so that any later call collects the answer
    instead of paying for another one. It stays until the answer is in the journal.
    """

    def __init__(self, journal: Journal, new_token_limit: int | None = None) -> None:
        """Read the answers in progress that earlier calls have left.

        new_token_limit: of the requests of this call, None if it is that of the run.
        """
        self._journal, self._new_token_limit = journal, new_token_limit
        self._jobs = background_jobs(journal.folder)
        if self._jobs:
            # A killed call may have stored an answer without closing its job.
            for response in iter_responses(journal.folder):
                job = self._jobs.get(response.request_id)
                if job is not None and response.extra.get("id") == job.id:
                    self.close(response.request_id)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._jobs

    def __len__(self) -> int:
        return len(self._jobs)

    def tracker(self, requested: ItemSample) -> ResponseTracker:
        """Return the tracker for an attempt at a request."""
        return _RecordingTracker(self, requested.id)

    def job(self, request_id: str) -> Job | None:
        """Return the job of the answer in progress to a request."""
        return self._jobs.get(request_id)

    def response_id(self, request_id: str) -> str | None:
        """Return the provider's id of the answer in progress to a request."""
        job = self._jobs.get(request_id)
        return job.id if job else None

    def open(self, request_id: str, response_id: str) -> None:
        """Return once the id of an answer in progress is on disk."""
        job = Job(
            key=uuid.uuid4().hex,
            state="submitted",
            id=response_id,
            items=(request_id,),
            at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            kind="background",
            max_tokens=self._new_token_limit,
        )
        self._jobs[request_id] = job
        self._journal.record_job(job)

    def close(self, request_id: str) -> None:
        """Record that an answer, if one is in progress, is stored or will never come."""
        job = self._jobs.pop(request_id, None)
        if job is not None:
            self._journal.record_job(replace(job, state="collected", items=()))


class _RecordingTracker(ResponseTracker):
    def __init__(self, log: BackgroundLog, request_id: str) -> None:
        super().__init__(log.response_id(request_id))
        self._log, self._request_id = log, request_id

    def start(self, response_id: str) -> None:
        super().start(response_id)
        self._log.open(self._request_id, response_id)

    def end(self) -> None:
        super().end()
        self._log.close(self._request_id)
