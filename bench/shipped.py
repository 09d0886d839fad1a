"""The small models that come with the package, `checkpoint/NAME`: where they lie."""

from __future__ import annotations

from pathlib import Path

from bench.paths import resource


def shipped() -> list[str]:
    """The names of the checkpoints that came with this installation."""
    return sorted(path.parent.name for path in resource("checkpoints").glob("*/config.json"))


def checkpoint_folder(name: str) -> Path:
    """The folder of `checkpoint/NAME`: of the checkpoint that came along, or else a path.

    A folder of one's own that has such a name is told apart by `checkpoint/./NAME`.
    """
    if name in shipped():
        return resource("checkpoints") / name
    return Path(name).expanduser()


def came_along(folder: Path) -> bool:
    """Whether this is the folder of a checkpoint that came with this installation."""
    return folder.resolve().parent == resource("checkpoints").resolve()
