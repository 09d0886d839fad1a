"""Convert a checkpoint of the paper's own code to the format of `bittoken`:

    python -m studies.paper_checkpoint FOLDER --encoding bittoken --tokenizer FILE --out CONVERTED

Such a checkpoint is a folder with GPT-2's `config.json` and `model.safetensors`. It lacks the
number encoding, its combination with the embedding, and the number head, so the user names them.
Whatever this module does not know is an error, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import msgspec
import torch
import typer
from msgspec import Struct

from bittoken.checkpoint import (
    CONFIG,
    WEIGHTS,
    build_network,
    parse_weights,
    read_file,
    save_checkpoint,
)
from bittoken.network import Combination, ModelConfig, PositiveInt
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
    TokenizerModel,
    Vocabulary,
)
from numbench.cli import run_app
from numbench.cli.options import print_to_stderr
from numbench.core.jsonl import read_json
from numbench.errors import BadInput

if TYPE_CHECKING:
    from torch import Tensor


_VARIANTS: dict[str, dict[str, str]] = {
    "bittoken": {},
    "bittoken-no-reciprocal": {},
    "base10": {"encoding": "base10-study", "head": "linear"},
    "fone": {"encoding": "fone-study", "combination": "sum", "head": "layer-norm"},
    "xval": {"head": "gelu-mlp"},
    "digit": {},
    "subword": {},
}
"""What the paper's code builds for an encoding, whatever combination and head are configured."""

_COMBINATIONS = get_args(Combination)
_HEADS = ("none", "linear", "mlp")

_NUMBER = "num_embedding_module."
_FREQUENCIES = "transformer.rotary_emb.inv_freq"
_RECOMPUTED = (
    "transformer.rotary_emb.cos_cached",
    "transformer.rotary_emb.sin_cached",
    f"{_NUMBER}precomputed_cos_sin_matrix",
)
"""Stored constants: the first two follow from the frequencies."""

_TRANSPOSED = re.compile(r"transformer\.h\.\d+\.(?:attn|mlp)\.c_\w+\.weight")
_RENAMED = {
    f"{_NUMBER}bit_weight_matrix.": f"{_NUMBER}input.bit_weight_matrix.",
    f"{_NUMBER}layer_norm.": f"{_NUMBER}num_head.0.",
    f"{_NUMBER}num_head.weight": f"{_NUMBER}num_head.0.weight",
    f"{_NUMBER}num_head.bias": f"{_NUMBER}num_head.0.bias",
}
"""Prefixes of names that differ from those of `Network`."""


class _AddedToken(Struct, frozen=True):
    """A token that is not part of the model of a tokenizer."""

    content: str
    id: int


class _Tokenizer(Struct, frozen=True):
    """The parts of a `tokenizer.json` that define token ids."""

    model: TokenizerModel
    added_tokens: list[_AddedToken] = []


class _StudyConfig(Struct, frozen=True, kw_only=True):
    """The fields of `config.json` that are read, with GPT-2's names."""

    n_head: PositiveInt
    n_layer: PositiveInt
    n_positions: PositiveInt = 1024
    rope_theta: float = 10_000.0


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
    for name in _RECOMPUTED:
        weights.pop(name, None)
    frequencies = weights.pop(_FREQUENCIES, None)
    config = _model_config(folder, weights, _variant(encoding, combination, head))
    vocabulary = _read_vocabulary(tokenizer, config)
    native = _native_weights(weights)
    network = build_network(config, vocabulary, native, path)
    if frequencies is not None:
        _check_frequencies(frequencies, config, path)
    training = {"converted": {"encoding": encoding, "combination": combination, "head": head}}
    save_checkpoint(out, network, training, weights=native, study_tokens=vocabulary.base_tokens)


def _variant(encoding: str, combination: str, head: str) -> dict[str, str]:
    """Return the fields of the configuration of the network that the paper's code builds.

    combination: also as the paper's code calls it: prod, zero_pad, weighted_sum. Raises BadInput
    for an unknown name.
    """
    combination = "product" if combination == "prod" else combination.replace("_", "-")
    for value, known, name in (
        (encoding, _VARIANTS, "encoding"),
        (combination, _COMBINATIONS, "combination"),
        (head, _HEADS, "head"),
    ):
        if value not in known:
            raise BadInput(f"unknown {name} {value!r}; use one of {', '.join(known)}")
    configured = {"encoding": encoding, "combination": combination, "head": head}
    return configured | _VARIANTS[encoding]


def _model_config(
    folder: Path, weights: Mapping[str, Tensor], variant: Mapping[str, str]
) -> ModelConfig:
    """Return the configuration of the tensors. Raises BadInput if no network can have it."""
    study = read_json(folder / CONFIG, _StudyConfig)
    shapes = []
    for name in ("transformer.wte.weight", "transformer.h.0.mlp.c_fc.weight"):
        if name not in weights or weights[name].dim() != 2:
            raise BadInput(
                f"{folder / WEIGHTS}: no matrix {name}; not a checkpoint of the paper's code"
            )
        shapes.append(weights[name].shape)
    (vocabulary, width), (_, hidden) = shapes
    return msgspec.convert(
        {
            **variant,
            "norm": "layer" if "transformer.ln_f.bias" in weights else "rms",
            "layers": study.n_layer,
            "heads": study.n_head,
            "width": width,
            "mlp": max(hidden // width, 1),
            "context": study.n_positions,
            "vocabulary": vocabulary,
            "rope_base": study.rope_theta,
        },
        ModelConfig,
    )


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


def _check_frequencies(stored: Tensor, config: ModelConfig, path: Path) -> None:
    """Raise BadInput if the frequencies of rotary positions are not those of `config`."""
    channels = config.width // config.heads
    exponents = torch.arange(0, channels, 2, dtype=torch.float64) / channels
    expected = config.rope_base**-exponents
    # Frequencies of 16 bits are rounded to multiples of up to 2^-9.
    tolerance = 1e-5 if stored.dtype in (torch.float32, torch.float64) else 4e-3
    if stored.shape != expected.shape or (stored.double() - expected).abs().max() > tolerance:
        raise BadInput(
            f"{path}: {_FREQUENCIES} is not that of a network with "
            f"rope_theta={config.rope_base:g} and {channels} channels per head"
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
    needed = [BOS, EOS, EOQ, *LIST_OPERATOR_TOKENS.values(), *INFIX_OPERATOR_TOKENS.values()]
    needed += [COMMA, ": ", " ", *CHOICE_LETTERS]
    if vocabulary.encoding is None:
        needed += [MINUS, POINT, *"0123456789"]
    else:
        needed += [NUM] if vocabulary.encoding.signed else [NUM, MINUS]
    for text in needed:
        try:
            vocabulary.split(text)
        except BadInput:
            raise BadInput(
                f"{path}: no token for {text!r}; use the tokenizer.json of this checkpoint"
            ) from None
    return vocabulary


app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def convert(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Checkpoint of the paper's own code.")
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write.")],
    encoding: Annotated[str, typer.Option(metavar="NAME", help="Encoding it was trained with.")],
    tokenizer: Annotated[Path, typer.Option(metavar="FILE", help="Its tokenizer.json.")],
    combination: Annotated[
        str, typer.Option(metavar="NAME", help="How numbers enter the network.")
    ] = "zero-pad",
    head: Annotated[str, typer.Option(metavar="NAME", help="Its number head.")] = "linear",
) -> None:
    """Convert a checkpoint of the paper's own training code."""
    convert_checkpoint(
        folder, out, encoding=encoding, tokenizer=tokenizer, combination=combination, head=head
    )
    print(out)
    print_to_stderr(f"next: numbench run --model checkpoint/{out}")


if __name__ == "__main__":
    run_app(app, "studies.paper_checkpoint")
