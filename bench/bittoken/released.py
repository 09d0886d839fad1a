"""Checkpoints of the study's released code: a folder with `config.json` and `model.safetensors`.

Their config lacks what numbers are to the network, so the user writes it into `numbench.json`
beside it. Their token ids are those of a `tokenizer.json`, in which the pieces of our questions
are looked up: a special token by its name or a usual other one, other pieces by longest match, as
the released code splits text. `"tokens": {"<|eoq|>": "<|question_end|>", " + ": [" +", " "]}` in
`numbench.json` names what goes by another name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from bench.bittoken.attention import rotation
from bench.bittoken.checkpoint import (
    CONFIG,
    WEIGHTS,
    Loaded,
    build,
    content_of,
    read_json,
    tensors,
)
from bench.bittoken.config import Combination, Head, ModelConfig, Norm
from bench.bittoken.released_tokens import released_lexicon
from bench.bittoken.vocabulary import GROUPS
from bench.errors import BadInput

if TYPE_CHECKING:
    from torch import Tensor

NAMED = "numbench.json"
EXAMPLE = {
    "encoding": "bittoken",
    "combination": "zero-pad",
    "head": "linear",
    "tokenizer": "PATH/tokenizer.json",
}

_ROPE = "transformer.rotary_emb."
_HEAD = "num_embedding_module."
_TRANSPOSED = re.compile(r"transformer\.h\.\d+\.(?:attn|mlp)\.c_\w+\.weight")
_LAYER = re.compile(r"transformer\.h\.(\d+)\.")


class _Named(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`numbench.json`. tokenizer: relative to the folder. tokens: by our piece, theirs."""

    encoding: str
    tokenizer: str
    combination: Combination | None = None
    head: Head | None = None
    tokens: dict[str, str | list[str]] = {}


class _Theirs(Struct, frozen=True, kw_only=True):
    """What we read of their `config.json`, by GPT-2's names; all of it can be missing."""

    n_layer: int | None = None
    n_head: int | None = None
    n_embd: int | None = None
    vocab_size: int | None = None
    n_positions: int | None = None
    rope_theta: float | None = None


def load_released(folder: Path) -> Loaded:
    """The network of a released checkpoint. BadInput, naming the file, for what is amiss."""
    theirs = read_json(folder / CONFIG, _Theirs)
    named = _named(folder)
    path = folder / WEIGHTS
    weights = tensors(content_of(path), path)
    rope = {name: weights.pop(name) for name in list(weights) if name.startswith(_ROPE)}
    config = _shape(theirs, named, weights, rope, path)
    _check_rope(rope, config, path)
    tokenizer = folder / Path(named.tokenizer).expanduser()
    lexicon = released_lexicon(
        named.encoding,
        tokenizer,
        {ours: [to] if isinstance(to, str) else to for ours, to in named.tokens.items()},
        config.vocabulary,
    )
    network = build(config, lexicon, _ours(weights), path)
    training = {"released": msgspec.to_builtins(named)}
    files = (folder / CONFIG, folder / NAMED, path, tokenizer)
    return Loaded(network, lexicon, training, files)


def _named(folder: Path) -> _Named:
    path = folder / NAMED
    if not path.is_file():
        raise BadInput(
            f"{folder / CONFIG} does not say how numbers enter the network: write {path} with what "
            f"it was trained with, such as {json.dumps(EXAMPLE)}"
        )
    named = read_json(path, _Named)
    for field in ("combination", "head"):
        if named.encoding not in GROUPS and getattr(named, field) is None:
            raise BadInput(f'{path} lacks "{field}", such as {json.dumps(EXAMPLE)}')
    return named


def _shape(
    theirs: _Theirs,
    named: _Named,
    weights: Mapping[str, Tensor],
    rope: Mapping[str, Tensor],
    path: Path,
) -> ModelConfig:
    """The network's shape: what the tensors say, with which the config must agree."""
    embedding = _matrix(weights, "transformer.wte.weight", path)
    first = _matrix(weights, "transformer.h.0.mlp.c_fc.weight", path)
    vocabulary, width = embedding.shape
    layers = 1 + max(int(match[1]) for name in weights if (match := _LAYER.match(name)))
    for field, found in (("n_layer", layers), ("n_embd", width), ("vocab_size", vocabulary)):
        said = getattr(theirs, field)
        if said is not None and said != found:
            raise BadInput(f"{path.with_name(CONFIG)}: {field} is {said}, but {path} has {found}")
    norm: Norm = "layer" if "transformer.ln_f.bias" in weights else "rms"
    changed: dict[str, Any] = {
        field: value
        for field, value in (
            ("combination", named.combination),
            ("head", named.head),
            ("context", theirs.n_positions),
            ("rope_base", theirs.rope_theta),
        )
        if value is not None
    }
    config = ModelConfig(
        encoding=named.encoding,
        vocabulary=vocabulary,
        norm=norm,
        layers=layers,
        heads=_heads(theirs, rope, width, path),
        width=width,
        mlp=first.shape[1] // width,
        **changed,
    )
    try:
        config.check()
    except BadInput as error:
        raise BadInput(f"{path.with_name(NAMED)} and {path}: {error}") from None
    return config


def _heads(theirs: _Theirs, rope: Mapping[str, Tensor], width: int, path: Path) -> int:
    if theirs.n_head is not None:
        return theirs.n_head
    frequencies = rope.get(f"{_ROPE}inv_freq")
    if frequencies is None or not frequencies.numel():
        raise BadInput(f"{path.with_name(CONFIG)} lacks n_head: add the number of attention heads")
    return width // (2 * frequencies.numel())


def _matrix(weights: Mapping[str, Tensor], name: str, path: Path) -> Tensor:
    if name not in weights or weights[name].dim() != 2:
        raise BadInput(f"{path} holds no matrix {name}: it is no checkpoint of the released code")
    return weights[name]


def _ours(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their tensors by our names and in our layout: the trunk's matrices are stored (in, out)."""
    renamed = {}
    for name, tensor in weights.items():
        ours = name
        if name.endswith("bit_weight_matrix.weight"):
            ours = f"{_HEAD}input.bit_weight_matrix.weight"
        renamed[ours] = tensor.T if _TRANSPOSED.fullmatch(name) else tensor
    return renamed


def _check_rope(rope: Mapping[str, Tensor], config: ModelConfig, path: Path) -> None:
    """BadInput where the stored angles are not those that we compute.

    At 16 bits the buffers are as coarse as 2^-8.
    """
    import torch

    channels = config.width // config.heads
    for name, tensor in rope.items():
        kind = name.removeprefix(_ROPE)
        found = tensor.double()
        if kind == "inv_freq":
            steps = torch.arange(0, channels, 2, dtype=torch.float64) / channels
            ours = config.rope_base**-steps
            found = found.flatten()
        elif kind in ("cos_cached", "sin_cached") and found.dim() >= 2:
            found = found.flatten(0, -2)
            positions = torch.arange(len(found))
            angles = rotation(positions, channels, config.rope_base, torch.float64)
            half = angles[0 if kind == "cos_cached" else 1][:, 0]
            ours = half if found.shape[-1] == channels // 2 else torch.cat([half, half], dim=-1)
        else:
            raise BadInput(f"{path}: unknown tensor {name}")
        near = 1e-3 if tensor.dtype in (torch.float32, torch.float64) else 1e-2
        if found.shape != ours.shape or not torch.allclose(found, ours, rtol=0, atol=near):
            raise BadInput(
                f"{path}: {name} holds other rotary positions than ours (base "
                f"{config.rope_base:g}, {channels} channels): this network cannot be rebuilt"
            )
