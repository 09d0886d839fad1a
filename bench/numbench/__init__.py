"""Measure how well language models compute with numbers, and how many tokens that takes.

The names listed in `__all__` are the public API; `docs/reference.md` shows how to use them.
Everything else in the package is internal and may change without notice. `__init__.pyi` says where
the names are; they load on first use, so that `import numbench` stays fast.
"""

from __future__ import annotations

from importlib import import_module

from numbench._version import __version__ as __version__
from numbench.core.lazy_names import names_of_stub

_MODULE_OF = names_of_stub(__file__)

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'numbench' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
