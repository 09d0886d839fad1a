"""Small language models whose numbers are single tokens, and the encodings of those tokens.

    from bittoken import ENCODINGS, BitToken, FoNE, XVal, Base10, NumberEncoding
    from bittoken import Network, ModelConfig, Vocabulary, load_checkpoint, generate

docs/bittoken.md shows how to use an encoding in a model of your own. `__init__.pyi` says where the
names are; they load on first use, since torch takes seconds.
"""

from __future__ import annotations

from importlib import import_module

from numbench.core.lazy_names import names_of_stub

_MODULE_OF = names_of_stub(__file__)

__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULE_OF[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("bittoken"):
            raise
        raise ImportError(
            f"bittoken.{name} needs {error.name}: pip install 'numbench[local]'"
        ) from error
