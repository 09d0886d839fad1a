"""Where the project's own data lies: beside the package in a checkout, inside it when installed."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def resource(name: str) -> Path:
    """The folder `name` (`prompts`, `datasets`, …) that came with this installation."""
    installed = PACKAGE / "_data" / name
    if installed.is_dir():
        return installed
    checkout = PACKAGE.parent
    return checkout / "results" / name if name == "published" else checkout / name
