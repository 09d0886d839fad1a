"""TOML files as records."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from bench.errors import BadInput

T = TypeVar("T")


def read_toml(path: Path, kind: type[T]) -> T:
    """What `path` holds. BadInput where it cannot be read, or is no such record."""
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), kind)
    # Neither bytes that are no text nor text that is no TOML raises anything narrower.
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}") from error
