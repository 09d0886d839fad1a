"""What makes two descriptions those of one run, and the description of both together.

A run can be resumed with other tasks, a higher limit or more samples, and merged with runs on other
items. Everything else that shapes an answer has to be the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from numbench.errors import BadInput
from numbench.records import HorizonInfo, ItemShard, RunInfo, Scalar
from numbench.tasks.prompts import changed_prompts
from numbench.url_secrets import mask_secret_segments

_KINDS = {"measurement": "a horizon measurement", "run": "a run on a dataset"}

_TRANSPORT = ("stream", "background")
"""How answers arrive; `mixed` if that differed."""

_NOT_COMPARED = {"samples", *_TRANSPORT}
"""Settings of a run that may change: none shapes an answer."""


def check_resumable(folder: Path, stored: RunInfo, info: RunInfo) -> None:
    """Raise BadInput if two descriptions differ in something that shapes an answer."""
    check_same_measurement(folder, stored, info)
    if difference := find_difference(stored, info, ("shard",)):
        field, before, now = difference
        moved = field == "settings.base_url" and "None" not in (before, now)
        way_out = f"change it in {folder}/run.json if the server moved, or " if moved else ""
        raise BadInput(
            f"{folder} holds a run with {field} {before}, this one has {now}; {way_out}choose "
            "another --out"
        )
    for task in changed_requests(stored, info):
        raise BadInput(
            f"{folder} holds a run with other requests for {task} (see requests.jsonl); "
            "choose another --out"
        )
    if changed := changed_prompts(stored.prompt, info.prompt):
        raise BadInput(
            f"{folder} holds a run with different prompts ({', '.join(changed)}); "
            "choose another --out"
        )


def check_same_measurement(folder: Path, stored: RunInfo, info: RunInfo) -> None:
    """Raise BadInput if a measurement of horizons cannot continue the run in `folder`.

    Its precision and its limit of items may change. Everything that decides which items are asked
    has to be the same, the number of samples included.
    """
    old, new = stored.horizon, info.horizon
    if old is None or new is None:
        if old is not new:
            held, wanted = ("measurement", "run") if old else ("run", "measurement")
            raise BadInput(
                f"{folder} holds {_KINDS[held]}, this is {_KINDS[wanted]}; choose another --out"
            )
        return
    pairs: dict[str, tuple[object, object]] = {
        "--question-seed": (old.question_seed, new.question_seed),
        "--samples": (stored.samples, info.samples),
        "generator": (old.generator, new.generator),
        "design": (old.design, new.design),
    }
    for task in sorted(old.largest.keys() & new.largest.keys()):
        pairs[f"largest size of {task}"] = (old.largest[task], new.largest[task])
    for field, (before, now) in pairs.items():
        if before != now:
            raise BadInput(
                f"{folder} holds a measurement with {field} {before}, this one has {now}; "
                "choose another --out"
            )


class Difference(NamedTuple):
    """What two descriptions of runs differ in."""

    field: str
    first: str
    second: str


def find_difference(
    stored: RunInfo, info: RunInfo, more_fields: Sequence[str] = ()
) -> Difference | None:
    """Return the first difference in something that shapes an answer, or in `more_fields`.

    Of the prompts only name and content of the set, not each task: see `changed_prompts`.
    """
    settings = msgspec.json.decode(msgspec.json.encode(info.settings))
    pairs: dict[str, tuple[object, object]] = {
        "source": (stored.source, info.source),
        "model": (stored.model, info.model),
        "reasoning": (stored.reasoning, info.reasoning),
        "dataset hash": (stored.dataset.sha256, info.dataset.sha256),
        "prompts": (stored.prompt.label, info.prompt.label),
        "transform": (stored.transform, info.transform),
    }
    first_settings = dict(stored.settings)
    if isinstance(url := first_settings.get("base_url"), str):
        # Older versions wrote keys in paths, and final slashes, as they are.
        first_settings["base_url"] = mask_secret_segments(url.rstrip("/"))
    for key in sorted((first_settings.keys() | settings.keys()) - _NOT_COMPARED):
        pairs[f"settings.{key}"] = (first_settings.get(key), settings.get(key))
    pairs |= {name: (getattr(stored, name), getattr(info, name)) for name in more_fields}
    for field, (first, second) in pairs.items():
        if first != second:
            return Difference(field, _shortened(first), _shortened(second))
    return None


def changed_requests(stored: RunInfo, info: RunInfo) -> list[str]:
    """Return the tasks that both runs contain and whose requests differ between them."""
    tasks = stored.requests.keys() & info.requests.keys()
    return sorted(task for task in tasks if stored.requests[task] != info.requests[task])


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
    stored_tasks, new_tasks = set(stored.tasks), set(info.tasks)
    new_limit, stored_limit = _limit_as_float(info.limit), _limit_as_float(stored.limit)
    stored_size, new_size = (stored_limit, stored.samples), (new_limit, info.samples)
    includes_stored = stored_tasks <= new_tasks and _is_at_most(stored_size, new_size)
    is_included = new_tasks <= stored_tasks and _is_at_most(new_size, stored_size)
    if not includes_stored and not is_included and new_size != stored_size:
        options = "--limit" if stored.samples == info.samples else "--limit and --samples"
        raise BadInput(
            f"{folder} holds {_describe_size(stored)}, this run has {_describe_size(info)}; give "
            f"the same {options}, or choose another --out"
        )
    tasks = stored.tasks + tuple(task for task in info.tasks if task not in stored_tasks)
    samples = max(stored.samples, info.samples)
    settings = info.settings | ({"samples": samples} if samples > 1 else {})
    settings |= merged_transport(stored, info)
    return msgspec.structs.replace(
        info,
        tasks=tasks,
        settings=settings,
        prompt=msgspec.structs.replace(info.prompt, tasks=stored.prompt.tasks | info.prompt.tasks),
        requests=stored.requests | info.requests,
        limit=info.limit if new_limit >= stored_limit else stored.limit,
        versions=merge_versions(stored, info),
        created=stored.created,
        horizon=_merge_horizons(stored.horizon, info.horizon),
    )


def _merge_horizons(stored: HorizonInfo | None, info: HorizonInfo | None) -> HorizonInfo | None:
    if stored is None or info is None:
        return info
    return msgspec.structs.replace(info, largest=stored.largest | info.largest)


def merged_transport(first: RunInfo, second: RunInfo) -> dict[str, Scalar]:
    """Return the settings of two runs together about how answers arrive, where they differ."""
    return {
        name: "mixed"
        for name in _TRANSPORT
        if first.settings.get(name) != second.settings.get(name)
    }


def merge_versions(earlier: RunInfo, later: RunInfo) -> dict[str, str]:
    """Return the versions of both runs by name; if they differ, `EARLIER, LATER`."""
    versions = dict(later.versions)
    for name, version in earlier.versions.items():
        latest = versions.get(name, version)
        versions[name] = version if latest in version.split(", ") else f"{version}, {latest}"
    return versions


def _is_at_most(size: tuple[float, int], other: tuple[float, int]) -> bool:
    """Return whether a run with one limit and number of samples is part of one with the other."""
    return size[0] <= other[0] and size[1] <= other[1]


def _describe_size(info: RunInfo) -> str:
    samples = f" and {info.samples} samples" if info.samples > 1 else ""
    return f"tasks {','.join(info.tasks)} with limit {info.limit}{samples}"


def _limit_as_float(limit: int | None) -> float:
    return float("inf") if limit is None else limit
