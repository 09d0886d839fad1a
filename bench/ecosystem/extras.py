"""Libraries that numbench runs without."""

from __future__ import annotations

from importlib.util import find_spec

from bench.errors import BadInput


def need(module: str, extra: str) -> None:
    """BadInput that says how to get the library, where it is not installed."""
    if find_spec(module) is None:
        raise BadInput(f"this needs {module}: pip install 'numbench[{extra}]'")
