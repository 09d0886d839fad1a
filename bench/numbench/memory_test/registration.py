"""`certificate.json`: what is registered before the first question, and the seed afterwards.

The seed of the fresh items is a secret of 256 random bits. Until the last answer it is in a file of
its own that only the user can read; `certificate.json` has its SHA-256.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from numbench.core import jsonl
from numbench.dataset.fresh_items import fresh_items, write_fresh_items
from numbench.dataset.settings import GENERATOR_VERSION
from numbench.dataset.store import Dataset, dataset_hash
from numbench.errors import BadInput
from numbench.memory_test.rule import Rule
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
    secret, None until the last answer; revealed: when it was written. A draft has no secret yet.
    """

    model: str
    reasoning: str
    dataset: DatasetRef
    tasks: tuple[str, ...]
    pairs: int
    samples: int
    rule: Rule
    seed_sha256: str = ""
    fresh_name: str = ""
    fresh_sha256: str = ""
    created: str = ""
    versions: dict[str, str]
    seed: str | None = None
    revealed: str | None = None
    schema: int = 1


def read_registration(folder: Path) -> Registration | None:
    """Return the registration in `folder`, None if there is none."""
    path = folder / CERTIFICATE
    return jsonl.read_json(path, Registration) if path.is_file() else None


def register(folder: Path, frozen: Dataset, draft: Registration) -> Registration:
    """Return the registration in `folder`; complete and write `draft` if there is none.

    The secret is on disk before the items, and the items before `certificate.json`, so that a
    killed call is repeated with the same seed. Raises BadInput if the folder holds runs.
    """
    if stored := read_registration(folder):
        return stored
    if any((folder / name).exists() for name in (FROZEN_RUN, FRESH_RUN)):
        raise BadInput(f"{folder} holds runs without {CERTIFICATE}; choose another --out")
    secret = folder / SECRET
    # The seed of a call that was killed before it registered anything is used again.
    seed = secret.read_text("ascii").strip() if secret.is_file() else secrets.token_hex(32)
    # Raises BadInput if there are too few different items, before anything is written.
    items = fresh_items(frozen, draft.tasks, int(seed, 16))
    jsonl.write_atomically(secret, seed.encode(), mode=0o600)
    commitment = seed_hash(seed)
    fresh = write_fresh_items(folder / FRESH_ITEMS, f"fresh-{commitment[:8]}", frozen, items)
    registration = msgspec.structs.replace(
        draft,
        seed_sha256=commitment,
        fresh_name=fresh.name,
        fresh_sha256=fresh.manifest.sha256,
        created=_now(),
    )
    jsonl.write_json(folder / CERTIFICATE, registration)
    return registration


def check_same(folder: Path, draft: Registration, stored: Registration) -> None:
    """Raise BadInput if `draft` is not what was registered: nothing of it may change."""

    def described(registration: Registration) -> dict[str, object]:
        return {
            "--model": registration.model,
            "reasoning": registration.reasoning,
            "dataset hash": registration.dataset.sha256[:12],
            "--tasks": ",".join(registration.tasks),
            "--limit": registration.pairs,
            "--samples": registration.samples,
            "--margin": registration.rule.margin,
        }

    now = described(draft)
    for field, before in described(stored).items():
        if before != now[field]:
            raise BadInput(
                f"{folder} holds a memory test registered with {field} {before}, but this one has "
                f"{now[field]}; choose another --out"
            )


def reveal(folder: Path, registration: Registration) -> Registration:
    """Write the secret into `certificate.json`, and remove its own file.

    Raises BadInput if the file is missing or has another secret.
    """
    secret = folder / SECRET
    if registration.seed is None:
        seed = secret.read_text("ascii", "replace").strip() if secret.is_file() else ""
        if seed_hash(seed) != registration.seed_sha256:
            raise BadInput(f"{secret} is missing or not the registered seed; restore it")
        registration = msgspec.structs.replace(registration, seed=seed, revealed=_now())
        jsonl.write_json(folder / CERTIFICATE, registration)
    secret.unlink(missing_ok=True)
    return registration


def find_fault(registration: Registration, frozen: Dataset, fresh: Dataset) -> str | None:
    """Return why the revealed seed does not belong to the registered items, None if it does.

    Other versions of the generator would draw other items from the seed: theirs are not checked.
    """
    assert registration.seed is not None
    if seed_hash(registration.seed) != registration.seed_sha256:
        return "the revealed seed is not the registered one"
    if dataset_hash(fresh.manifest.files) != registration.fresh_sha256:
        return "the fresh questions are not the registered ones"
    if registration.versions.get("generator") != GENERATOR_VERSION:
        return None
    try:
        seed = int(registration.seed, 16)
    except ValueError:
        return "the revealed seed is not a hexadecimal number"
    if fresh_items(frozen, registration.tasks, seed) != fresh.by_task:
        return "the revealed seed gives other questions than the registered ones"
    return None


def seed_hash(seed: str) -> str:
    """Return the SHA-256 of a seed's hexadecimal digits."""
    return hashlib.sha256(seed.encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
