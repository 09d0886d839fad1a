"""`certificate.json`: what is registered before the first question, and the seed afterwards.

The seed of the fresh items is a secret of 256 random bits. Until the last answer it is in a file of
its own that only the user can read; `certificate.json` has its SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from numbench import jsonl
from numbench._version import __version__
from numbench.dataset.fresh_items import fresh_items, write_fresh_items
from numbench.dataset.settings import GENERATOR_VERSION
from numbench.dataset.store import MANIFEST, Dataset, dataset_hash
from numbench.errors import BadInput
from numbench.memory_test.rule import PairedDesign, Rule, register_rule, shared_weights
from numbench.records import DatasetRef

CERTIFICATE = "certificate.json"
SECRET = "secret-seed"
FRESH_ITEMS = "fresh-items"
FROZEN_RUN, FRESH_RUN = "frozen", "fresh"
"""The run folders in the folder of a memory test."""


class Registration(Struct, frozen=True, kw_only=True):
    """The content of `certificate.json`.

    dataset: the frozen one. pairs: items per task that are asked of each dataset. seed_sha256: of
    the secret, as text of 64 hexadecimal digits. fresh: name and hash of the fresh items. seed: the
    secret, None until the last answer; revealed: when it was written.
    """

    model: str
    reasoning: str
    dataset: DatasetRef
    tasks: tuple[str, ...]
    pairs: int
    samples: int
    rule: Rule
    seed_sha256: str
    fresh_name: str
    fresh_sha256: str
    created: str
    versions: dict[str, str]
    seed: str | None = None
    revealed: str | None = None
    schema: int = 1


class CertificateRequest(NamedTuple):
    """What the user wants to register; limit: items per task, None for all."""

    model: str
    reasoning: str
    tasks: tuple[str, ...]
    limit: int | None
    samples: int
    margin: float


def read_registration(folder: Path) -> Registration | None:
    """Return the registration in `folder`, None if there is none."""
    path = folder / CERTIFICATE
    return jsonl.read_json(path, Registration) if path.is_file() else None


def paired_design(frozen: Dataset, tasks: Sequence[str], limit: int | None) -> PairedDesign:
    """Return the size of a memory test on the first `limit` items of each task."""
    operands = [{item.operands for item in frozen.by_task[task][:limit]} for task in tasks]
    return PairedDesign(len(frozen.by_task[tasks[0]][:limit]), shared_weights(operands))


def register(folder: Path, request: CertificateRequest, frozen: Dataset) -> Registration:
    """Return the registration in `folder`; write it first if there is none.

    The secret is on disk before the items, and the items before `certificate.json`, so that a
    killed call is repeated with the same seed. Raises BadInput if the folder holds a registration
    of something else.
    """
    if stored := read_registration(folder):
        check_same(folder, stored, request, frozen)
        _restore_fresh_items(folder, stored, frozen)
        return stored
    if any((folder / name).exists() for name in (FROZEN_RUN, FRESH_RUN)):
        raise BadInput(f"{folder} holds runs without {CERTIFICATE}; choose another --out")
    seed = _stored_secret(folder / SECRET) or secrets.token_hex(32)
    # Raises BadInput if there are too few different items, before anything is written.
    items = fresh_items(frozen, request.tasks, int(seed, 16))
    _write_secret(folder / SECRET, seed)
    commitment = seed_hash(seed)
    fresh = write_fresh_items(folder / FRESH_ITEMS, _fresh_name(commitment), frozen, items)
    design = paired_design(frozen, request.tasks, request.limit)
    registration = Registration(
        model=request.model,
        reasoning=request.reasoning,
        dataset=frozen.ref(folder),
        tasks=request.tasks,
        pairs=design.pairs,
        samples=request.samples,
        rule=register_rule(design, request.margin),
        seed_sha256=commitment,
        fresh_name=fresh.name,
        fresh_sha256=fresh.manifest.sha256,
        created=_now(),
        versions={"numbench": __version__, "generator": GENERATOR_VERSION},
    )
    jsonl.write_json(folder / CERTIFICATE, registration)
    return registration


def check_same(
    folder: Path, stored: Registration, request: CertificateRequest, frozen: Dataset
) -> None:
    """Raise BadInput if `request` is not what was registered: nothing of it may change."""
    pairs = paired_design(frozen, request.tasks, request.limit).pairs
    compared: dict[str, tuple[object, object]] = {
        "--model": (stored.model, request.model),
        "reasoning": (stored.reasoning, request.reasoning),
        "dataset hash": (stored.dataset.sha256[:12], frozen.manifest.sha256[:12]),
        "--tasks": (",".join(stored.tasks), ",".join(request.tasks)),
        "--limit": (stored.pairs, pairs),
        "--samples": (stored.samples, request.samples),
        "--margin": (stored.rule.margin, request.margin),
    }
    for field, (before, now) in compared.items():
        if before != now:
            raise BadInput(
                f"{folder} holds a memory test registered with {field} {before}, this one has "
                f"{now}; choose another --out"
            )


def reveal(folder: Path, registration: Registration) -> Registration:
    """Write the secret into `certificate.json`, and remove its own file."""
    if registration.seed is None:
        seed = _read_secret(folder / SECRET, registration.seed_sha256)
        registration = msgspec.structs.replace(registration, seed=seed, revealed=_now())
        jsonl.write_json(folder / CERTIFICATE, registration)
    (folder / SECRET).unlink(missing_ok=True)
    return registration


def find_fault(registration: Registration, frozen: Dataset, fresh: Dataset) -> str | None:
    """Return why the revealed seed does not belong to the registered items, None if it does.

    Other versions of the generator would draw other items from the seed: theirs are not checked.
    """
    assert registration.seed is not None
    if seed_hash(registration.seed) != registration.seed_sha256:
        return "the revealed seed is not the registered one"
    if dataset_hash(fresh.manifest.files) != registration.fresh_sha256:
        return "the fresh items are not the registered ones"
    if registration.versions.get("generator") != GENERATOR_VERSION:
        return None
    if fresh_items(frozen, registration.tasks, int(registration.seed, 16)) != fresh.by_task:
        return "the revealed seed gives other items than the registered ones"
    return None


def seed_hash(seed: str) -> str:
    """Return the SHA-256 of a seed's hexadecimal digits."""
    return hashlib.sha256(seed.encode()).hexdigest()


def _restore_fresh_items(folder: Path, stored: Registration, frozen: Dataset) -> None:
    """Write the fresh items again if they are missing; opening them checks their hashes."""
    if (folder / FRESH_ITEMS / MANIFEST).is_file():
        return
    seed = stored.seed or _read_secret(folder / SECRET, stored.seed_sha256)
    items = fresh_items(frozen, stored.tasks, int(seed, 16))
    fresh = write_fresh_items(folder / FRESH_ITEMS, stored.fresh_name, frozen, items)
    if fresh.manifest.sha256 != stored.fresh_sha256:
        raise BadInput(
            f"{fresh.path}: this version generates other fresh items than were registered; restore "
            "the folder, or continue with the version in certificate.json"
        )


def _fresh_name(commitment: str) -> str:
    return f"fresh-{commitment[:8]}"


def _stored_secret(path: Path) -> str | None:
    """Return the seed of a call that was killed before it registered anything, None if none was."""
    return path.read_text(encoding="ascii").strip() if path.is_file() else None


def _write_secret(path: Path, seed: str) -> None:
    """Write the seed to a file that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}")
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(seed)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    jsonl.sync_folder(path.parent)


def _read_secret(path: Path, commitment: str) -> str:
    """Return the seed in `path`. Raises BadInput if it is missing or another one."""
    if not path.is_file():
        raise BadInput(f"{path}: the seed of the fresh items is missing; restore it")
    seed = path.read_text(encoding="ascii", errors="replace").strip()
    if seed_hash(seed) != commitment:
        raise BadInput(f"{path} is not the registered seed; restore it")
    return seed


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
