"""Conversion of checkpoints of the paper's own code to the format of this package.

Such a checkpoint is a folder with GPT-2's `config.json` and `model.safetensors`. It lacks the
number encoding, its combination with the embedding, and the number head, so the user names them.
Whatever this module does not know is an error, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast, get_args

import torch
from msgspec import Struct

from bittoken.checkpoint import (
    CONFIG,
    WEIGHTS,
    build_network,
    parse_weights,
    read_file,
    save_checkpoint,
)
from bittoken.network import Combination, Head, ModelConfig, rotary_cos_sin
from bittoken.tokens import (
    BOS,
    CHOICE_LETTERS,
    COMMA,
    EOQ,
    EOS,
    INFIX_OPERATOR_TOKENS,
    LIST_OPERATOR_TOKENS,
    MINUS,
    NUM,
    POINT,
    Vocabulary,
)
from numbench.errors import BadInput
from numbench.jsonl import read_json

if TYPE_CHECKING:
    from torch import Tensor


class _Variant(NamedTuple):
    """What the paper's code builds for an encoding.

    combination, head: None if they are as configured for the training; otherwise the paper's code
    ignores that configuration. unsupported: combinations with which the paper's code fails.
    """

    encoding: str
    combination: Combination | None = None
    head: Head | None = None
    unsupported: tuple[Combination, ...] = ()


_VARIANTS = {
    "bittoken": _Variant("bittoken"),
    "bittoken-no-reciprocal": _Variant("bittoken-no-reciprocal"),
    "base10": _Variant(
        "base10-study", head="linear", unsupported=("concat", "weighted", "weighted-sum")
    ),
    "fone": _Variant("fone-study", "sum", "layer-norm"),
    "xval": _Variant("xval", "product", "gelu-mlp"),
    "digit": _Variant("digit", "sum", "none"),
    "subword": _Variant("subword", "sum", "none"),
}

_COMBINATIONS: dict[str, Combination] = {
    **{name: name for name in get_args(Combination)},
    "prod": "product",
    "zero_pad": "zero-pad",
    "weighted_sum": "weighted-sum",
}
"""The names of `ModelConfig`, and those of the paper's code."""

_HEADS: tuple[Head, ...] = ("none", "linear", "mlp")

_ROPE = "transformer.rotary_emb."
_NUMBER = "num_embedding_module."
_DIGIT_POINTS = f"{_NUMBER}precomputed_cos_sin_matrix"
_TRANSPOSED = re.compile(r"transformer\.h\.\d+\.(?:attn|mlp)\.c_\w+\.weight")
_LAYER = re.compile(r"transformer\.h\.(\d+)\.")
_RENAMED = {
    f"{_NUMBER}bit_weight_matrix.": f"{_NUMBER}input.bit_weight_matrix.",
    f"{_NUMBER}layer_norm.": f"{_NUMBER}num_head.0.",
    f"{_NUMBER}num_head.weight": f"{_NUMBER}num_head.0.weight",
    f"{_NUMBER}num_head.bias": f"{_NUMBER}num_head.0.bias",
}
"""Prefixes of names that differ from those of `Network`."""


class _StudyConfig(Struct, frozen=True, kw_only=True):
    """The fields of `config.json` that are read, with GPT-2's names; all but one are optional."""

    n_head: int
    n_layer: int | None = None
    n_embd: int | None = None
    vocab_size: int | None = None
    n_positions: int = 1024
    rope_theta: float = 10_000.0


class _AddedToken(Struct, frozen=True):
    content: str
    id: int


class _TokenizerModel(Struct, frozen=True):
    vocab: dict[str, int] = {}


class _Tokenizer(Struct, frozen=True):
    """The parts of a Hugging Face `tokenizer.json` that define token ids."""

    model: _TokenizerModel = _TokenizerModel()
    added_tokens: list[_AddedToken] = []


def convert_checkpoint(
    folder: Path,
    out: Path,
    *,
    encoding: str,
    tokenizer: Path,
    combination: str = "zero-pad",
    head: str = "linear",
) -> None:
    """Write a checkpoint of the paper's own code to `out`, in the format of this package.

    encoding, combination, head: as configured for its training.
    tokenizer: its `tokenizer.json`.

    Raises BadInput, naming the file, if one is missing, invalid, or unlike those of the paper's
    code.
    """
    path = folder / WEIGHTS
    weights = parse_weights(read_file(path), path)
    constants = [name for name in weights if name.startswith((_ROPE, _DIGIT_POINTS))]
    buffers = {name: weights.pop(name) for name in constants}
    config = _model_config(folder, weights, _variant(encoding, combination, head))
    _check_buffers(buffers, config, path)
    vocabulary = _read_vocabulary(tokenizer, config)
    native = _native_weights(weights)
    network = build_network(config, vocabulary, native, path)
    training = {"converted": {"encoding": encoding, "combination": combination, "head": head}}
    save_checkpoint(out, network, training, weights=native, study_tokens=vocabulary.base_tokens)


def _variant(encoding: str, combination: str, head: str) -> _Variant:
    """Return the network that the paper's code builds. Raises BadInput if there is none."""
    for value, known, name in (
        (encoding, _VARIANTS, "encoding"),
        (combination, _COMBINATIONS, "combination"),
        (head, _HEADS, "head"),
    ):
        if value not in known:
            raise BadInput(f"unknown {name} {value!r}; use one of {', '.join(known)}")
    variant, configured = _VARIANTS[encoding], _COMBINATIONS[combination]
    if configured in variant.unsupported:
        raise BadInput(
            f"the paper's code has no network with encoding {encoding!r} and combination "
            f"{combination!r}"
        )
    return variant._replace(
        combination=variant.combination or configured, head=variant.head or cast(Head, head)
    )


def _model_config(folder: Path, weights: Mapping[str, Tensor], variant: _Variant) -> ModelConfig:
    """Return the configuration of the tensors. Raises BadInput if `config.json` contradicts it."""
    path, study = folder / WEIGHTS, read_json(folder / CONFIG, _StudyConfig)
    for name in ("transformer.wte.weight", "transformer.h.0.mlp.c_fc.weight"):
        if name not in weights or weights[name].dim() != 2:
            raise BadInput(f"{path}: no matrix {name}; not a checkpoint of the paper's code")
    vocabulary, width = weights["transformer.wte.weight"].shape
    layers = 1 + max(int(match[1]) for name in weights if (match := _LAYER.match(name)))
    for field, actual in (("n_layer", layers), ("n_embd", width), ("vocab_size", vocabulary)):
        value = getattr(study, field)
        if value is not None and value != actual:
            raise BadInput(f"{folder / CONFIG}: {field} is {value}, but {path} has {actual}")
    assert variant.combination is not None and variant.head is not None
    config = ModelConfig(
        encoding=variant.encoding,
        combination=variant.combination,
        head=variant.head,
        norm="layer" if "transformer.ln_f.bias" in weights else "rms",
        layers=layers,
        heads=study.n_head,
        width=width,
        mlp=weights["transformer.h.0.mlp.c_fc.weight"].shape[1] // width,
        context=study.n_positions,
        vocabulary=vocabulary,
        rope_base=study.rope_theta,
    )
    try:
        config.check()
    except BadInput as error:
        raise BadInput(f"{folder / CONFIG}: {error}") from None
    return config


def _native_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors with the names and shapes of `Network`.

    The paper's code stores the matrices of the blocks transposed, as (in, out).
    """
    native = {}
    for name, tensor in weights.items():
        prefix = next((prefix for prefix in _RENAMED if name.startswith(prefix)), "")
        native_name = _RENAMED.get(prefix, "") + name.removeprefix(prefix)
        native[native_name] = tensor.T if _TRANSPOSED.fullmatch(name) else tensor
    return native


def _check_buffers(buffers: Mapping[str, Tensor], config: ModelConfig, path: Path) -> None:
    """Raise BadInput if stored constants differ from those that `Network` computes."""
    channels, turns = config.width // config.heads, torch.arange(10, dtype=torch.float64) / 10
    for name, tensor in buffers.items():
        positions = torch.arange(tensor.shape[0])[None]
        cos, sin = rotary_cos_sin(positions, channels, config.rope_base, torch.float64)
        exponents = torch.arange(0, channels, 2, dtype=torch.float64) / channels
        angles = 2 * torch.pi * turns
        expected = {
            f"{_ROPE}inv_freq": config.rope_base**-exponents,
            f"{_ROPE}cos_cached": cos[0, 0],
            f"{_ROPE}sin_cached": sin[0, 0],
            _DIGIT_POINTS: torch.stack([angles.cos(), angles.sin()]),
        }.get(name)
        if expected is None:
            raise BadInput(f"{path}: unknown tensor {name}")
        # 16-bit buffers are rounded to multiples of up to 2^-8.
        tolerance = 1e-3 if tensor.dtype in (torch.float32, torch.float64) else 1e-2
        if tensor.shape != expected.shape or (tensor.double() - expected).abs().max() > tolerance:
            raise BadInput(
                f"{path}: {name} is not that of a network with rope_theta={config.rope_base:g}, "
                f"{channels} channels per head and digits of base 10"
            )


def _read_vocabulary(path: Path, config: ModelConfig) -> Vocabulary:
    """Return the tokens of a `tokenizer.json`.

    Raises BadInput if one that questions or answers need is missing, or an id is out of range.
    """
    file = read_json(path, _Tokenizer)
    ids = {token.replace("Ġ", " "): token_id for token, token_id in file.model.vocab.items()}
    ids |= {token.content: token.id for token in file.added_tokens}
    tokens = [""] * config.vocabulary
    for token, token_id in ids.items():
        if not 0 <= token_id < config.vocabulary:
            raise BadInput(
                f"{path}: token {token!r} has id {token_id}, but the network has only "
                f"{config.vocabulary} tokens; use the tokenizer.json of this checkpoint"
            )
        tokens[token_id] = NUM if token == "[NUM]" else token
    vocabulary = Vocabulary(config.encoding, study_tokens=tokens)
    special = [BOS, EOS, EOQ, *LIST_OPERATOR_TOKENS.values()]
    texts = [*INFIX_OPERATOR_TOKENS.values(), COMMA, ": ", " ", *CHOICE_LETTERS]
    if vocabulary.encoding is None:
        texts += [MINUS, POINT, *"0123456789"]
    else:
        special.append(NUM)
        texts += [] if vocabulary.encoding.signed else [MINUS]
    for text in (*special, *texts):
        try:
            vocabulary.split(text)
        except BadInput:
            raise BadInput(
                f"{path}: no token for {text!r}; use the tokenizer.json of this checkpoint"
            ) from None
    return vocabulary
