"""Preparing a run: its arguments are checked and its model is opened; nothing is sent or written.

`run` and `plan` (`--dry-run`) both prepare a run here, so that a plan refuses what the run would.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from numbench.errors import BadInput
from numbench.journal import check_compatible, read_jobs
from numbench.models import Model, open_batch, open_model
from numbench.models.base import BatchService
from numbench.models.catalogue import find_model_provider
from numbench.records import RecordedRequest
from numbench.runner.budget import check_cost_limit
from numbench.runner.estimates import price_for
from numbench.runner.prices import Price
from numbench.runner.recorded_requests import with_requests
from numbench.runner.resolution import ResolvedRun, describe, resolve
from numbench.runner.run_state import with_stored_token_limit
from numbench.runner.spec import RunSpec


class PreparedRun(NamedTuple):
    """A run whose arguments are checked.

    model: None in a plan of a run whose requests cannot be seen without a key. service: the batch
    API, None without `--batch`. requests: the first one of each task. price: None if unknown.
    """

    model: Model | None
    service: BatchService | None
    resolved: ResolvedRun
    requests: Mapping[str, RecordedRequest]
    price: Price | None

    async def close(self) -> None:
        """Close the model and the batch API."""
        for client in (self.model, self.service):
            if client is not None:
                await client.close()


def prepare_run(spec: RunSpec, needs_key: bool = True) -> PreparedRun:
    """Return a run, ready to be planned or executed. Without `needs_key` it need not have one.

    Raises BadInput for every option that does not suit the model or the run in the folder.
    """
    # Without a key and headers, plain HTTP carries no secret.
    allow_http = spec.api_key_env is None and not spec.headers
    server = (spec.base_url, spec.api, spec.api_key_env, allow_http, spec.headers, needs_key)
    service = open_batch(spec.model, spec.reasoning, *server) if spec.batch else None
    if spec.params and not getattr(service, "takes_parameters", True):
        raise BadInput(f"{spec.model}: its batch API takes no --param: omit --batch or --param")
    model, description = None, None
    provider = find_model_provider(spec.model, spec.base_url)
    if needs_key or provider.in_process or provider.inspects_requests:
        model, description = open_model(spec.model, spec.reasoning, *server, stream=spec.stream)
    description = description or describe(spec)
    resolved = with_stored_token_limit(resolve(spec, description))
    requests: Mapping[str, RecordedRequest] = {}
    if model is not None:
        resolved, requests = with_requests(model, resolved)
    check_compatible(resolved.folder, resolved.info)
    price = price_for(description, spec.batch, spec.params)
    if spec.max_cost is not None:
        check_cost_limit(spec.model, description.route, price, spec.params)
    return PreparedRun(model, service, resolved, requests, price)


def check_jobs(folder: Path, batch: bool) -> None:
    """Raise BadInput if answers in progress would be paid for twice: `batch` collects them."""
    if not batch and any(job.is_active for job in read_jobs(folder).values()):
        raise BadInput(
            f"{folder}: a batch job of this run is still active at the provider; run the same "
            "command with --batch to collect its answers"
        )
