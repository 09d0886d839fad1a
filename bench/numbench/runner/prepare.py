"""A run that is ready: everything that its specification refers to is looked up once.

A plan puts numbers to it, and `execution` executes it; a suite is a list of them.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from numbench.errors import BadInput
from numbench.journal import INFO, resumed_info
from numbench.jsonl import read_json
from numbench.models import open_batch, open_model
from numbench.models.catalogue import find_model_provider
from numbench.records import RunInfo
from numbench.runner.estimates import check_cost_limit
from numbench.runner.recorded_requests import with_requests
from numbench.runner.resolution import PreparedRun, describe, resolve, server_of
from numbench.runner.spec import RunSpec


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
    if model is not None:
        resolved = with_requests(model, resolved)
    resumed_info(resolved.folder, resolved.info)
    check_cost_limit(resolved)
    return replace(resolved, model=model, service=service)


def _with_stored_token_limit(resolved: PreparedRun) -> PreparedRun:
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
