"""Checks of the folder that a command is to write, before it does any work."""

from __future__ import annotations

from pathlib import Path

from numbench.errors import BadInput


def check_output_folder(out: Path) -> None:
    """Raise BadInput if `out` cannot be a folder, because it or a folder above it is a file."""
    for path in (out, *out.parents):
        if path.is_dir():
            return
        if path.exists():
            raise BadInput(f"{path} is a file; --out names a folder")
