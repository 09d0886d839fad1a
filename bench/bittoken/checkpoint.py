"""Checkpoints: a folder with `model.safetensors` and `config.json`.

`config.json` has all that rebuilds the network: its configuration, its tokens, the settings and
results of its training, and the SHA-256 of the other files, so files of different checkpoints are
never mixed. A network that reads text also has `tokenizer.json`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import torch
from msgspec import Struct

from bittoken.network import ModelConfig, Network
from bittoken.tokens import Vocabulary, read_text_tokens
from numbench._version import __version__
from numbench.core.jsonl import read_json, write_atomically
from numbench.errors import BadInput, NumbenchError, bad_input_at

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
FORMAT, VERSION = "bittoken", 1
_CHECKPOINTS = Path(__file__).resolve().parent / "checkpoints"


@dataclass(frozen=True)
class Checkpoint:
    """A network in float32 on the CPU, in evaluation mode, with its vocabulary.

    training: settings and results of the training. files: all files of the checkpoint.
    """

    network: Network
    vocabulary: Vocabulary
    training: Mapping[str, Any]
    files: tuple[Path, ...]


class _Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`config.json`. is_study: whether the tokens are those of the paper's own code."""

    format: str
    version: int
    numbench: str
    model: ModelConfig
    tokens: tuple[str, ...]
    is_study: bool = False
    sha256: dict[str, str]
    training: dict[str, Any] = {}


def save_checkpoint(
    folder: Path,
    network: Network,
    training: Mapping[str, Any],
    text_tokenizer: Path | None = None,
    weights: Mapping[str, Tensor] | None = None,
    study_tokens: tuple[str, ...] | None = None,
) -> None:
    """Write a checkpoint to `folder`, replacing an existing one.

    training: settings and results of the training, for JSON. text_tokenizer: the tokenizer file of
    the text vocabulary, which is copied. weights: stored instead of the network's own weights, with
    the same names; they keep their type. study_tokens: as in `Vocabulary`.

    Raises NumbenchError if a file cannot be written.
    """
    from safetensors.torch import save

    tensors = {
        name: tensor.detach().cpu().contiguous()
        for name, tensor in (weights or network.state_dict()).items()
    }
    files = {WEIGHTS: save(tensors, {"format": "pt"})}
    if text_tokenizer is not None:
        files[TOKENIZER] = read_file(text_tokenizer)
    config = _Config(
        format=FORMAT,
        version=VERSION,
        numbench=__version__,
        model=network.config,
        tokens=study_tokens or Vocabulary(network.config.encoding).base_tokens,
        is_study=study_tokens is not None,
        sha256={name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        training=dict(training),
    )
    files[CONFIG] = msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n"
    try:
        # The weights first: a disk without room for them leaves the previous checkpoint intact.
        for name, data in files.items():
            write_atomically(folder / name, data)
    except OSError as error:
        raise NumbenchError(f"{folder}: cannot write the checkpoint: {error.strerror}") from error


def bundled_checkpoint_names() -> list[str]:
    """Return the names of the checkpoints that are part of the package."""
    return sorted(path.parent.name for path in _CHECKPOINTS.glob("*/config.json"))


def checkpoint_folder(name: str | Path) -> Path:
    """Return the folder of a bundled checkpoint's name, otherwise of a path.

    A local folder with the name of a bundled checkpoint is addressed as `./NAME`.
    """
    if name in bundled_checkpoint_names():
        return _CHECKPOINTS / name
    return Path(name).expanduser()


def load_checkpoint(name: str | Path) -> Checkpoint:
    """Return the bundled checkpoint of this name, or the one in this folder.

    Raises BadInput, naming the file, if a file is missing, damaged, of another format, or does not
    match the others.
    """
    folder = checkpoint_folder(name)
    if not (folder / CONFIG).exists():
        subfolder = folder / "checkpoint"
        hint = f"; did you mean {subfolder}?" if (subfolder / CONFIG).exists() else ""
        raise BadInput(f"{folder} is not a checkpoint: {CONFIG} is missing{hint}")
    header = read_json(folder / CONFIG, dict[str, Any])
    if (header.get("format"), header.get("version")) != (FORMAT, VERSION):
        raise BadInput(
            f"{folder / CONFIG}: not a checkpoint of this version of bittoken; "
            "studies/paper_checkpoint.py converts one of the paper's own code"
        )
    config = read_json(folder / CONFIG, _Config)
    files = {name: folder / name for name in (WEIGHTS, TOKENIZER) if name in config.sha256}
    contents = {name: read_file(path) for name, path in files.items()}
    for name, data in contents.items():
        if hashlib.sha256(data).hexdigest() != config.sha256[name]:
            raise BadInput(
                f"{folder / name}: the content does not match the SHA-256 in {CONFIG} (damaged, or "
                "from another checkpoint): copy the folder again"
            )
    vocabulary = _vocabulary(folder, config)
    weights = parse_weights(contents.get(WEIGHTS, b""), folder / WEIGHTS)
    network = build_network(config.model, vocabulary, weights, folder / WEIGHTS)
    return Checkpoint(network, vocabulary, config.training, (folder / CONFIG, *files.values()))


def build_network(
    config: ModelConfig, vocabulary: Vocabulary, weights: Mapping[str, Tensor], path: Path
) -> Network:
    """Return a network with these weights, converted to float32, in evaluation mode.

    weights: by the names of the network's state dict. path: the file of the weights, for messages.

    Raises BadInput if the configuration is invalid, or if a tensor is missing, unknown or has
    another shape.
    """
    with bad_input_at(path.with_name(CONFIG), BadInput), torch.device("meta"):
        network = Network(config, vocabulary.number_id)
    floats = {name: tensor.float().contiguous() for name, tensor in weights.items()}
    try:
        network.load_state_dict(floats, assign=True)
    except RuntimeError as error:
        message = " ".join(str(error).split())[:300]
        raise BadInput(f"{path} does not match {CONFIG}: {message}") from None
    return network.eval()


def parse_weights(data: bytes, path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file. Raises BadInput if `data` is invalid."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        weights: dict[str, Tensor] = load(data)
    except (SafetensorError, KeyError, ValueError) as error:
        message = " ".join(str(error).split())[:200]
        raise BadInput(
            f"{path}: damaged or not a safetensors file ({message}): copy it again"
        ) from None
    return weights


def read_file(path: Path) -> bytes:
    """Return the bytes of a file. Raises BadInput if it cannot be read."""
    with bad_input_at(path, OSError):
        return path.read_bytes()


def _vocabulary(folder: Path, config: _Config) -> Vocabulary:
    """Return the vocabulary of a checkpoint. Raises BadInput if it does not fit its network."""
    path = folder / CONFIG
    text_tokens: list[str] = []
    if TOKENIZER in config.sha256:
        text_tokens = read_text_tokens(folder / TOKENIZER)
    study_tokens = config.tokens if config.is_study else None
    with bad_input_at(path, BadInput):
        vocabulary = Vocabulary(config.model.encoding, text_tokens, study_tokens)
    if vocabulary.base_tokens != config.tokens:
        raise BadInput(
            f"{path}: the tokens differ from those of this version; use numbench {config.numbench}"
        )
    if len(vocabulary) > config.model.vocabulary:
        raise BadInput(
            f"{path}: the vocabulary has {len(vocabulary)} tokens, but the network only "
            f"{config.model.vocabulary}"
        )
    return vocabulary
