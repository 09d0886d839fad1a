"""The project's data folders: in the repository for a checkout, in the package when installed."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def resource_folder(name: str) -> Path:
    """Return the folder `name` (`prompts`, `datasets`, ...) of this installation."""
    installed = PACKAGE / "_data" / name
    if installed.is_dir():
        return installed
    checkout = PACKAGE.parents[1]
    return checkout / "results" / name if name == "published" else checkout / name
