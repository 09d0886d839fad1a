"""Opens a checkpoint folder, whoever wrote it."""

from __future__ import annotations

from pathlib import Path

from bench.bittoken.checkpoint import Loaded, is_ours, load
from bench.bittoken.released import load_released


def open_checkpoint(folder: Path) -> Loaded:
    """The network of a checkpoint of ours or of the study's released code. BadInput as theirs."""
    return load(folder) if is_ours(folder) else load_released(folder)
