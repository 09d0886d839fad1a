"""The public names of a package, which are imported on first use."""

from __future__ import annotations

import ast
from pathlib import Path


def names_of_stub(module: str) -> dict[str, str]:
    """Return the public names of a package and their modules: the imports of its `__init__.pyi`.

    module: the file of the package's `__init__.py`.
    """
    stub = ast.parse(Path(module).with_suffix(".pyi").read_text("utf-8"))
    imports = (node for node in stub.body if isinstance(node, ast.ImportFrom))
    return {each.name: str(node.module) for node in imports for each in node.names}
