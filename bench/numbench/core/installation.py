"""What is installed: the data folders of this package, and plugins of others as entry points."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from numbench.errors import BadInput

PACKAGE = Path(__file__).resolve().parents[1]


def resource_folder(name: str) -> Path:
    """Return the folder `name` (`prompts`, `datasets`, ...) of this installation."""
    installed = PACKAGE / "_data" / name
    if installed.is_dir():
        return installed
    checkout = PACKAGE.parents[1]
    return checkout / "results" / name if name == "published" else checkout / name


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


T = TypeVar("T")


def load_plugins(group: str, type_: type[T]) -> list[tuple[str, T]]:
    """Return the objects of an entry-point group with their entry-point names, sorted by name.

    Raises BadInput, naming the entry point and its package, if one cannot be imported or is not
    a `type_`, or if two packages register the same name.
    """
    plugins: dict[str, T] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value)):
        if entry.name in plugins:
            raise BadInput(
                f"{describe_entry_point(entry)}: the name {entry.name!r} is registered twice; "
                "uninstall one of the packages"
            )
        plugins[entry.name] = _load(entry, type_)
    return list(plugins.items())


def describe_entry_point(entry: EntryPoint) -> str:
    """Return how messages refer to an entry point."""
    package = f" of package {entry.dist.name}" if entry.dist else ""
    return f"plugin {entry.value}{package} (entry point {entry.name!r} in {entry.group})"


def _load(entry: EntryPoint, type_: type[T]) -> T:
    source = describe_entry_point(entry)
    try:
        plugin = entry.load()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise BadInput(f"{source} cannot be loaded ({reason}); fix or uninstall it") from error
    if not isinstance(plugin, type_):
        raise BadInput(
            f"{source} is a {type(plugin).__name__}, not a {type_.__name__}; fix or uninstall it"
        )
    return plugin
