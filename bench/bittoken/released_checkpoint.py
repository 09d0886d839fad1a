"""Checkpoints of the study's released code: a folder with `config.json` and `model.safetensors`.

Their `config.json` does not describe the number encoding, so the user adds it in `numbench.json`.
Questions and answers have the layout of the study's training data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import msgspec
from msgspec import Struct

from bittoken.attention import rotary_cos_sin
from bittoken.checkpoint import (
    CONFIG,
    WEIGHTS,
    LoadedCheckpoint,
    build_network,
    is_native_checkpoint,
    load,
    parse_safetensors,
    read_file,
)
from bittoken.config import Combination, Head, ModelConfig, Norm
from bittoken.released_tokenizer import released_token_ids
from numbench.errors import BadInput
from numbench.jsonl import read_json

if TYPE_CHECKING:
    from torch import Tensor

SETTINGS = "numbench.json"
EXAMPLE_SETTINGS = {
    "encoding": "bittoken",
    "combination": "zero-pad",
    "head": "linear",
    "tokenizer": "PATH/tokenizer.json",
}


class _Variant(NamedTuple):
    """What the released code builds for an encoding, in terms of `ModelConfig`.

    combination, head: None if they are as configured for the training; otherwise the released code
    ignores that configuration. failing: combinations with which the released code fails.
    """

    encoding: str
    combination: Combination | None = None
    head: Head | None = None
    failing: tuple[Combination, ...] = ()


_VARIANTS = {
    "bittoken": _Variant("bittoken"),
    "bittoken-no-reciprocal": _Variant("bittoken-no-reciprocal"),
    "base10": _Variant(
        "base10-released", head="linear", failing=("concat", "weighted", "weighted-sum")
    ),
    "fone": _Variant("fone-released", "sum", "layer-norm"),
    "xval": _Variant("xval", "product", "gelu-mlp"),
    "digit": _Variant("digit", "sum", "none"),
    "subword": _Variant("subword", "sum", "none"),
}
"""By the encoding in `numbench.json`."""

_CombinationName = Literal[Combination, "prod", "zero_pad", "weighted_sum"]
"""Combinations by numbench's or by the released code's name."""

_RELEASED_COMBINATIONS: dict[_CombinationName, Combination] = {
    "prod": "product",
    "zero_pad": "zero-pad",
    "weighted_sum": "weighted-sum",
}

_ROPE_PREFIX = "transformer.rotary_emb."
_NUMBER_PREFIX = "num_embedding_module."
_DIGIT_POINTS = f"{_NUMBER_PREFIX}precomputed_cos_sin_matrix"
_TRANSPOSED_NAME = re.compile(r"transformer\.h\.\d+\.(?:attn|mlp)\.c_\w+\.weight")
_NATIVE_PREFIXES = {
    f"{_NUMBER_PREFIX}bit_weight_matrix.": f"{_NUMBER_PREFIX}input.bit_weight_matrix.",
    f"{_NUMBER_PREFIX}layer_norm.": f"{_NUMBER_PREFIX}num_head.0.",
    f"{_NUMBER_PREFIX}num_head.weight": f"{_NUMBER_PREFIX}num_head.0.weight",
    f"{_NUMBER_PREFIX}num_head.bias": f"{_NUMBER_PREFIX}num_head.0.bias",
}
"""Prefixes of names that differ from those of `Network`."""
_LAYER_NAME = re.compile(r"transformer\.h\.(\d+)\.")


class _Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`numbench.json`. tokenizer: relative to the folder. tokens: overrides, by piece.

    combination, head: as configured for the training; required if the encoding leaves a choice.
    """

    encoding: str
    tokenizer: str
    combination: _CombinationName | None = None
    head: Literal["none", "linear", "mlp"] | None = None
    tokens: dict[str, str | list[str]] = {}


class _ReleasedConfig(Struct, frozen=True, kw_only=True):
    """The fields of `config.json` that are read, with GPT-2's names; all are optional."""

    n_layer: int | None = None
    n_head: int | None = None
    n_embd: int | None = None
    vocab_size: int | None = None
    n_positions: int | None = None
    rope_theta: float | None = None


def open_checkpoint(folder: Path) -> LoadedCheckpoint:
    """Load a native or a released checkpoint. Raises BadInput if a file is missing or invalid."""
    return load(folder) if is_native_checkpoint(folder) else load_released(folder)


def load_released(folder: Path) -> LoadedCheckpoint:
    """Load a released checkpoint. Raises BadInput, naming the file, if one is invalid."""
    released = read_json(folder / CONFIG, _ReleasedConfig)
    settings = _read_settings(folder)
    number_settings = _number_settings(settings, folder / SETTINGS)
    path = folder / WEIGHTS
    weights = parse_safetensors(read_file(path), path)
    rope = {name: weights.pop(name) for name in list(weights) if name.startswith(_ROPE_PREFIX)}
    config = _model_config(released, number_settings, weights, rope, path)
    _check_rope(rope, config, path)
    _check_digit_points(weights.pop(_DIGIT_POINTS, None), path)
    tokenizer = folder / Path(settings.tokenizer).expanduser()
    overrides = {
        piece: [tokens] if isinstance(tokens, str) else tokens
        for piece, tokens in settings.tokens.items()
    }
    token_ids = released_token_ids(config.encoding, tokenizer, overrides, config.vocabulary)
    network = build_network(config, token_ids, _native_names(weights), path)
    training = {"released": msgspec.to_builtins(settings)}
    files = (folder / CONFIG, folder / SETTINGS, path, tokenizer)
    return LoadedCheckpoint(network, token_ids, training, files)


def _read_settings(folder: Path) -> _Settings:
    path = folder / SETTINGS
    if not path.is_file():
        raise BadInput(
            f"{folder / CONFIG} does not specify the number encoding: create {path} with the "
            f"settings of its training, for example {json.dumps(EXAMPLE_SETTINGS)}"
        )
    return read_json(path, _Settings)


class _NumberSettings(NamedTuple):
    """The fields of `ModelConfig` that `config.json` does not contain."""

    encoding: str
    combination: Combination
    head: Head


def _number_settings(settings: _Settings, path: Path) -> _NumberSettings:
    """Return the settings in terms of `ModelConfig`.

    Raises BadInput if the released code has no such network, or a field is missing.
    """
    variant = _VARIANTS.get(settings.encoding)
    if variant is None:
        raise BadInput(
            f"{path}: unknown encoding {settings.encoding!r}; use one of {', '.join(_VARIANTS)}"
        )
    configured = variant.combination or settings.combination
    head = variant.head or settings.head
    if configured is None or head is None:
        field = "combination" if configured is None else "head"
        example = json.dumps(EXAMPLE_SETTINGS)
        raise BadInput(f'{path}: missing field "{field}"; for example: {example}')
    combination = cast(Combination, _RELEASED_COMBINATIONS.get(configured, configured))
    if combination in variant.failing:
        raise BadInput(
            f"{path}: the released code has no network with encoding {settings.encoding!r} and "
            f"combination {combination!r}"
        )
    return _NumberSettings(variant.encoding, combination, head)


def _model_config(
    released: _ReleasedConfig,
    settings: _NumberSettings,
    weights: Mapping[str, Tensor],
    rope: Mapping[str, Tensor],
    path: Path,
) -> ModelConfig:
    """Return the configuration of the tensors. Raises BadInput if `config.json` contradicts it."""
    embedding = _matrix(weights, "transformer.wte.weight", path)
    first = _matrix(weights, "transformer.h.0.mlp.c_fc.weight", path)
    vocabulary, width = embedding.shape
    layers = 1 + max(int(match[1]) for name in weights if (match := _LAYER_NAME.match(name)))
    for field, actual in (("n_layer", layers), ("n_embd", width), ("vocab_size", vocabulary)):
        value = getattr(released, field)
        if value is not None and value != actual:
            raise BadInput(f"{path.with_name(CONFIG)}: {field} is {value}, but {path} has {actual}")
    norm: Norm = "layer" if "transformer.ln_f.bias" in weights else "rms"
    optional: dict[str, Any] = {
        field: value
        for field, value in (
            ("context", released.n_positions),
            ("rope_base", released.rope_theta),
        )
        if value is not None
    }
    config = ModelConfig(
        **settings._asdict(),
        vocabulary=vocabulary,
        norm=norm,
        layers=layers,
        heads=_heads(released, rope, width, path),
        width=width,
        mlp=first.shape[1] // width,
        **optional,
    )
    try:
        config.check()
    except BadInput as error:
        raise BadInput(f"{path.with_name(SETTINGS)} and {path}: {error}") from None
    return config


def _heads(released: _ReleasedConfig, rope: Mapping[str, Tensor], width: int, path: Path) -> int:
    if released.n_head is not None:
        return released.n_head
    frequencies = rope.get(f"{_ROPE_PREFIX}inv_freq")
    if frequencies is None or not frequencies.numel():
        raise BadInput(
            f"{path.with_name(CONFIG)}: missing field n_head; add the number of attention heads"
        )
    return width // (2 * frequencies.numel())


def _matrix(weights: Mapping[str, Tensor], name: str, path: Path) -> Tensor:
    if name not in weights or weights[name].dim() != 2:
        raise BadInput(f"{path}: no matrix {name}; not a checkpoint of the released code")
    return weights[name]


def _native_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors with the names and shapes of `Network`.

    The released code stores the matrices of the blocks transposed, as (in, out).
    """
    native = {}
    for name, tensor in weights.items():
        native_name = name
        for prefix, replacement in _NATIVE_PREFIXES.items():
            if name.startswith(prefix):
                native_name = replacement + name.removeprefix(prefix)
        native[native_name] = tensor.T if _TRANSPOSED_NAME.fullmatch(name) else tensor
    return native


def _check_digit_points(points: Tensor | None, path: Path) -> None:
    """Raise BadInput if the stored points of FoNE's digits are not those of base 10."""
    import torch

    if points is None:
        return
    angles = torch.arange(10, dtype=torch.float64) * (2 * torch.pi / 10)
    expected = torch.stack([angles.cos(), angles.sin()])
    if points.shape != expected.shape or (points.double() - expected).abs().max() > 1e-2:
        raise BadInput(f"{path}: {_DIGIT_POINTS} is not that of base 10; only that is supported")


def _check_rope(rope: Mapping[str, Tensor], config: ModelConfig, path: Path) -> None:
    """Raise BadInput if stored rotary embeddings differ from those that `Network` computes."""
    import torch

    channels = config.width // config.heads
    for name, tensor in rope.items():
        kind = name.removeprefix(_ROPE_PREFIX)
        stored = tensor.double()
        if kind == "inv_freq":
            exponents = torch.arange(0, channels, 2, dtype=torch.float64) / channels
            expected = config.rope_base**-exponents
            stored = stored.flatten()
        elif kind in ("cos_cached", "sin_cached") and stored.dim() >= 2:
            stored = stored.flatten(0, -2)
            positions = torch.arange(len(stored))
            angles = rotary_cos_sin(positions, channels, config.rope_base, torch.float64)
            half = angles[0 if kind == "cos_cached" else 1][:, 0]
            is_half = stored.shape[-1] == channels // 2
            expected = half if is_half else torch.cat([half, half], dim=-1)
        else:
            raise BadInput(f"{path}: unknown tensor {name}")
        # 16-bit buffers are rounded to multiples of up to 2^-8.
        atol = 1e-3 if tensor.dtype in (torch.float32, torch.float64) else 1e-2
        if stored.shape != expected.shape or not torch.allclose(
            stored, expected, rtol=0, atol=atol
        ):
            raise BadInput(
                f"{path}: the rotary embedding {name} does not match rope_base="
                f"{config.rope_base:g} with {channels} channels per head; this network is not "
                "supported"
            )
