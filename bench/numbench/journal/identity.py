"""What makes two descriptions those of one run, and the description of both together.

A run can be resumed with other tasks, a higher limit or more samples, and merged with runs on other
items. Everything else that shapes an answer has to be the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from numbench.core.secrets import mask_secret_segments
from numbench.core.texts import Sentences
from numbench.errors import BadInput
from numbench.journal.served_models import EARLIER_SERVERS
from numbench.records import ItemShard, RunInfo
from numbench.tasks.prompts import changed_prompts

_text = Sentences(__file__)

EXAMPLE_HASHES = "few_shot_sha256"
"""The setting with the SHA-256 of the worked examples of each task."""


class InfoDifference(NamedTuple):
    """What two descriptions of runs differ in."""

    field: str
    first: str
    second: str


def check_resumable(folder: Path, stored: RunInfo, info: RunInfo) -> None:
    """Raise BadInput if two descriptions differ in something that shapes an answer."""
    if difference := find_difference(stored, info, ("shard",)):
        field, before, now = difference
        moved = field == "settings.base_url" and "None" not in (before, now)
        about = {"folder": folder, "field": field, "before": before, "now": now}
        raise BadInput(_text("other_server" if moved else "other_run", **about))


def has_moved(stored: RunInfo, info: RunInfo) -> bool:
    """Return whether the address of a run's server differs in host or port only.

    It is a server of the user's own network, such as a job on another node of a cluster, if it has
    no TLS.
    """
    urls = [str(each.settings.get("base_url") or "").rstrip("/") for each in (stored, info)]
    before, now = map(urlsplit, urls)
    return (
        urls[0] != urls[1]
        and before.scheme == now.scheme == "http"
        and (before.path, before.query) == (now.path, now.query)
    )


def find_difference(
    stored: RunInfo, info: RunInfo, more_fields: Sequence[str] = ()
) -> InfoDifference | None:
    """Return the first difference in something that shapes an answer, or in `more_fields`."""
    return next(find_differences(stored, info, more_fields), None)


def find_differences(
    stored: RunInfo, info: RunInfo, more_fields: Sequence[str] = ()
) -> Iterator[InfoDifference]:
    """Yield the differences in what shapes an answer, and in `more_fields`.

    The address of a server that moved (`has_moved`) is none.
    """
    first, second = _identity(stored), _identity(info)
    if has_moved(stored, info):
        second["settings.base_url"] = first["settings.base_url"]
    # Runs may have different tasks, but no different settings.
    names = [
        name for name in first | second if "settings." in name or name in first.keys() & second
    ]
    pairs = [(name, first.get(name), second.get(name)) for name in names]
    pairs += [(name, getattr(stored, name), getattr(info, name)) for name in more_fields]
    for task in changed_prompts(stored.prompt, info.prompt):
        hashes = [each.tasks.get(task, each.sha256) for each in (stored.prompt, info.prompt)]
        pairs.append((f"prompts for {task}", hashes[0], hashes[1]))
    for field, before, now in pairs:
        if before != now:
            yield InfoDifference(field, _shortened(before), _shortened(now))


def _identity(info: RunInfo) -> dict[str, object]:
    """Return what the answers of a run depend on, by the names that messages use.

    The precision of a measurement and its limit of items may change, but not what decides which
    items are asked. Of prompts only name and content of the set.
    """
    horizon = info.horizon
    identity: dict[str, object] = {
        "questions of": "a horizon measurement" if horizon else "a dataset"
    }
    if horizon:
        identity["--question-seed"] = horizon.question_seed
        identity["--samples"] = info.samples
        identity["generator"], identity["design"] = horizon.generator, horizon.design
    identity |= {
        "source": info.source,
        "model": info.model,
        "reasoning": info.reasoning,
        "dataset hash": info.dataset.sha256,
        "prompts": info.prompt.label,
        "transform": info.transform,
    }
    settings = msgspec.to_builtins(info.settings)
    if isinstance(url := settings.get("base_url"), str):
        # A user may have changed it in the file.
        settings["base_url"] = mask_secret_segments(url.rstrip("/"))
    examples = settings.pop(EXAMPLE_HASHES, {})
    for name in sorted(settings.keys() - {"samples", "stream", EARLIER_SERVERS}):
        identity[f"settings.{name}"] = settings[name]
    # Earlier versions recorded one hash for the examples of all tasks, which is not compared.
    for task, sha256 in sorted(examples.items()) if isinstance(examples, dict) else ():
        identity[f"examples for {task}"] = sha256
    for task, size in sorted(horizon.largest.items()) if horizon else ():
        identity[f"largest size of {task}"] = size
    for task, sha256 in sorted(info.requests.items()):
        identity[f"requests (see requests.jsonl) for {task}"] = sha256
    return identity


def _shortened(value: object) -> str:
    """Return the repr of a setting with hashes cut to 12 digits."""
    if isinstance(value, ItemShard):
        return str(value)
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1", repr(value))


def merge_run_info(folder: Path, stored: RunInfo, info: RunInfo) -> RunInfo:
    """Return `info` with the tasks, the limit and the samples of both descriptions.

    A run has the same number of items for each of its tasks and of samples for each of its items,
    so that nothing is reported as missing that was never requested. Raises BadInput if the two
    descriptions do not allow that.
    """
    if _size(stored) != _size(info) and not (_contains(stored, info) or _contains(info, stored)):
        options = "--limit" if stored.samples == info.samples else "--limit and --samples"
        before, now = _describe_size(stored), _describe_size(info)
        raise BadInput(_text("other_size", folder=folder, before=before, now=now, options=options))
    limit, samples = map(max, zip(_size(stored), _size(info), strict=True))
    settings = info.settings | ({"samples": int(samples)} if samples > 1 else {})
    if stored.settings.get("stream") != info.settings.get("stream"):
        settings["stream"] = "mixed"
    earlier: list[object] = list(stored.settings.get(EARLIER_SERVERS) or ())  # type: ignore[call-overload]
    if has_moved(stored, info):
        earlier = [*earlier, stored.settings["base_url"]]
    if earlier:
        settings[EARLIER_SERVERS] = earlier
    hashes = [each.settings.get(EXAMPLE_HASHES) for each in (stored, info)]
    if isinstance(hashes[0], dict) and isinstance(hashes[1], dict):
        settings[EXAMPLE_HASHES] = hashes[0] | hashes[1]
    versions = dict(info.versions)
    for name, version in stored.versions.items():
        latest = versions.get(name, version)
        versions[name] = version if latest in version.split(", ") else f"{version}, {latest}"
    horizon = info.horizon
    if stored.horizon and horizon:
        largest = stored.horizon.largest | horizon.largest
        horizon = msgspec.structs.replace(horizon, largest=largest)
    return msgspec.structs.replace(
        info,
        tasks=tuple(dict.fromkeys(stored.tasks + info.tasks)),
        settings=settings,
        prompt=msgspec.structs.replace(info.prompt, tasks=stored.prompt.tasks | info.prompt.tasks),
        requests=stored.requests | info.requests,
        limit=None if limit == math.inf else int(limit),
        versions=versions,
        created=stored.created,
        horizon=horizon,
    )


def _size(info: RunInfo) -> tuple[float, int]:
    """Return the limit and the number of samples of a run."""
    return (math.inf if info.limit is None else info.limit), info.samples


def _contains(info: RunInfo, other: RunInfo) -> bool:
    """Return whether a run has all tasks, items and samples of another one."""
    (limit, samples), (other_limit, other_samples) = _size(info), _size(other)
    has_size = other_limit <= limit and other_samples <= samples
    return has_size and set(other.tasks) <= set(info.tasks)


def _describe_size(info: RunInfo) -> str:
    samples = f" and {info.samples} samples" if info.samples > 1 else ""
    return f"tasks {','.join(info.tasks)} with limit {info.limit}{samples}"
