"""Our checkpoints: a folder with `model.safetensors` and `config.json`, which rebuild a network.

`config.json` holds the format and its version, the package's version, the network's shape, the
vocabulary's own tokens, the name of the text tokenizer's file where there is one, what is known of
the training, and the SHA-256 of the other files, so that those of different checkpoints never mix.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import torch
from msgspec import Struct

from bench import __version__
from bench.bittoken.config import ModelConfig
from bench.bittoken.lexicon import Lexicon
from bench.bittoken.network import Network
from bench.bittoken.vocabulary import Vocabulary
from bench.errors import BadInput, NumbenchError

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
FORMAT = "numbench-checkpoint"
VERSION = 1

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Loaded:
    """A network in float32 on the CPU, ready to answer, and what belongs to it.

    training: what its checkpoint says of its training. files: all that it was read from.
    """

    network: Network
    lexicon: Lexicon
    training: Mapping[str, Any]
    files: tuple[Path, ...]

    @property
    def vocabulary(self) -> Vocabulary:
        return self.lexicon.vocabulary


class _Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`config.json`."""

    format: str
    version: int
    numbench: str
    model: ModelConfig
    tokens: tuple[str, ...]
    weights_sha256: str
    text_tokenizer: str | None = None
    text_tokenizer_sha256: str | None = None
    training: dict[str, Any] = {}


class _Kind(Struct, frozen=True):
    """What is read first of any `config.json`."""

    format: Any = None
    version: Any = None


def is_ours(folder: Path) -> bool:
    """Whether `folder` holds a checkpoint of this format, of any version. BadInput as `load`."""
    if not (folder / CONFIG).exists():
        inside = folder / "checkpoint"
        hint = f": the one of this training is {inside}" if (inside / CONFIG).exists() else ""
        raise BadInput(f"{folder} holds no checkpoint, {CONFIG} is missing{hint}")
    return bool(read_json(folder / CONFIG, _Kind).format == FORMAT)


def save(
    folder: Path,
    network: Network,
    training: Mapping[str, Any],
    text_tokenizer: Path | None = None,
    dtype: torch.dtype | None = None,
    weights: Mapping[str, Tensor] | None = None,
) -> None:
    """Write a checkpoint to `folder`, in the place of one that lies there.

    weights: what is stored instead of the network's own, by the same names.

    training: what is to be known of the training, as JSON holds it. text_tokenizer: the file of
    the text vocabulary, copied beside the weights. dtype: of the stored weights, theirs where none
    is given; bfloat16 halves the size. NumbenchError where the disk refuses it.
    """
    from safetensors.torch import save as to_bytes

    stored = {
        name: tensor.detach().to("cpu", dtype or tensor.dtype).contiguous()
        for name, tensor in (weights or network.state_dict()).items()
    }
    content = to_bytes(stored, {"format": "pt"})
    tokenizer = None if text_tokenizer is None else content_of(text_tokenizer)
    config = _Config(
        format=FORMAT,
        version=VERSION,
        numbench=__version__,
        model=network.config,
        tokens=Vocabulary(network.config.encoding).own,
        weights_sha256=hashlib.sha256(content).hexdigest(),
        text_tokenizer=None if tokenizer is None else TOKENIZER,
        text_tokenizer_sha256=None if tokenizer is None else hashlib.sha256(tokenizer).hexdigest(),
        training=dict(training),
    )
    described = msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = {WEIGHTS: content, CONFIG: described}
        if tokenizer is not None:
            files = {TOKENIZER: tokenizer} | files
        for name, written in files.items():
            _write(folder / f"{name}.new", written)
        for name in files:
            (folder / f"{name}.new").replace(folder / name)
    except OSError as error:
        raise NumbenchError(f"{folder}: the checkpoint is not written: {error.strerror}") from error


def load(folder: Path) -> Loaded:
    """The network of a checkpoint of ours.

    BadInput, naming the file, where one is missing, damaged, of another version of the format, or
    does not fit the others.
    """
    kind = read_json(folder / CONFIG, _Kind)
    if (kind.format, kind.version) != (FORMAT, VERSION):
        raise BadInput(
            f"{folder / CONFIG}: format {kind.format} {kind.version}, but this version of numbench "
            f"reads {FORMAT} {VERSION}: use the version that wrote it"
        )
    config = read_json(folder / CONFIG, _Config)
    vocabulary = _vocabulary(folder, config)
    content = content_of(folder / WEIGHTS)
    _check_sum(folder / WEIGHTS, content, config.weights_sha256, "weights")
    lexicon = Lexicon.of(vocabulary)
    network = build(config.model, lexicon, tensors(content, folder / WEIGHTS), folder / WEIGHTS)
    names = [CONFIG, WEIGHTS, *filter(None, [config.text_tokenizer])]
    return Loaded(network, lexicon, config.training, tuple(folder / name for name in names))


def _check_sum(path: Path, content: bytes, expected: str, what: str) -> None:
    if hashlib.sha256(content).hexdigest() != expected:
        raise BadInput(
            f"{path}: not the {what} that {CONFIG} describes (damaged, or of another checkpoint): "
            "copy the folder again"
        )


def build(
    config: ModelConfig, lexicon: Lexicon, weights: Mapping[str, Tensor], path: Path
) -> Network:
    """The network with `weights`, given by its own names, as float32.

    BadInput, naming the file `path`, where one is missing, too many or of another shape, or where
    no network has the shape `config`.
    """
    try:
        with torch.device("meta"):
            network = Network(config, lexicon.number)
    except BadInput as error:
        raise BadInput(f"{path.with_name(CONFIG)}: {error}") from None
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for what, names in (
        ("lacks", expected.keys() - found.keys()),
        ("holds the unknown", found.keys() - expected.keys()),
    ):
        if names:
            first, *others = sorted(names)
            more = f" and {len(others)} more" if others else ""
            raise BadInput(f"{path} {what} tensor {first}{more}: it does not fit {CONFIG}")
    for name in sorted(expected):
        if found[name] != expected[name]:
            raise BadInput(
                f"{path}: {name} has shape {_shown(found[name])}, but {CONFIG} says "
                f"{_shown(expected[name])}"
            )
    network.load_state_dict(
        {name: tensor.float().contiguous() for name, tensor in weights.items()}, assign=True
    )
    return network.eval()


def tensors(content: bytes, path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file's content. BadInput, naming `path`, where it is none."""
    from safetensors import SafetensorError
    from safetensors.torch import load as from_bytes

    try:
        weights: dict[str, Tensor] = from_bytes(content)
    except (SafetensorError, KeyError, ValueError) as error:
        said = " ".join(str(error).split())[:200]
        raise BadInput(f"{path}: damaged, or no safetensors ({said}): copy it again") from None
    return weights


def _vocabulary(folder: Path, config: _Config) -> Vocabulary:
    text = text_tokens(folder, config.text_tokenizer)
    if config.text_tokenizer is not None and config.text_tokenizer_sha256 is not None:
        path = folder / config.text_tokenizer
        _check_sum(path, content_of(path), config.text_tokenizer_sha256, "text vocabulary")
    try:
        vocabulary = Vocabulary(config.model.encoding, text)
    except BadInput as error:
        raise BadInput(f"{folder / CONFIG}: {error}") from None
    if vocabulary.own != config.tokens:
        raise BadInput(
            f"{folder / CONFIG}: its tokens are not those of this version of numbench: "
            f"use version {config.numbench}"
        )
    if len(vocabulary) > config.model.vocabulary:
        raise BadInput(
            f"{folder / CONFIG}: {len(vocabulary)} tokens, but the network knows "
            f"{config.model.vocabulary}: copy the tokenizer that belongs to it"
        )
    return vocabulary


def text_tokens(folder: Path, name: str | None) -> list[str]:
    """The tokens of the text tokenizer `name` in the order of their ids; none without one."""
    if name is None:
        return []
    if Path(name).name != name:
        raise BadInput(f"{folder / CONFIG}: text_tokenizer is to be the name of a file beside it")
    found = read_json(folder / name, _Tokenizer).model.vocab
    return sorted(found, key=found.__getitem__)


class _Bpe(Struct, frozen=True):
    vocab: dict[str, int]


class _Tokenizer(Struct, frozen=True):
    """The part of a `tokenizer.json` that names the tokens."""

    model: _Bpe


def read_json(path: Path, kind: type[Kind]) -> Kind:
    """The record of type `kind` in a JSON file. BadInput, naming the file, where it holds none."""
    try:
        return msgspec.json.decode(content_of(path), type=kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadInput(f"{path}: damaged, or no JSON: copy it again") from None


def content_of(path: Path) -> bytes:
    """A file's bytes. BadInput where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _shown(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "scalar"
