"""Checkpoints in the format of the study's released code.

Weights are not stored anywhere: they follow from the names and shapes of the parameters.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

SPECIAL = ("<|bos|>", "<|eos|>", "<|eoq|>", "[NUM]", "<|min|>", "<|max|>", "<|asc|>", "<|desc|>",
           "<|intva|>", "<|mean|>", "<|std|>")  # fmt: skip
TEXT = ("Ġ", *"ABCDEF", ":", ",", "Ġ+", "Ġ-", "-", "Ġ*", "Ġ/", "Ġ^", ",Ġ", "Ġthe")
TOKENS = (*TEXT, *SPECIAL)
FIRST_ID = 3
"""The id of the first token of `TOKENS`; the ids before and after them are unused."""
SMALL = {"width": 144, "layers": 3, "heads": 6, "size": len(TOKENS) + 2 * FIRST_ID}
NUMBER = "num_embedding_module."
HEADS: dict[str, dict[str, list[int]]] = {
    "linear": {"num_head.0": [64]},
    "mlp": {"num_head.0": [72], "num_head.2": [64]},
    "none": {},
}
"""The outputs of the linear layers of BitToken's heads in a network of width 144."""


def parameter(name: str, shape: Sequence[int]) -> torch.Tensor:
    """Return the weights of a parameter, by the rule of the study's reference outputs."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    normal = np.random.default_rng(seed).standard_normal(tuple(shape))
    if len(shape) == 1:
        values = 1 + 0.3 * normal if name.endswith("weight") else 0.2 * normal
    else:
        values = normal * (1.0 if "wte" in name else 0.06)
    return torch.from_numpy(values.astype(np.float32))


def rope(channels: int, base: float = 10_000.0, length: int = 1024) -> dict[str, torch.Tensor]:
    """Return the buffers as the released code computes them, in float32."""
    inv_freq = 1.0 / base ** (torch.arange(0, channels, 2).float() / channels)
    angles = torch.outer(torch.arange(length).float(), inv_freq)
    prefix = "transformer.rotary_emb."
    return {
        f"{prefix}inv_freq": inv_freq,
        f"{prefix}cos_cached": angles.cos(),
        f"{prefix}sin_cached": angles.sin(),
    }


def digit_points() -> dict[str, torch.Tensor]:
    """Return FoNE's buffer: cos and sin of the ten digits' angles."""
    angles = 2 * torch.pi / 10 * torch.arange(10)
    return {f"{NUMBER}precomputed_cos_sin_matrix": torch.stack([angles.cos(), angles.sin()])}


def write_variant(folder: Path, outputs: Path, variant: str) -> None:
    """Write the checkpoint of a variant of the reference outputs."""
    config = json.loads((outputs / f"{variant}.json").read_text())
    tensors = {name: parameter(name, shape) for name, shape in config["parameters"]}
    tensors |= rope(config["width"] // config["heads"])
    if config["encoding"] == "fone":
        tensors |= digit_points()
    assert {name: list(tensor.shape) for name, tensor in tensors.items()} == config["state_dict"]
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    released = {"n_layer": config["layers"], "n_head": config["heads"], "n_embd": config["width"]}
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", **released}))
    tokenizer = outputs / f"tokenizer_{tokenizer_name(config['encoding'])}.json"
    fields = {field: config[field] for field in ("encoding", "combination", "head")}
    (folder / "numbench.json").write_text(json.dumps({**fields, "tokenizer": str(tokenizer)}))


def tokenizer_name(encoding: str) -> str:
    """Return the name of the reference tokenizer for an encoding."""
    return encoding if encoding in ("digit", "subword") else "numbers"


def write_checkpoint(
    folder: Path,
    head: str = "linear",
    combination: str = "zero-pad",
    shape: dict[str, int] = SMALL,
    tokens: Sequence[str] = TOKENS,
    dtype: torch.dtype = torch.float32,
    settings: dict[str, Any] | None = None,
) -> None:
    """Write a checkpoint with BitTokens and a tokenizer of the tests' own."""
    width, size = shape["width"], shape["size"]
    shapes: dict[str, tuple[int, ...]] = {
        "transformer.wte.weight": (size, width),
        "lm_head.weight": (size, width),
        "transformer.ln_f.weight": (width,),
    }
    for layer in range(shape["layers"]):
        prefix = f"transformer.h.{layer}"
        for name in ("ln_1", "ln_2"):
            shapes[f"{prefix}.{name}.weight"] = (width,)
        for name, inputs, columns in (
            ("attn.c_attn", width, 3 * width),
            ("attn.c_proj", width, width),
            ("mlp.c_fc", width, 4 * width),
            ("mlp.c_proj", 4 * width, width),
        ):
            shapes[f"{prefix}.{name}.weight"] = (inputs, columns)
            shapes[f"{prefix}.{name}.bias"] = (columns,)
    inputs = width
    for name, (rows,) in HEADS[head].items():
        shapes[f"{NUMBER}{name}.weight"] = (rows, inputs)
        shapes[f"{NUMBER}{name}.bias"] = (rows,)
        inputs = rows
    if combination.startswith("weighted"):
        shapes[f"{NUMBER}bit_weight_matrix.weight"] = (width, 128)
    tensors = {name: parameter(name, sides) for name, sides in shapes.items()}
    tensors |= rope(width // shape["heads"])
    folder.mkdir(parents=True, exist_ok=True)
    save_file({k: v.to(dtype) for k, v in tensors.items()}, folder / "model.safetensors")
    config = {"model_type": "gpt2", "n_layer": shape["layers"], "n_head": shape["heads"]}
    (folder / "config.json").write_text(json.dumps(config | {"n_embd": width, "vocab_size": size}))
    path = folder / "tokens" / "tokenizer.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(tokenizer(tokens)))
    fields = {"encoding": "bittoken", "combination": combination, "head": head}
    fields["tokenizer"] = "tokens/tokenizer.json"
    (folder / "numbench.json").write_text(json.dumps(fields | (settings or {})))


def tokenizer(tokens: Sequence[str]) -> dict[str, Any]:
    """Return a tokenizer file with special tokens as added tokens, the others in the vocabulary."""
    ids = {token: number for number, token in enumerate(tokens, FIRST_ID)}
    added = {token for token in tokens if token.startswith(("<|", "[N"))}
    return {
        "model": {"vocab": {token: n for token, n in ids.items() if token not in added}},
        "added_tokens": [{"id": n, "content": token} for token, n in ids.items() if token in added],
    }


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of a checkpoint."""
    weights: dict[str, torch.Tensor] = load_file(folder / "model.safetensors")
    return weights
