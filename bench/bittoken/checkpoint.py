"""Native checkpoints: a folder with `model.safetensors` and `config.json`.

`config.json` contains the format and its version, the package version, the configuration of the
network, the base tokens of the vocabulary, the file name of the text tokenizer (if any), metadata
of the training, and the SHA-256 of the other files, so that files of different checkpoints are
never mixed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import torch
from msgspec import Struct

from bittoken.config import ModelConfig
from bittoken.network import Network
from bittoken.token_ids import TokenIds
from bittoken.vocabulary import Vocabulary
from numbench._version import __version__
from numbench.errors import BadInput, NumbenchError
from numbench.jsonl import read_json

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
FORMAT = "numbench-checkpoint"
VERSION = 2
"""Version 1 had other definitions of the combinations "zero-pad" and "concat" and of LayerNorm."""


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A network in float32 on the CPU, in evaluation mode, with its token ids.

    training: metadata of the training. files: all files of the checkpoint.
    """

    network: Network
    token_ids: TokenIds
    training: Mapping[str, Any]
    files: tuple[Path, ...]

    @property
    def vocabulary(self) -> Vocabulary:
        return self.token_ids.vocabulary


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


class _ConfigHeader(Struct, frozen=True):
    """The fields of any `config.json` that identify its format."""

    format: Any = None
    version: Any = None


class AddedToken(Struct, frozen=True):
    """A special token in `tokenizer.json`."""

    content: str
    id: int


class TokenizerModel(Struct, frozen=True):
    """The part of `tokenizer.json` that maps tokens to ids."""

    vocab: dict[str, int] = {}


class TokenizerFile(Struct, frozen=True):
    """The parts of a Hugging Face `tokenizer.json` that define token ids."""

    model: TokenizerModel = TokenizerModel()
    added_tokens: list[AddedToken] = []


def is_native_checkpoint(folder: Path) -> bool:
    """Return whether `folder` contains a native checkpoint, of any version.

    Raises BadInput if there is no `config.json` or it is invalid.
    """
    if not (folder / CONFIG).exists():
        subfolder = folder / "checkpoint"
        hint = f"; did you mean {subfolder}?" if (subfolder / CONFIG).exists() else ""
        raise BadInput(f"{folder} is not a checkpoint: {CONFIG} is missing{hint}")
    return bool(read_json(folder / CONFIG, _ConfigHeader).format == FORMAT)


def save(
    folder: Path,
    network: Network,
    training: Mapping[str, Any],
    text_tokenizer: Path | None = None,
    dtype: torch.dtype | None = None,
    weights: Mapping[str, Tensor] | None = None,
) -> None:
    """Write a checkpoint to `folder`, replacing an existing one.

    training: metadata of the training, serialisable as JSON. text_tokenizer: the tokenizer file of
    the text vocabulary, which is copied. dtype: the type of the stored weights, by default their
    own; bfloat16 halves the size. weights: stored instead of the network's own weights, with the
    same names.

    Raises NumbenchError if a file cannot be written.
    """
    from safetensors.torch import save as to_bytes

    tensors = {
        name: tensor.detach().to("cpu", dtype or tensor.dtype).contiguous()
        for name, tensor in (weights or network.state_dict()).items()
    }
    weights_data = to_bytes(tensors, {"format": "pt"})
    tokenizer_data = None if text_tokenizer is None else read_file(text_tokenizer)
    config = _Config(
        format=FORMAT,
        version=VERSION,
        numbench=__version__,
        model=network.config,
        tokens=Vocabulary(network.config.encoding).base_tokens,
        weights_sha256=_sha256(weights_data),
        text_tokenizer=None if tokenizer_data is None else TOKENIZER,
        text_tokenizer_sha256=None if tokenizer_data is None else _sha256(tokenizer_data),
        training=dict(training),
    )
    config_data = msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n"
    files = {} if tokenizer_data is None else {TOKENIZER: tokenizer_data}
    files |= {WEIGHTS: weights_data, CONFIG: config_data}
    try:
        _replace_files(folder, files)
    except OSError as error:
        raise NumbenchError(f"{folder}: cannot write the checkpoint: {error.strerror}") from error


def _replace_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files under temporary names before the first one replaces an existing file.

    Thus a full disk leaves the previous checkpoint intact.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        with (folder / f"{name}.new").open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    for name in files:
        (folder / f"{name}.new").replace(folder / name)


def load(folder: Path) -> LoadedCheckpoint:
    """Load a native checkpoint.

    Raises BadInput, naming the file, if a file is missing, damaged, of another version of the
    format, or does not match the others.
    """
    header = read_json(folder / CONFIG, _ConfigHeader)
    if header.format != FORMAT or header.version not in (1, VERSION):
        raise BadInput(
            f"{folder / CONFIG}: unsupported format {header.format} {header.version}; this version "
            f"of numbench reads {FORMAT} 1 and {VERSION}. Use the version that wrote the checkpoint"
        )
    config = read_json(folder / CONFIG, _Config)
    if config.version == 1:
        _check_definitions(config, folder / CONFIG)
    vocabulary = _load_vocabulary(folder, config)
    weights_path = folder / WEIGHTS
    weights_data = read_file(weights_path)
    _check_sha256(weights_path, weights_data, config.weights_sha256)
    token_ids = TokenIds.from_vocabulary(vocabulary)
    weights = parse_safetensors(weights_data, weights_path)
    network = build_network(config.model, token_ids, weights, weights_path)
    names = [CONFIG, WEIGHTS, *filter(None, [config.text_tokenizer])]
    files = tuple(folder / name for name in names)
    return LoadedCheckpoint(network, token_ids, config.training, files)


def _check_definitions(config: _Config, path: Path) -> None:
    """Raise BadInput if the network was trained with definitions that have changed since."""
    changed = [
        f"{field} {value!r}"
        for field, value, values in (
            ("combination", config.model.combination, ("zero-pad", "concat")),
            ("norm", config.model.norm, ("layer",)),
        )
        if value in values
    ]
    if changed:
        raise BadInput(
            f"{path}: trained with an earlier definition of {' and '.join(changed)}: use numbench "
            f"{config.numbench}, or train the network again"
        )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _check_sha256(path: Path, data: bytes, expected: str) -> None:
    if _sha256(data) != expected:
        raise BadInput(
            f"{path}: the content does not match the SHA-256 in {CONFIG} (damaged, or from another "
            "checkpoint): copy the folder again"
        )


def build_network(
    config: ModelConfig, token_ids: TokenIds, weights: Mapping[str, Tensor], path: Path
) -> Network:
    """Return a network with these weights, converted to float32.

    weights: by the names of the network's state dict. path: the file of the weights, for messages.

    Raises BadInput if the configuration is invalid, or if a tensor is missing, unknown or has
    another shape.
    """
    try:
        with torch.device("meta"):
            network = Network(config, token_ids.number_id)
    except BadInput as error:
        raise BadInput(f"{path.with_name(CONFIG)}: {error}") from None
    _check_tensors(network, weights, path)
    network.load_state_dict(
        {name: tensor.float().contiguous() for name, tensor in weights.items()}, assign=True
    )
    return network.eval()


def _check_tensors(network: Network, weights: Mapping[str, Tensor], path: Path) -> None:
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    actual = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for problem, names in (
        ("missing", expected.keys() - actual.keys()),
        ("unknown", actual.keys() - expected.keys()),
    ):
        if names:
            first, *others = sorted(names)
            more = f" and {len(others)} more" if others else ""
            raise BadInput(
                f"{path}: {problem} tensor {first}{more}; the file does not match {CONFIG}"
            )
    for name in sorted(expected):
        if actual[name] != expected[name]:
            raise BadInput(
                f"{path}: {name} has shape {_format_shape(actual[name])}, but {CONFIG} requires "
                f"{_format_shape(expected[name])}"
            )


def _format_shape(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "scalar"


def parse_safetensors(data: bytes, path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file. Raises BadInput if `data` is invalid."""
    from safetensors import SafetensorError
    from safetensors.torch import load as from_bytes

    try:
        weights: dict[str, Tensor] = from_bytes(data)
    except (SafetensorError, KeyError, ValueError) as error:
        message = " ".join(str(error).split())[:200]
        raise BadInput(
            f"{path}: damaged or not a safetensors file ({message}): copy it again"
        ) from None
    return weights


def _load_vocabulary(folder: Path, config: _Config) -> Vocabulary:
    text_tokens = _text_tokens(folder, config.text_tokenizer)
    if config.text_tokenizer is not None and config.text_tokenizer_sha256 is not None:
        path = folder / config.text_tokenizer
        _check_sha256(path, read_file(path), config.text_tokenizer_sha256)
    try:
        vocabulary = Vocabulary(config.model.encoding, text_tokens)
    except BadInput as error:
        raise BadInput(f"{folder / CONFIG}: {error}") from None
    if vocabulary.base_tokens != config.tokens:
        raise BadInput(
            f"{folder / CONFIG}: the tokens differ from those of this version of numbench; "
            f"use version {config.numbench}"
        )
    if len(vocabulary) > config.model.vocabulary:
        raise BadInput(
            f"{folder / CONFIG}: the vocabulary has {len(vocabulary)} tokens, but the network "
            f"only {config.model.vocabulary}: copy the tokenizer of this checkpoint"
        )
    return vocabulary


def _text_tokens(folder: Path, name: str | None) -> list[str]:
    """Return the tokens of the text tokenizer in the order of their ids; [] if `name` is None."""
    if name is None:
        return []
    if Path(name).name != name:
        raise BadInput(f"{folder / CONFIG}: text_tokenizer must be the name of a file in {folder}")
    vocab = read_json(folder / name, TokenizerFile).model.vocab
    if not vocab:
        raise BadInput(f"{folder / name}: model.vocab is missing or empty")
    return sorted(vocab, key=vocab.__getitem__)


def read_file(path: Path) -> bytes:
    """Return the bytes of a file. Raises BadInput if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
