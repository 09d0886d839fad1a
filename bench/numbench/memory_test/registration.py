"""`certificate.json`: what is registered before the first question, and the seed afterwards.

The seed of the fresh items is a secret of 256 random bits. Until the last answer it is in a file of
its own that only the user can read; `certificate.json` has its SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from numbench import jsonl
from numbench._version import __version__
from numbench.dataset.fresh_items import fresh_items, write_fresh_items
from numbench.dataset.settings import GENERATOR_VERSION
from numbench.dataset.store import Dataset, dataset_hash
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


class MemoryTest(NamedTuple):
    """A memory test as the user specifies it. limit: items per task, None for all."""

    folder: Path
    model: str
    reasoning: str
    frozen: Dataset
    tasks: tuple[str, ...]
    limit: int | None
    samples: int
    margin: float

    @property
    def design(self) -> PairedDesign:
        """The size of the test, on the first `limit` items of each task."""
        items = [self.frozen.by_task[task][: self.limit] for task in self.tasks]
        operands = [{item.operands for item in of_task} for of_task in items]
        return PairedDesign(len(items[0]), shared_weights(operands))


def read_registration(folder: Path) -> Registration | None:
    """Return the registration in `folder`, None if there is none."""
    path = folder / CERTIFICATE
    return jsonl.read_json(path, Registration) if path.is_file() else None


def register(test: MemoryTest) -> Registration:
    """Return the registration of a memory test; write it first if there is none.

    The secret is on disk before the items, and the items before `certificate.json`, so that a
    killed call is repeated with the same seed. Raises BadInput if the folder holds a registration
    of something else.
    """
    folder, frozen = test.folder, test.frozen
    if stored := read_registration(folder):
        check_same(test, stored)
        return stored
    if any((folder / name).exists() for name in (FROZEN_RUN, FRESH_RUN)):
        raise BadInput(f"{folder} holds runs without {CERTIFICATE}; choose another --out")
    secret = folder / SECRET
    # The seed of a call that was killed before it registered anything is used again.
    seed = secret.read_text("ascii").strip() if secret.is_file() else secrets.token_hex(32)
    # Raises BadInput if there are too few different items, before anything is written.
    items = fresh_items(frozen, test.tasks, int(seed, 16))
    _write_secret(secret, seed)
    commitment = seed_hash(seed)
    fresh = write_fresh_items(folder / FRESH_ITEMS, f"fresh-{commitment[:8]}", frozen, items)
    registration = Registration(
        model=test.model,
        reasoning=test.reasoning,
        dataset=frozen.ref(folder),
        tasks=test.tasks,
        pairs=test.design.pairs,
        samples=test.samples,
        rule=register_rule(test.design, test.margin),
        seed_sha256=commitment,
        fresh_name=fresh.name,
        fresh_sha256=fresh.manifest.sha256,
        created=_now(),
        versions={"numbench": __version__, "generator": GENERATOR_VERSION},
    )
    jsonl.write_json(folder / CERTIFICATE, registration)
    return registration


def check_same(test: MemoryTest, stored: Registration) -> None:
    """Raise BadInput if `test` is not what was registered: nothing of it may change."""
    compared: dict[str, tuple[object, object]] = {
        "--model": (stored.model, test.model),
        "reasoning": (stored.reasoning, test.reasoning),
        "dataset hash": (stored.dataset.sha256[:12], test.frozen.manifest.sha256[:12]),
        "--tasks": (",".join(stored.tasks), ",".join(test.tasks)),
        "--limit": (stored.pairs, test.design.pairs),
        "--samples": (stored.samples, test.samples),
        "--margin": (stored.rule.margin, test.margin),
    }
    for field, (before, now) in compared.items():
        if before != now:
            raise BadInput(
                f"{test.folder} holds a memory test registered with {field} {before}, this one has "
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
        return "the fresh questions are not the registered ones"
    if registration.versions.get("generator") != GENERATOR_VERSION:
        return None
    if fresh_items(frozen, registration.tasks, int(registration.seed, 16)) != fresh.by_task:
        return "the revealed seed gives other questions than the registered ones"
    return None


def seed_hash(seed: str) -> str:
    """Return the SHA-256 of a seed's hexadecimal digits."""
    return hashlib.sha256(seed.encode()).hexdigest()


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
        raise BadInput(f"{path}: the seed of the fresh questions is missing; restore it")
    seed = path.read_text(encoding="ascii", errors="replace").strip()
    if seed_hash(seed) != commitment:
        raise BadInput(f"{path} is not the registered seed; restore it")
    return seed


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
