"""Rules for the names of tables and figures that other packages register."""

from __future__ import annotations

import re
from collections.abc import Sequence

from numbench.errors import BadInput

_NAME = re.compile("[a-z0-9][a-z0-9_-]{0,59}")


def check_names(group: str, built_in: Sequence[str], plugins: Sequence[str]) -> None:
    """Check the names of plugins of an entry-point group.

    Raises BadInput if one is not suitable as a file name or is taken.
    """
    taken = set(built_in)
    for name in plugins:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadInput(
                f"plugin {name!r} of {group}: use lower-case letters, digits, '_' and '-' in its "
                "name; fix or uninstall it"
            )
        if name in taken:
            raise BadInput(
                f"plugin {name!r} of {group}: this name is already used; rename or uninstall it"
            )
        taken.add(name)


def describe_error(error: Exception) -> str:
    """Return type and message of an error on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
