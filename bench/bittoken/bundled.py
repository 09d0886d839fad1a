"""The checkpoints that are part of the package: `checkpoint/NAME`."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).resolve().parent / "checkpoints"


def bundled_checkpoint_names() -> list[str]:
    """Return the names of the bundled checkpoints."""
    return sorted(path.parent.name for path in _FOLDER.glob("*/config.json"))


def checkpoint_folder(name: str | Path) -> Path:
    """Return the folder of a bundled checkpoint's name, otherwise of a path.

    A local folder with the name of a bundled checkpoint is addressed as `./NAME`.
    """
    if name in bundled_checkpoint_names():
        return _FOLDER / name
    return Path(name).expanduser()


def is_bundled(folder: Path) -> bool:
    """Return whether this is the folder of a bundled checkpoint."""
    return folder.resolve().parent == _FOLDER
