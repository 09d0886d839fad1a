"""Checkpoints of the study's released code: a folder with `config.json` and `model.safetensors`.

Their `config.json` does not describe the number encoding, so the user adds it in `numbench.json`.
Token ids are defined by a `tokenizer.json`. A special token is found by its name or a common
alternative name; other pieces are split by longest match, as the released code splits text. The
field "tokens" of `numbench.json` overrides this:
`"tokens": {"<|eoq|>": "<|question_end|>", " + ": [" +", " "]}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from numbench.bittoken.attention import rotary_cos_sin
from numbench.bittoken.checkpoint import (
    CONFIG,
    WEIGHTS,
    LoadedCheckpoint,
    TokenizerFile,
    build_network,
    is_native_checkpoint,
    load,
    parse_safetensors,
    read_file,
)
from numbench.bittoken.config import Combination, Head, ModelConfig, Norm
from numbench.bittoken.token_ids import REPLACEMENT_CHARACTER, TokenIds
from numbench.bittoken.vocabulary import (
    BOS,
    CLOSE_BRACKET,
    COMMA,
    DIGITS_PER_TOKEN,
    EOQ,
    EOS,
    INFIX_OPERATOR_TOKENS,
    LIST_OPERATOR_TOKENS,
    MINUS,
    NUM,
    OPEN_BRACKET,
    POINT,
    Vocabulary,
)
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

_ROPE_PREFIX = "transformer.rotary_emb."
_NUMBER_PREFIX = "num_embedding_module."
_TRANSPOSED_NAME = re.compile(r"transformer\.h\.\d+\.(?:attn|mlp)\.c_\w+\.weight")
_LAYER_NAME = re.compile(r"transformer\.h\.(\d+)\.")


class _Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`numbench.json`. tokenizer: relative to the folder. tokens: overrides, by piece."""

    encoding: str
    tokenizer: str
    combination: Combination | None = None
    head: Head | None = None
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
    path = folder / WEIGHTS
    weights = parse_safetensors(read_file(path), path)
    rope = {name: weights.pop(name) for name in list(weights) if name.startswith(_ROPE_PREFIX)}
    config = _model_config(released, settings, weights, rope, path)
    _check_rope(rope, config, path)
    tokenizer = folder / Path(settings.tokenizer).expanduser()
    overrides = {
        piece: [tokens] if isinstance(tokens, str) else tokens
        for piece, tokens in settings.tokens.items()
    }
    token_ids = released_token_ids(settings.encoding, tokenizer, overrides, config.vocabulary)
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
    settings = read_json(path, _Settings)
    for field in ("combination", "head"):
        if settings.encoding not in DIGITS_PER_TOKEN and getattr(settings, field) is None:
            example = json.dumps(EXAMPLE_SETTINGS)
            raise BadInput(f'{path}: missing field "{field}"; for example: {example}')
    return settings


def _model_config(
    released: _ReleasedConfig,
    settings: _Settings,
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
            ("combination", settings.combination),
            ("head", settings.head),
            ("context", released.n_positions),
            ("rope_base", released.rope_theta),
        )
        if value is not None
    }
    config = ModelConfig(
        encoding=settings.encoding,
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
        if name.endswith("bit_weight_matrix.weight"):
            native_name = f"{_NUMBER_PREFIX}input.bit_weight_matrix.weight"
        native[native_name] = tensor.T if _TRANSPOSED_NAME.fullmatch(name) else tensor
    return native


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


_ALIASES = {
    BOS: ("[BOS]", "<bos>", "<s>", "<|begin_of_text|>", "<|endoftext|>"),
    EOS: ("[EOS]", "<eos>", "</s>", "<|end_of_text|>", "<|endoftext|>"),
    EOQ: ("[EOQ]", "<eoq>", "<|end_of_question|>", "<|endofquestion|>", "<|sep|>", "[SEP]"),
    NUM: ("[NUM]", "<num>", "<NUM>", "<|NUM|>", "<|number|>", "[NUMBER]"),
}
"""Common alternative names of special tokens, the most likely first."""

_MAX_LISTED = 8
"""Missing pieces listed in an error message."""


def released_token_ids(
    encoding: str, path: Path, overrides: Mapping[str, Sequence[str]], size: int
) -> TokenIds:
    """Return the token ids of a network with the tokenizer file `path`.

    overrides: the tokens of some pieces. size: the number of token ids of the network.

    Raises BadInput if a piece has no tokens or an id is not below `size`.
    """
    vocabulary = Vocabulary(encoding)
    pieces = required_pieces(vocabulary)
    unknown = sorted(set(overrides) - set(pieces))
    if unknown:
        raise BadInput(f'numbench.json: unknown piece {unknown[0]!r} in "tokens"')
    ids = _read_token_ids(path, size)
    piece_to_ids, missing = {}, []
    for piece in pieces:
        tokens = [_decode_spaces(token) for token in overrides.get(piece, ())]
        tokens = tokens or _match_tokens(piece, ids)
        if not tokens or any(token not in ids for token in tokens):
            missing.append(piece)
        else:
            piece_to_ids[piece] = tuple(ids[token] for token in tokens)
    if missing:
        names = ", ".join(map(repr, missing[:_MAX_LISTED]))
        more = f" and {len(missing) - _MAX_LISTED} more" if len(missing) > _MAX_LISTED else ""
        raise BadInput(
            f"{path}: no token for {names}{more}; specify them in numbench.json, for example "
            f'"tokens": {{"{missing[0]}": "TOKEN IN tokenizer.json"}}'
        )
    _check_single_tokens(piece_to_ids, vocabulary, path)
    texts = [REPLACEMENT_CHARACTER] * size
    for token, token_id in ids.items():
        texts[token_id] = token
    for piece, token_ids in piece_to_ids.items():
        if len(token_ids) == 1:
            texts[token_ids[0]] = piece
    return TokenIds(vocabulary, piece_to_ids, tuple(texts))


def required_pieces(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the pieces that occur in questions and answers."""
    pieces = (
        BOS, EOS, EOQ,
        *LIST_OPERATOR_TOKENS.values(), *INFIX_OPERATOR_TOKENS.values(),
        OPEN_BRACKET, COMMA, CLOSE_BRACKET,
    )  # fmt: skip
    if vocabulary.encoding is not None:
        return (*pieces, NUM) if vocabulary.encoding.signed else (*pieces, NUM, MINUS)
    digits = tuple(token for token in vocabulary.base_tokens if token.isdecimal())
    return (*pieces, MINUS, POINT, *digits)


def _read_token_ids(path: Path, size: int) -> dict[str, int]:
    """Return the ids of all tokens in `tokenizer.json`, with byte-level spaces as spaces."""
    file = read_json(path, TokenizerFile)
    ids = {_decode_spaces(token): token_id for token, token_id in file.model.vocab.items()}
    ids |= {token.content: token.id for token in file.added_tokens}
    if not ids:
        raise BadInput(f"{path}: no tokens; use the tokenizer.json of the checkpoint")
    invalid = [token for token, token_id in ids.items() if not 0 <= token_id < size]
    if invalid:
        raise BadInput(
            f"{path}: token {invalid[0]!r} has id {ids[invalid[0]]}, but the network has only "
            f"{size} tokens; use the tokenizer.json of this checkpoint"
        )
    return ids


def _decode_spaces(token: str) -> str:
    return token.replace("Ġ", " ")


def _match_tokens(piece: str, ids: Mapping[str, int]) -> list[str]:
    """Return the tokens of a piece, or [] if the tokenizer cannot represent it."""
    if piece in ids:
        return [piece]
    if piece.startswith("<|"):
        return [name for name in _ALIASES.get(piece, ()) if name in ids][:1]
    tokens, rest = [], piece
    while rest:
        prefixes = (rest[:length] for length in range(len(rest), 0, -1))
        token = next((prefix for prefix in prefixes if prefix in ids), None)
        if token is None:
            return []
        tokens.append(token)
        rest = rest[len(token) :]
    return tokens


def _check_single_tokens(
    piece_to_ids: Mapping[str, Sequence[int]], vocabulary: Vocabulary, path: Path
) -> None:
    """Raise BadInput if the end-of-sample token or the number token is more than one token."""
    for piece in (EOS, NUM) if vocabulary.encoding is not None else (EOS,):
        if len(piece_to_ids[piece]) != 1:
            raise BadInput(f"{path}: {piece!r} must be a single token; specify it in numbench.json")
