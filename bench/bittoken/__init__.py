"""Small language models whose numbers are single tokens, and the encodings of those tokens.

    from bittoken import ENCODINGS, BitToken, FoNE, XVal, Base10, NumberEncoding
    from bittoken import Network, ModelConfig, Vocabulary, load_checkpoint, generate

docs/bittoken.md shows how to use an encoding in a model of your own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bittoken.checkpoint import Checkpoint as Checkpoint
    from bittoken.checkpoint import load_checkpoint as load_checkpoint
    from bittoken.checkpoint import save_checkpoint as save_checkpoint
    from bittoken.encodings import ENCODINGS as ENCODINGS
    from bittoken.encodings.base import NumberEncoding as NumberEncoding
    from bittoken.encodings.base10 import Base10 as Base10
    from bittoken.encodings.bittoken import BitToken as BitToken
    from bittoken.encodings.fone import FoNE as FoNE
    from bittoken.encodings.xval import XVal as XVal
    from bittoken.generation import generate as generate
    from bittoken.network import ModelConfig as ModelConfig
    from bittoken.network import Network as Network
    from bittoken.tokens import Samples as Samples
    from bittoken.tokens import Vocabulary as Vocabulary
    from bittoken.tokens import answer_json as answer_json
    from bittoken.tokens import encode_questions as encode_questions

_NAMES = {
    "checkpoint": "Checkpoint load_checkpoint save_checkpoint",
    "encodings": "ENCODINGS",
    "encodings.base": "NumberEncoding",
    "encodings.base10": "Base10",
    "encodings.bittoken": "BitToken",
    "encodings.fone": "FoNE",
    "encodings.xval": "XVal",
    "generation": "generate",
    "network": "ModelConfig Network",
    "tokens": "Samples Vocabulary answer_json encode_questions",
}
"""The modules of the public names. Each is imported on first use, since torch takes seconds."""

_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("bittoken"):
            raise
        raise ImportError(
            f"bittoken.{name} needs {error.name}: pip install 'numbench[local]'"
        ) from error
