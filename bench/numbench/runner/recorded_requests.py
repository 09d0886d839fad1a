"""The first request of each task: recorded in the run folder, and part of the run's identity.

A request is known before it is sent. The hash of everything but the question is in `run.json`; a
run whose requests have another hash does not resume.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from numbench.core import jsonl
from numbench.core.secrets import mask_json
from numbench.errors import BadInput
from numbench.journal.run_folder import REQUESTS
from numbench.models import Model
from numbench.models.base import ModelWithBodies
from numbench.models.facts import is_parameter
from numbench.records import Item, ItemSample, RecordedRequest
from numbench.runner.prepared_run import PreparedRun

_QUESTION = "{question}"
"""What stands for the question in what is hashed."""


def with_requests(model: Model, prepared: PreparedRun) -> PreparedRun:
    """Return the run with its first requests by task, and their hashes in `info`."""
    if not isinstance(model, ModelWithBodies):
        raise BadInput(
            f"{prepared.spec.model}: its provider declares `inspects_requests`, but its model has "
            "no `request_body`"
        )
    # Truncated answers may be requested again with another limit than that of the run, and any
    # question with another time limit.
    limit: Any = prepared.info.settings["max_tokens"]
    settings = replace(prepared.settings, max_tokens=limit, timeout=0.0)
    previewed = replace(prepared, settings=settings)

    def body_of(item: Item) -> dict[str, object]:
        return dict(model.request_body(*previewed.request(ItemSample(item))))

    requests = {}
    for task in prepared.info.tasks:
        if first := prepared.selected(task)[:1]:
            item = prepared.ask(first[0])
            shape = body_of(msgspec.structs.replace(item, prompt=_QUESTION))
            requests[task] = RecordedRequest(
                task=task, item_id=item.id, sha256=_sha256(shape), body=mask_json(body_of(item))
            )
    hashes = {task: request.sha256 for task, request in requests.items()}
    info = msgspec.structs.replace(prepared.info, requests=hashes)
    return replace(prepared, info=info, requests=requests)


def record_requests(folder: Path, requests: Mapping[str, RecordedRequest]) -> None:
    """Store the requests of tasks that have none in the run folder, which the caller has locked."""
    recorded = read_requests(folder)
    known = {each.task for each in recorded}
    if new := [request for task, request in requests.items() if task not in known]:
        jsonl.write_atomically(folder / REQUESTS, b"".join(map(jsonl.encode, (*recorded, *new))))


def read_requests(folder: Path) -> list[RecordedRequest]:
    """Return the recorded requests of the run in `folder`, one per task.

    Raises BadInput for a broken line.
    """
    try:
        return list(jsonl.read_lines(folder / REQUESTS, RecordedRequest, append_only=True))
    except BadInput as error:
        raise BadInput(f"{error}; delete the file: run.json has the hashes") from error


def parameters_of(body: Mapping[str, object]) -> dict[str, object]:
    """Return the body of a request without its messages."""
    return {name: value for name, value in body.items() if not is_parameter(name, "messages")}


def _sha256(shape: object) -> str:
    """Return the hash of a body without seeds and stream parameters."""
    encoded = msgspec.json.encode(_without_varying(shape), order="sorted")
    return hashlib.sha256(encoded).hexdigest()


def _without_varying(node: object) -> Any:
    """Return a JSON value without the fields that vary."""
    if isinstance(node, Mapping):
        return {
            name: _without_varying(value)
            for name, value in node.items()
            if not is_parameter(name, "varying")
        }
    if isinstance(node, list | tuple):
        return [_without_varying(value) for value in node]
    return node
