"""What tells the files of one local model from those of another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def fingerprint(files: Iterable[Path]) -> str:
    """SHA-256 over names and hashes of the files that decide what a model says."""
    ordered = sorted(files)
    with ThreadPoolExecutor(8) as pool:
        lines = pool.map(lambda path: f"{path.name} {_sha256(path)}\n", ordered)
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
