"""A run that is ready: everything that its specification refers to is looked up once.

A plan puts numbers to it, and `execution` executes it; a suite is a list of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numbench.errors import BadInput
from numbench.journal import INFO, read_jobs, resumed_info
from numbench.jsonl import read_json
from numbench.models import Model, check_key, open_batch, open_model
from numbench.models.catalogue import find_model_provider
from numbench.records import RecordedRequest, RunInfo
from numbench.runner.estimates import check_cost_limit
from numbench.runner.recorded_requests import with_requests
from numbench.runner.resolution import ResolvedRun, describe, resolve, server_of
from numbench.runner.spec import RunSpec

if TYPE_CHECKING:
    from numbench.models.batch_client import BatchService


@dataclass(frozen=True)
class PreparedRun:
    """A run whose arguments are checked; nothing is sent or written.

    requests: the first one of each task. service: the batch API, None without `--batch`.
    """

    resolved: ResolvedRun
    requests: Mapping[str, RecordedRequest]
    service: BatchService | None
    _model: Model | None

    @property
    def spec(self) -> RunSpec:
        """The run as the user specifies it."""
        return self.resolved.spec

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.resolved.folder

    def open_client(self) -> Model | BatchService:
        """Return what answers the requests. Raises BadInput if its key is missing."""
        spec, server = self.spec, server_of(self.spec)
        check_key(spec.model, self.resolved.description, server)
        # The requests of some models cannot be seen before they are sent, nor are they opened.
        return self.service or self._model or open_model(spec.model, spec.reasoning, server).model

    def check_jobs(self) -> None:
        """Raise BadInput if answers in progress would be paid for again: `--batch` gets them."""
        jobs = read_jobs(self.path).values()
        if not self.spec.batch and any(job.is_active for job in jobs):
            raise BadInput(
                f"{self.path}: a batch job of this run is still active at the provider; run the "
                "same command with --batch to collect its answers"
            )


def prepare(spec: RunSpec) -> PreparedRun:
    """Return a run, ready to be planned or executed. It needs no API key before it is executed.

    Raises BadInput for every option that does not suit the model or the run in the folder.
    """
    target = (spec.model, spec.reasoning, server_of(spec), False)
    service = open_batch(*target) if spec.batch else None
    if spec.params and not getattr(service, "takes_parameters", True):
        raise BadInput(f"{spec.model}: its batch API takes no --param: omit --batch or --param")
    model, description = None, None
    provider = find_model_provider(spec.model, spec.base_url)
    if provider.in_process or provider.inspects_requests:
        model, description = open_model(*target)
    resolved = _with_stored_token_limit(resolve(spec, description or describe(spec)))
    requests: Mapping[str, RecordedRequest] = {}
    if model is not None:
        resolved, requests = with_requests(model, resolved)
    resumed_info(resolved.folder, resolved.info)
    if spec.max_cost is not None:
        check_cost_limit(resolved)
    return PreparedRun(resolved, requests, service, model)


def _with_stored_token_limit(resolved: ResolvedRun) -> ResolvedRun:
    """Return the run with the token limit of its folder in `info`, if it retries truncated answers.

    The requests have the limit that the user gave, which is recorded in their responses, or without
    one that of the folder.
    """
    path, spec = resolved.folder / INFO, resolved.spec
    if "truncated" not in spec.retry or not path.is_file():
        return resolved
    stored = read_json(path, RunInfo).settings.get("max_tokens")
    info = msgspec.structs.replace(
        resolved.info, settings=resolved.info.settings | {"max_tokens": stored}
    )
    if spec.max_tokens is not None or not isinstance(stored, int | None):
        return replace(resolved, info=info)
    return replace(resolved, info=info, settings=replace(resolved.settings, max_tokens=stored))
